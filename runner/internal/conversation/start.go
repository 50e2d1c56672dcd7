package conversation

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"notebox/runner"
	"notebox/runner/internal/frame"
)

const (
	// StartRetry is when callers come back whose sandbox did not start: a host that was
	// busy has mostly recovered by then.
	StartRetry = 5 * time.Second
	// goneTimeout is how long to wait until the reading side says why writing failed.
	goneTimeout = time.Second
)

// NotStarted makes the error that callers get of a failed start: whatever the cause was,
// the next start may succeed. An error with a public message stays as it is, and so does
// the end of a context.
func NotStarted(err error) error {
	if err == nil || errors.As(err, new(*runner.Error)) || errors.Is(err, context.Canceled) {
		return err
	}
	return unavailable("a sandbox could not be started", err)
}

func unavailable(message string, err error) error {
	return &runner.Error{Code: runner.CodeUnavailable, Message: message, RetryAfter: StartRetry, Err: err}
}

// AwaitReady has the sandbox start a kernel and do what that has to warm up, and returns
// when it takes a job. If hurry is closed, it leaves out what it has not done yet.
func (c *Conversation) AwaitReady(ctx context.Context, kernel runner.Kernel, hurry <-chan struct{}) error {
	stop := context.AfterFunc(ctx, func() { c.Sandbox.Close() })
	defer stop()
	sent := c.write(func(w io.Writer) error { return frame.WriteJSON(w, frame.KindWarm, newWarm(kernel)) })
	err := c.readReady(hurry) // knows more about a sandbox that has ended
	if err == nil {
		err = sent
	}
	if ctx.Err() != nil {
		return unavailable("starting a sandbox took too long", ctx.Err())
	}
	if exit := (*runner.ExitError)(nil); errors.As(err, &exit) && !errors.As(err, new(*runner.Error)) {
		return unavailable(fmt.Sprintf("a sandbox ended before it was ready, with exit code %d", exit.Code), err)
	}
	if err == nil {
		c.listen()
	}
	return err
}

// listen begins to read, and to say that the service is alive.
func (c *Conversation) listen() {
	go c.ping()
	go c.read()
}

func newWarm(k runner.Kernel) frame.Warm {
	w := frame.Warm{Kernel: k.Spec(), Modules: []string{}, Cells: []string{}, Interrupts: k.Interrupts, Finishes: k.Finishes, Env: k.Env, Packages: k.Packages}
	if w.Env == nil {
		w.Env = map[string]string{}
	}
	if w.Kernel == runner.PythonKernel {
		w.Interrupts, w.Finishes = true, true
		w.Modules = append(w.Modules, k.WarmUp...)
	} else {
		w.Cells = append(w.Cells, k.WarmUp...)
	}
	return w
}

func (c *Conversation) readReady(hurry <-chan struct{}) error {
	ready := make(chan struct{})
	defer close(ready)
	if hurry != nil {
		go func() {
			select {
			case <-hurry:
				_ = c.send(frame.KindHurry) // an error shows on the reading side
			case <-ready:
			}
		}()
	}
	kind, payload, err := frame.Read(c.Sandbox, 0)
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

// whyNotSent finds what the sandbox had to say if it did not take what was sent.
func (c *Conversation) whyNotSent(sending error) error {
	select {
	case <-c.alive.Done():
	case <-time.After(goneTimeout): // it is another error: of an input file, say
		return sending
	}
	why := c.Over()
	exit, known := (*runner.ExitError)(nil), (*runner.Error)(nil) // not what a Close of ours makes
	switch {
	case errors.Is(why, errFailed):
		return why
	case c.waited && (errors.As(why, &exit) || errors.As(why, &known)):
		return fmt.Errorf("%w: %w: %w", ErrGone, sending, why)
	case errors.As(why, &known):
		return fmt.Errorf("%w: %w", sending, why)
	}
	return sending
}
