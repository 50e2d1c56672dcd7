package conversation

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"notebox/runner"
	"notebox/runner/internal/channel"
	"notebox/runner/internal/frame"
)

const (
	// pingInterval keeps a sandbox from thinking that it is alone: it waits 30 s.
	pingInterval = 10 * time.Second
	// WriteTimeout is how long a session's sandbox may take to read one frame. It
	// reads at all times, on whatever host.
	WriteTimeout = 60 * time.Second
)

// ErrGone is the cause if a sandbox ended before it had its job.
var ErrGone = errors.New("the sandbox ended while it waited")

// ErrSeen is with runner.ErrWithOthers if the job's Sink has got something of it, or a network
// may have: it cannot be done again.
var ErrSeen = errors.New("something of the job was seen")

// ErrDeadline is the cause if this side ended a sandbox that took too long.
var ErrDeadline = errors.New("the sandbox did not answer in time")

// Conversation is one side of the protocol with one sandbox.
type Conversation struct {
	Sandbox runner.Sandbox
	log     *slog.Logger
	writing sync.Mutex // frames of the pings among those of the job
	session bool       // it is a session's; changed under writing
	waited  bool       // in a pool, see Shelved
	files   *channel.Mux

	alive context.Context // until Close
	over  context.CancelFunc

	mu      sync.Mutex
	lost    func(error)                  // see OnEnd
	used    bool                         // the sandbox had what is a user's
	answers map[frame.Kind]chan struct{} // closed when it has come
	job     *Job                         // that runs
	network *uplink
	err     error // why it is over
}

// New returns the conversation with a sandbox that has just been started.
func New(s runner.Sandbox, log *slog.Logger) *Conversation {
	c := &Conversation{Sandbox: s, log: log, answers: map[frame.Kind]chan struct{}{}}
	c.alive, c.over = context.WithCancel(context.Background())
	c.files = channel.NewMux(c.sendChannel)
	return c
}

// Shelved is OnEnd for a sandbox that waits in a pool for whoever comes.
func (c *Conversation) Shelved(lost func(why error)) {
	c.waited = true
	c.OnEnd(lost)
}

// OnEnd has lost called when the conversation is over, in a goroutine of its own. It
// replaces the function of an earlier OnEnd.
func (c *Conversation) OnEnd(lost func(why error)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lost = lost
	if c.err != nil {
		go lost(c.err)
	}
}

// Over returns why the conversation is over; nil while it goes on.
func (c *Conversation) Over() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Close ends the stream, which ends the program inside, and all that waits for it. The
// first cause counts.
func (c *Conversation) Close(cause error) {
	c.mu.Lock()
	if c.err != nil {
		c.mu.Unlock()
		return
	}
	c.err = cause
	job, network, lost := c.job, c.network, c.lost
	c.mu.Unlock()
	c.over()
	_ = c.files.Close()
	network.close()
	if job != nil {
		job.fail(cause)
	}
	c.Sandbox.Close()
	if lost != nil {
		go lost(cause)
	}
}

// read takes frames until the conversation is over. It waits only for a mailbox that is
// full, see Job.
func (c *Conversation) read() {
	for {
		kind, payload, err := frame.ReadBounded(c.Sandbox, c.maxEvent)
		if err == nil {
			err = c.take(kind, payload)
		}
		if err != nil {
			c.Close(err)
			return
		}
		if kind == frame.KindDone && !c.session { // there is no more
			return
		}
	}
}

func (c *Conversation) maxEvent() int64 {
	if job := c.Job(); job != nil {
		return maxEvent(job.spec)
	}
	return 0
}

// Job returns the one that runs, or nil.
func (c *Conversation) Job() *Job {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.job
}

// take handles one frame.
func (c *Conversation) take(kind frame.Kind, payload []byte) error {
	switch kind {
	case frame.KindChannel:
		return c.channel(payload)
	case frame.KindKept, frame.KindRestarted:
		return c.answer(kind)
	case frame.KindFailed:
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.used {
			return failureOfRun(payload)
		}
		return failure(payload)
	}
	job := c.Job()
	if job == nil {
		return fmt.Errorf("frame %q where no job runs", rune(kind))
	}
	c.mu.Lock()
	switch {
	case kind == frame.KindDone && job.HasOutcome():
		c.job = nil // another may be sent as soon as this is told
	case kind == frame.KindOutcome && job.network != nil:
		c.network = nil // it was this job's
		defer job.network.close()
	}
	c.mu.Unlock()
	job.deliver(kind, payload)
	return nil
}

func (c *Conversation) channel(payload []byte) error {
	if channel.Ours(payload) {
		return c.files.Receive(payload)
	}
	c.mu.Lock()
	network := c.network
	c.mu.Unlock()
	return network.receive(payload)
}

func (c *Conversation) answer(kind frame.Kind) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	answer := c.answers[kind]
	if answer == nil {
		return fmt.Errorf("frame %q that nobody asked for", rune(kind))
	}
	delete(c.answers, kind)
	close(answer)
	return nil
}

// ask writes frames and waits for the answer of that kind. One asks for it at a time.
func (c *Conversation) ask(ctx context.Context, kind frame.Kind, frames func(io.Writer) error) error {
	answer := make(chan struct{})
	c.mu.Lock()
	c.answers[kind] = answer
	c.mu.Unlock()
	if err := c.write(frames); err != nil {
		return c.whyNotSent(err)
	}
	select {
	case <-answer:
		return nil
	case <-c.alive.Done():
		return c.Over()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// serve gives programs a network, if there is one, until the conversation or the
// uplink is over, or ctx ends. The lock is held.
func (c *Conversation) serve(ctx context.Context, network runner.Network, id string) *uplink {
	if network == nil || c.err != nil {
		return nil
	}
	c.network = connect(ctx, c, network, id)
	return c.network
}

func (c *Conversation) ping() {
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

func (c *Conversation) write(frames func(io.Writer) error) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	return frames(c.writer())
}

// send writes a frame without a payload.
func (c *Conversation) send(kind frame.Kind) error {
	return c.write(func(w io.Writer) error { return frame.Write(w, kind, nil) })
}

func (c *Conversation) sendChannel(payload []byte) error {
	return c.write(func(w io.Writer) error { return frame.Write(w, frame.KindChannel, payload) })
}

// writer is where frames go. The lock is held.
func (c *Conversation) writer() io.Writer {
	if !c.session { // the job's deadline ends a sandbox that does not read
		return c.Sandbox
	}
	return &watchedWriter{c}
}

// watchedWriter ends the conversation if one Write takes too long.
type watchedWriter struct{ c *Conversation }

func (w *watchedWriter) Write(p []byte) (int, error) {
	timer := time.AfterFunc(WriteTimeout, func() { w.c.Close(fmt.Errorf("a frame was not read: %w", ErrDeadline)) })
	defer timer.Stop()
	return w.c.Sandbox.Write(p)
}
