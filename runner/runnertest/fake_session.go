package runnertest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"strings"
	"time"

	"notebox/runner"
)

// fakeSession is a runner.Session. What changes is under the lock of its host.
type fakeSession struct {
	host    *FakeSessions
	spec    runner.SessionSpec
	created time.Time
	number  int           // in the order of Open
	turn    chan struct{} // holds an element while a run has the kernel
	ended   chan struct{} // closed when gone is set

	gone     *runner.GoneError
	used     time.Time
	busy     int // calls that go on
	waiting  []chan struct{}
	kernel   *Kernel // of the run that goes on; nil between runs
	vars     map[string]string
	files    map[string]fakeFile
	restarts int
	lost     bool // the kernel is another than the last run's
}

// Info implements runner.Session.
func (s *fakeSession) Info() runner.SessionInfo {
	s.host.mu.Lock()
	defer s.host.mu.Unlock()
	used := s.used
	if s.busy > 0 {
		used = s.host.Now()
	}
	return runner.SessionInfo{
		ID: s.spec.ID, Owner: s.spec.Owner, Environment: s.spec.Environment.Name, Network: s.spec.Network != nil,
		Created: s.created, Expires: s.created.Add(s.spec.TTL), Idle: s.spec.Idle, LastUsed: used,
		Running: s.kernel != nil, Waiting: len(s.waiting), KernelRestarts: s.restarts, Note: maps.Clone(s.spec.Note),
	}
}

// use begins a call; where it returns no error, done ends it.
func (s *fakeSession) use() (done func(), err error) {
	s.host.Sweep()
	s.host.mu.Lock()
	defer s.host.mu.Unlock()
	if s.gone != nil {
		return nil, s.gone
	}
	s.busy++
	return func() {
		s.host.mu.Lock()
		defer s.host.mu.Unlock()
		s.busy--
		s.used = s.host.Now()
	}, nil
}

// end ends the session; the host's lock is held.
func (s *fakeSession) end(reason runner.GoneReason) {
	s.gone = &runner.GoneError{Reason: reason, At: s.host.Now()}
	close(s.ended)
	if s.kernel != nil {
		s.kernel.end(errCancelled)
	}
	if s.spec.Ended != nil {
		s.spec.Ended()
	}
}

// Run implements runner.Session.
func (s *fakeSession) Run(ctx context.Context, spec runner.Spec, events runner.Sink) (*runner.Outcome, error) {
	done, err := s.use()
	if err != nil {
		return nil, err
	}
	defer done()
	asked := time.Now()
	if !s.await(ctx) {
		return &runner.Outcome{Status: runner.StatusCancelled, Usage: runner.Usage{Queue: time.Since(asked)}}, nil
	}
	defer s.leave()
	if s.host.OnRun != nil {
		s.host.OnRun(spec)
	}
	inputs, err := readFakeInputs(spec.Inputs)
	if err != nil {
		return nil, err
	}
	runCtx, end := context.WithCancelCause(context.Background())
	defer end(nil)
	defer context.AfterFunc(ctx, func() { end(errCancelled) })()
	defer time.AfterFunc(spec.Limits.Timeout, func() { end(errTimeout) }).Stop()
	k := &Kernel{
		Sandbox: s.spec.ID, Env: s.spec.Env, stop: spec.StopOnError, ctx: runCtx, end: end, skipped: map[string]string{},
		budget: spec.Limits.Output, emit: events.Output, interrupts: make(chan struct{}, 1),
	}
	before, lost := s.lend(k, inputs)
	begun := time.Now()
	out, err := s.execute(k, spec)
	out.Usage = runner.Usage{Queue: max(1, begun.Sub(asked)), Wall: max(1, time.Since(begun))}
	s.takeBack(k, before)
	out.KernelRestarted = lost || k.isDead()
	k.collect(ctx, before, spec.Limits, out, events)
	return out, err
}

// await takes the kernel, in the order of the calls. It returns false where ctx or
// the session ended first.
func (s *fakeSession) await(ctx context.Context) bool {
	mine := make(chan struct{})
	s.host.mu.Lock()
	s.waiting = append(s.waiting, mine)
	s.next()
	s.host.mu.Unlock()
	select {
	case <-mine:
	case <-ctx.Done():
	case <-s.ended:
	}
	s.host.mu.Lock()
	defer s.host.mu.Unlock()
	for i, w := range s.waiting {
		if w == mine {
			s.waiting = append(s.waiting[:i], s.waiting[i+1:]...)
			return false
		}
	}
	if ctx.Err() == nil && s.gone == nil {
		return true
	}
	<-s.turn
	s.next()
	return false
}

// next gives the kernel to who waits for it longest, where it is free; the host's
// lock is held.
func (s *fakeSession) next() {
	if len(s.waiting) == 0 {
		return
	}
	select {
	case s.turn <- struct{}{}:
		close(s.waiting[0])
		s.waiting = s.waiting[1:]
	default:
	}
}

func (s *fakeSession) leave() {
	s.host.mu.Lock()
	defer s.host.mu.Unlock()
	s.kernel = nil
	<-s.turn
	s.next()
}

// execute runs the cells, or the command, into the outcome's notebook.
func (s *fakeSession) execute(k *Kernel, spec runner.Spec) (*runner.Outcome, error) {
	out := &runner.Outcome{}
	var document map[string]any
	if err := json.Unmarshal(spec.Notebook, &document); err != nil {
		return out, fmt.Errorf("the notebook of a run: %w", err)
	}
	var cells []map[string]any
	list, _ := document["cells"].([]any)
	for _, c := range list {
		if cell, ok := c.(map[string]any); ok && cell["cell_type"] == "code" {
			cells = append(cells, cell)
		}
	}
	if spec.Command == "" {
		k.execute(s.host.cells, cells)
		out.Status = k.status()
	} else {
		code := k.runCommand(s.host.commands, spec.Command, cells)
		if out.Status = k.status(); out.Status == runner.StatusOK {
			out.ExitCode = &code
			if code != 0 {
				out.Status = runner.StatusError
			}
		}
	}
	var err error
	out.Notebook, err = json.Marshal(document)
	return out, err
}

// runCommand runs a command, whose outputs are the first cell's.
func (k *Kernel) runCommand(known map[string]Command, line string, cells []map[string]any) int {
	k.outputs, k.command = []any{}, true
	do, ok := known[line]
	if !ok {
		do = func(k *Kernel) int {
			k.Complain("bash: line 1: " + strings.Fields(line + " ")[0] + ": command not found\n")
			return 127
		}
	}
	code := do(k)
	cells[0]["outputs"], cells[0]["execution_count"] = k.outputs, 1
	k.lost = false // it was no kernel's process
	return code
}

// isDead is whether the kernel that a run had is no more.
func (k *Kernel) isDead() bool { return k.ended != "" || k.lost || context.Cause(k.ctx) == errKilled }

// Interrupt implements runner.Session.
func (s *fakeSession) Interrupt(context.Context) error {
	done, err := s.use()
	if err != nil {
		return err
	}
	defer done()
	s.host.mu.Lock()
	defer s.host.mu.Unlock()
	if s.kernel != nil {
		select {
		case s.kernel.interrupts <- struct{}{}:
		default:
		}
	}
	return nil
}

// Restart implements runner.Session.
func (s *fakeSession) Restart(context.Context) error {
	done, err := s.use()
	if err != nil {
		return err
	}
	defer done()
	s.host.mu.Lock()
	defer s.host.mu.Unlock()
	if s.kernel != nil { // its run counts the new kernel, and says that it is one
		s.kernel.end(errKilled)
		return nil
	}
	s.vars = map[string]string{} // that there is a new one, its asker knows
	s.restarts++
	return nil
}

// Close implements runner.Session.
func (s *fakeSession) Close(ctx context.Context) error {
	s.host.mu.Lock()
	gone := s.gone
	if gone == nil {
		s.end(runner.GoneClosed)
	}
	s.host.mu.Unlock()
	if gone != nil {
		return gone
	}
	select {
	case s.turn <- struct{}{}: // no run goes on
		<-s.turn
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// readFakeInputs reads what is put into /mnt/data.
func readFakeInputs(inputs []runner.Input) (map[string]string, error) {
	files := map[string]string{}
	for _, in := range inputs {
		content, err := in.Open()
		if err != nil {
			return nil, err
		}
		raw, err := io.ReadAll(content)
		if err := closeAfter(content, err); err != nil {
			return nil, err
		}
		files[in.Path] = string(raw)
	}
	return files, nil
}

func closeAfter(c io.Closer, err error) error {
	if closed := c.Close(); err == nil {
		err = closed
	}
	return err
}
