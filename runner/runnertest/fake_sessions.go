package runnertest

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"notebox/runner"
)

// errKilled is the cause of a run's end by a restart of its session's kernel.
var errKilled = errors.New(string(runner.StatusKilled))

// fakeRetry is when to come back to FakeSessions that are full.
const fakeRetry = 3 * time.Second

// Command is what a line for bash does in a session; it returns its exit code.
type Command func(*Kernel) int

// FakeSessions are sessions in memory. Their kernels know the cells of the suite,
// and can be taught others, which share Kernel.Vars; of commands they know what they
// are taught. The zero value is not one; see NewFakeSessions. Its exported fields are
// set before the first call.
type FakeSessions struct {
	Now         func() time.Time // what TTL and Idle are measured by
	MaxSessions int              // of all owners together; 0 is no bound
	// OnOpen is called at the begin of each Open, which an error of it ends.
	OnOpen func(context.Context, runner.SessionSpec) error
	// OnRun is called at the begin of each Run that has its turn; may be nil.
	OnRun func(runner.Spec)

	cells    map[string]Cell
	commands map[string]Command
	mu       sync.Mutex
	sessions map[fakeKey]*fakeSession
	opened   int
}

type fakeKey struct{ owner, id string }

// NewFakeSessions returns sessions that know the cells of the suite.
func NewFakeSessions() *FakeSessions {
	return &FakeSessions{
		Now: time.Now, cells: maps.Clone(suiteCells), commands: map[string]Command{},
		sessions: map[fakeKey]*fakeSession{},
	}
}

// On teaches what a cell with this source does.
func (f *FakeSessions) On(source string, c Cell) { f.cells[source] = c }

// OnCommand teaches what a command does.
func (f *FakeSessions) OnCommand(line string, c Command) { f.commands[line] = c }

// Open implements runner.Sessions.
func (f *FakeSessions) Open(ctx context.Context, spec runner.SessionSpec) (runner.Session, error) {
	if f.OnOpen != nil {
		if err := f.OnOpen(ctx, spec); err != nil {
			return nil, err
		}
	}
	files, err := readFakeInputs(spec.Inputs)
	if err := errors.Join(err, ctx.Err()); err != nil {
		return nil, err
	}
	f.Sweep()
	f.mu.Lock()
	defer f.mu.Unlock()
	open, owned := 0, 0
	for key, s := range f.sessions {
		if s.gone == nil {
			open++
			if key.owner == spec.Owner {
				owned++
			}
		}
	}
	switch {
	case spec.MaxOwned > 0 && owned >= spec.MaxOwned:
		return nil, &runner.Error{Code: runner.CodeShare, Message: "you have as many sessions open as you may have", RetryAfter: fakeRetry}
	case f.MaxSessions > 0 && open >= f.MaxSessions:
		return nil, &runner.Error{Code: runner.CodeFull, Message: "as many sessions are open as there may be", RetryAfter: fakeRetry}
	}
	now := f.Now()
	f.opened++
	s := &fakeSession{
		host: f, spec: spec, created: now, used: now, number: f.opened,
		ended: make(chan struct{}), turn: make(chan struct{}, 1),
		vars: map[string]string{}, files: map[string]fakeFile{},
	}
	for path, content := range files {
		s.files[path] = fakeFile{content: content, modified: now}
	}
	f.sessions[fakeKey{spec.Owner, spec.ID}] = s
	return s, nil
}

// Find implements runner.Sessions.
func (f *FakeSessions) Find(owner, id string) (runner.Session, error) {
	f.Sweep()
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.sessions[fakeKey{owner, id}]
	switch {
	case s == nil:
		return nil, runner.ErrNoSession
	case s.gone != nil:
		return nil, s.gone
	}
	return s, nil
}

// List implements runner.Sessions.
func (f *FakeSessions) List(owner string) []runner.SessionInfo {
	f.Sweep()
	f.mu.Lock()
	var open []*fakeSession
	for key, s := range f.sessions {
		if key.owner == owner && s.gone == nil {
			open = append(open, s)
		}
	}
	f.mu.Unlock()
	slices.SortFunc(open, func(a, b *fakeSession) int { return a.number - b.number })
	var out []runner.SessionInfo
	for _, s := range open {
		out = append(out, s.Info())
	}
	return out
}

// Sweep ends the sessions whose time is up by Now, as each call does first.
func (f *FakeSessions) Sweep() {
	now := f.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.sessions {
		switch {
		case s.gone != nil:
		case !now.Before(s.created.Add(s.spec.TTL)):
			s.end(runner.GoneExpired)
		case s.busy == 0 && !now.Before(s.used.Add(s.spec.Idle)):
			s.end(runner.GoneIdle)
		}
	}
}

// End ends a session as it would end for that reason; it returns whether there was one.
func (f *FakeSessions) End(owner, id string, reason runner.GoneReason) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.sessions[fakeKey{owner, id}]
	if s == nil || s.gone != nil {
		return false
	}
	s.end(reason)
	return true
}

// LoseKernel has the kernel of a session die while nothing runs, which the next run says.
func (f *FakeSessions) LoseKernel(owner, id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.sessions[fakeKey{owner, id}]
	s.vars, s.lost = map[string]string{}, true
	s.restarts++
}

// Forget has a session be one that never was.
func (f *FakeSessions) Forget(owner, id string) {
	f.End(owner, id, runner.GoneLost)
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.sessions, fakeKey{owner, id})
}

// SessionIDs are those of the sessions that are open, of all owners.
func (f *FakeSessions) SessionIDs() (ids []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for key, s := range f.sessions {
		if s.gone == nil {
			ids = append(ids, key.id)
		}
	}
	slices.SortFunc(ids, strings.Compare)
	return ids
}
