package runner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"notebox/runner/internal/frame"
)

const (
	// pingInterval keeps a sandbox from thinking that it is alone: it waits 30 s.
	pingInterval = 10 * time.Second
	// sendTimeout bounds how long a sandbox may take to accept a job.
	sendTimeout = 120 * time.Second
	// runSlack is what a run may take beyond its time limit until the sandbox
	// must have said how it ended: an interrupt, a kill, a slow host.
	runSlack = 4 * time.Second
	// sessionSlack is the same in a session. On a busy machine its sandbox waits longer
	// for what it interrupts (environments/harness/harness/job/clock.py), so that no state is lost.
	sessionSlack = 14 * time.Second
	// cancelSlack is the same after a cancel, which needs no interrupt.
	cancelSlack = 2 * time.Second
	// collectTimeout bounds how long files may take to come out, and be stored.
	collectTimeout = 120 * time.Second
	// goneTimeout is how long to wait for word of an end that writing has met.
	goneTimeout = time.Second
	// sigkilled is the exit code of a program that SIGKILL ended.
	sigkilled = 128 + 9
)

// errGone is the cause where a sandbox ended before it had its job.
var errGone = errors.New("the sandbox ended while it waited")

// errDeadline is the cause where this side ended a sandbox that took too long.
var errDeadline = errors.New("the sandbox did not answer in time")

// conversation is one side of the protocol with one sandbox.
type conversation struct {
	sandbox Sandbox
	log     *slog.Logger
	writing sync.Mutex // frames of the pings among those of the job

	alive context.Context // until close
	over  context.CancelFunc
	ahead chan received // the next frame, where wait reads it; else nil

	finished bool   // the sandbox has said that no process of the run is left
	kept     bool   // it is a session's; under the pool's lock
	late     func() // ends a sandbox that does not read, under writing; nil where the job's deadline does
}

// received is what came of reading a frame.
type received struct {
	kind    frame.Kind
	payload []byte
	err     error
}

func newConversation(s Sandbox, log *slog.Logger) *conversation {
	c := &conversation{sandbox: s, log: log}
	c.alive, c.over = context.WithCancel(context.Background())
	return c
}

// close ends the stream, which ends the program inside.
func (c *conversation) close() {
	c.over()
	c.sandbox.Close()
}

// awaitReady has the sandbox start a kernel and do what that has to warm up, and returns
// when it takes a job. Where hurry is closed, it leaves out what it has not done yet.
func (c *conversation) awaitReady(ctx context.Context, kernel Kernel, hurry <-chan struct{}) error {
	stop := context.AfterFunc(ctx, func() { c.sandbox.Close() })
	defer stop()
	sent := c.write(func(w io.Writer) error { return frame.WriteJSON(w, frame.KindWarm, newWarm(kernel)) })
	err := c.readReady(hurry) // knows more about a sandbox that has ended
	if err == nil {
		err = sent
	}
	if ctx.Err() != nil {
		return &Error{Code: CodeUnavailable, Message: "starting a sandbox took too long", RetryAfter: startRetry, Err: ctx.Err()}
	}
	if exit := (*ExitError)(nil); errors.As(err, &exit) && !errors.As(err, new(*Error)) {
		message := fmt.Sprintf("a sandbox ended before it was ready, with exit code %d", exit.Code)
		return &Error{Code: CodeUnavailable, Message: message, RetryAfter: startRetry, Err: err}
	}
	if err == nil {
		go c.ping()
	}
	return err
}

func newWarm(k Kernel) frame.Warm {
	w := frame.Warm{Kernel: k.name(), Modules: []string{}, Cells: []string{}, Interrupts: k.Interrupts, Finishes: k.Finishes, Env: k.Env, Packages: k.Packages}
	if w.Env == nil {
		w.Env = map[string]string{}
	}
	if k.isPython() {
		w.Interrupts, w.Finishes = true, true
		w.Modules = append(w.Modules, k.WarmUp...)
	} else {
		w.Cells = append(w.Cells, k.WarmUp...)
	}
	return w
}

func (c *conversation) readReady(hurry <-chan struct{}) error {
	ready := make(chan struct{})
	defer close(ready)
	if hurry != nil {
		go func() {
			select {
			case <-hurry:
				// An error shows on the reading side.
				_ = c.write(func(w io.Writer) error { return frame.Write(w, frame.KindHurry, nil) })
			case <-ready:
			}
		}()
	}
	kind, payload, err := frame.Read(c.sandbox, 0)
	switch {
	case err != nil:
		return err
	case kind == frame.KindFailed:
		return failure(payload)
	case kind != frame.KindReady:
		return fmt.Errorf("frame %q instead of ready", rune(kind))
	}
	r, err := frame.Decode[frame.Ready](kind, payload)
	if err == nil && r.Version != frame.Version {
		err = fmt.Errorf("the sandbox speaks version %d, not %d", r.Version, frame.Version)
	}
	return err
}

// wait notices the end of a sandbox that waits for a job: it says nothing before
// that, so that the next frame is the run's first or its end. over is called in
// either case, with what ended it where that is known. maxEvent is as for frame.Read.
func (c *conversation) wait(maxEvent int64, over func(why error)) {
	c.ahead = make(chan received, 1)
	go func() {
		var r received
		r.kind, r.payload, r.err = frame.Read(c.sandbox, maxEvent)
		why := r.err
		if why == nil && r.kind == frame.KindFailed {
			why = failure(r.payload)
		}
		c.ahead <- r
		over(why)
	}()
}

// ended reports whether a sandbox that waited is none any more.
func (c *conversation) ended() bool { return len(c.ahead) > 0 }

// whyNotSent finds what the sandbox had to say where it did not take a job.
func (c *conversation) whyNotSent(sending error) error {
	waited := c.ahead != nil
	if !waited {
		c.wait(0, func(error) {})
	}
	select {
	case r := <-c.ahead:
		exit, known := (*ExitError)(nil), (*Error)(nil) // not what a Close of ours makes
		gone := errors.As(r.err, &exit) || errors.As(r.err, &known)
		switch {
		case r.err == nil && r.kind == frame.KindFailed:
			return failureOfRun(r.payload)
		case gone && waited:
			return fmt.Errorf("%w: %w: %w", errGone, sending, r.err)
		case known != nil:
			return fmt.Errorf("%w: %w", sending, r.err)
		}
	case <-time.After(goneTimeout): // it is another error: of an input file, say
	}
	return sending
}

// read returns the next frame of a run.
func (c *conversation) read(maxEvent int64) (frame.Kind, []byte, error) {
	return c.readBounded(func() int64 { return maxEvent })
}

// readBounded is read with the bound of frame.ReadBounded.
func (c *conversation) readBounded(maxEvent func() int64) (frame.Kind, []byte, error) {
	if c.ahead == nil {
		return frame.ReadBounded(c.sandbox, maxEvent)
	}
	r := <-c.ahead
	c.ahead = nil
	return r.kind, r.payload, r.err
}

// run sends the job and takes what comes of it. It always yields an outcome
// once the code may have started, unless the service itself is at fault.
func (c *conversation) run(ctx context.Context, spec Spec, events Sink) (*Outcome, error) {
	began := time.Now()
	if err := c.send(ctx, spec); err != nil {
		switch {
		case ctx.Err() != nil:
			return &Outcome{Status: StatusCancelled}, nil
		default:
			return nil, c.whyNotSent(err)
		}
	}
	r := newReception(c, spec, events)
	defer r.tell(began)
	return r.receive(ctx, c)
}

func (c *conversation) ping() {
	tick := time.NewTicker(pingInterval)
	defer tick.Stop()
	for {
		select {
		case <-c.alive.Done():
			return
		case <-tick.C:
			// Whoever else writes keeps the sandbox as well.
			if !c.writing.TryLock() {
				continue
			}
			// An error shows on the reading side.
			_ = frame.Write(c.writer(), frame.KindPing, nil)
			c.writing.Unlock()
		}
	}
}

func (c *conversation) write(frames func(io.Writer) error) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	return frames(c.writer())
}

// writer is where frames go. The lock is held.
func (c *conversation) writer() io.Writer {
	if c.late == nil {
		return c.sandbox
	}
	return &watchedWriter{c.sandbox, c.late}
}

// writeTimeout is how long a session's sandbox may take to read one frame. It
// reads at all times, on whatever host.
const writeTimeout = 60 * time.Second

// watchedWriter calls late where one Write takes too long, which is to end that.
type watchedWriter struct {
	w    io.Writer
	late func()
}

func (w *watchedWriter) Write(p []byte) (int, error) {
	timer := time.AfterFunc(writeTimeout, w.late)
	defer timer.Stop()
	return w.w.Write(p)
}

// send writes the job with everything that belongs to it.
func (c *conversation) send(ctx context.Context, spec Spec) error {
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { c.sandbox.Close() })
	defer stop()
	err := c.write(func(w io.Writer) error {
		if err := sendNotebook(w, spec); err != nil {
			return err
		}
		for _, in := range spec.Inputs {
			if err := sendInput(w, in); err != nil {
				return fmt.Errorf("input file: %w", err)
			}
		}
		return frame.Write(w, frame.KindGo, nil)
	})
	if err != nil {
		return fmt.Errorf("send the job: %w", err)
	}
	return nil
}

// sendNotebook writes the frames of a job up to its notebook's end.
func sendNotebook(w io.Writer, spec Spec) error {
	if err := frame.WriteJSON(w, frame.KindJob, newJob(spec)); err != nil {
		return err
	}
	for part := range slices.Chunk(spec.Notebook, frame.ChunkSize) {
		if err := frame.Write(w, frame.KindNotebookIn, part); err != nil {
			return err
		}
	}
	return nil
}

func newJob(spec Spec) frame.Job {
	job := frame.Job{
		NotebookBytes:  len(spec.Notebook),
		Inputs:         make([]string, 0, len(spec.Inputs)),
		Env:            spec.Env,
		StopOnError:    spec.StopOnError,
		TimeoutSeconds: spec.Limits.Timeout.Seconds(),
		MaxOutput:      spec.Limits.Output,
		MaxFiles:       spec.Limits.Files,
		MaxFileBytes:   spec.Limits.FileSize,
		Command:        spec.Command,
	}
	if job.Env == nil {
		job.Env = map[string]string{}
	}
	if spec.Network != nil {
		job.Network = &frame.Network{CA: string(spec.Network.CA())}
	}
	for _, in := range spec.Inputs {
		job.Inputs = append(job.Inputs, in.Path)
	}
	return job
}

func sendInput(w io.Writer, in Input) error {
	content, err := in.Open()
	if err != nil {
		return err
	}
	defer content.Close()
	if err := frame.WriteJSON(w, frame.KindInput, frame.Input{Path: in.Path}); err != nil {
		return err
	}
	chunk := make([]byte, frame.ChunkSize)
	for {
		n, err := io.ReadFull(content, chunk)
		if n > 0 {
			if err := frame.Write(w, frame.KindInputData, chunk[:n]); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// failure is the harness's own, before there is a job.
func failure(payload []byte) error {
	return failureAs(payload, func(message string) string { return message })
}

// failureOfRun is one that may quote what is the user's: the log has its type.
func failureOfRun(payload []byte) error {
	return failureAs(payload, func(message string) string {
		name, _, _ := strings.Cut(message, ":")
		if !exceptionName.MatchString(name) {
			return "with a job"
		}
		return name
	})
}

// exceptionName is what a Python exception's type can be called.
var exceptionName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.]{0,63}$`)

func failureAs(payload []byte, public func(string) string) error {
	f, err := frame.Decode[frame.Failed](frame.KindFailed, payload)
	if err != nil {
		return err
	}
	err = fmt.Errorf("the harness failed: %s", public(f.Message))
	switch {
	case f.Packages:
		return &Error{Code: CodePackages, Message: "the kernel does not start with these packages", Err: err}
	case f.Env:
		return &Error{Code: CodeEnv, Message: "the kernel does not start with these variables", Err: err}
	}
	return err
}
