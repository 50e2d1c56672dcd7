package runner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
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
	// cancelSlack is the same after a cancel, which needs no interrupt.
	cancelSlack = 2 * time.Second
	// collectTimeout bounds how long files may take to come out, and be stored.
	collectTimeout = 120 * time.Second
	// sigkilled is the exit code of a program that SIGKILL ended.
	sigkilled = 128 + 9
)

// errDeadline is the cause where this side ended a sandbox that took too long.
var errDeadline = errors.New("the sandbox did not answer in time")

// conversation is one side of the protocol with one sandbox.
type conversation struct {
	sandbox Sandbox
	log     *slog.Logger
	writing sync.Mutex // frames of the pings among those of the job
}

func newConversation(s Sandbox, log *slog.Logger) *conversation {
	return &conversation{sandbox: s, log: log}
}

// awaitReady returns when the sandbox takes a job.
func (c *conversation) awaitReady(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { c.sandbox.Close() })
	defer stop()
	kind, payload, err := frame.Read(c.sandbox, 0)
	switch {
	case ctx.Err() != nil:
		return &Error{Code: CodeUnavailable, Message: "starting a sandbox took too long", Err: ctx.Err()}
	case err != nil:
		return err
	case kind == frame.KindFailed:
		return failure(payload)
	case kind != frame.KindReady:
		return fmt.Errorf("frame %q instead of ready", rune(kind))
	}
	ready, err := frame.Decode[frame.Ready](kind, payload)
	if err == nil && ready.Version != frame.Version {
		err = fmt.Errorf("the sandbox speaks version %d, not %d", ready.Version, frame.Version)
	}
	return err
}

// run sends the job and takes what comes of it. It always yields an outcome
// once the code may have started, unless the service itself is at fault.
func (c *conversation) run(ctx context.Context, spec Spec, events Sink) (*Outcome, error) {
	alive, over := context.WithCancel(context.Background())
	defer over()
	go c.ping(alive)
	if err := c.send(ctx, spec); err != nil {
		if ctx.Err() != nil {
			return &Outcome{Status: StatusCancelled}, nil
		}
		return nil, err
	}
	return newReception(c, spec, events).receive(ctx)
}

func (c *conversation) ping(alive context.Context) {
	tick := time.NewTicker(pingInterval)
	defer tick.Stop()
	for {
		select {
		case <-alive.Done():
			return
		case <-tick.C:
			// Whoever else writes keeps the sandbox as well.
			if !c.writing.TryLock() {
				continue
			}
			// An error shows on the reading side.
			_ = frame.Write(c.sandbox, frame.KindPing, nil)
			c.writing.Unlock()
		}
	}
}

func (c *conversation) write(frames func(io.Writer) error) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	return frames(c.sandbox)
}

// send writes the job with everything that belongs to it.
func (c *conversation) send(ctx context.Context, spec Spec) error {
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { c.sandbox.Close() })
	defer stop()
	err := c.write(func(w io.Writer) error {
		if err := frame.WriteJSON(w, frame.KindJob, newJob(spec)); err != nil {
			return err
		}
		for rest := spec.Notebook; len(rest) > 0; {
			n := min(len(rest), frame.ChunkSize)
			if err := frame.Write(w, frame.KindNotebookIn, rest[:n]); err != nil {
				return err
			}
			rest = rest[n:]
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
	}
	if job.Env == nil {
		job.Env = map[string]string{}
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

func failure(payload []byte) error {
	f, err := frame.Decode[frame.Failed](frame.KindFailed, payload)
	if err != nil {
		return err
	}
	err = fmt.Errorf("the harness failed: %s", f.Message)
	if f.Env {
		return &Error{Code: CodeEnv, Message: "the kernel does not start with these variables", Err: err}
	}
	return err
}
