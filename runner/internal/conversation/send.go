package conversation

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"notebox/runner"
	"notebox/runner/internal/frame"
)

// SendTimeout bounds how long a sandbox may take to accept a job.
const SendTimeout = 120 * time.Second

// Begin sends a job with everything that belongs to it. A sandbox that does not take it is
// no good any more. In single use the end of ctx ends the conversation; a session's
// sandbox takes the job first, and Receive cancels it.
func (c *Conversation) Begin(ctx context.Context, spec runner.Spec) (*Job, error) {
	began := time.Now()
	job := newJob(c, spec, began)
	c.mu.Lock()
	switch {
	case c.err != nil:
		c.mu.Unlock()
		return nil, c.whyNotSent(c.err)
	case c.job != nil:
		c.mu.Unlock()
		return nil, errors.New("a job is under way")
	}
	job.network = c.serve(ctx, spec.Network, spec.ID)
	c.job, c.used = job, true
	c.mu.Unlock()
	timer := time.AfterFunc(SendTimeout, func() { c.Close(fmt.Errorf("send the job: %w", ErrDeadline)) })
	defer timer.Stop()
	if !c.session {
		defer context.AfterFunc(ctx, func() { c.Close(context.Cause(ctx)) })()
	}
	if err := c.write(func(w io.Writer) error { return sendJob(w, spec) }); err != nil {
		err = c.whyNotSent(fmt.Errorf("send the job: %w", err))
		c.Close(err)
		job.fail(err) // after its done, Close does not know the job, and deliver may still wait for room
		job.network.close()
		job.network.wait()
		return nil, err
	}
	return job, nil
}

func sendJob(w io.Writer, spec runner.Spec) error {
	if err := frame.WriteJSON(w, frame.KindJob, frameJob(spec)); err != nil {
		return err
	}
	for part := range slices.Chunk(spec.Notebook, frame.ChunkSize) {
		if err := frame.Write(w, frame.KindNotebookIn, part); err != nil {
			return err
		}
	}
	for _, in := range spec.Inputs {
		if err := sendInput(w, in); err != nil {
			return fmt.Errorf("input file: %w", err)
		}
	}
	return frame.Write(w, frame.KindGo, nil)
}

func frameJob(spec runner.Spec) frame.Job {
	job := frame.Job{
		NotebookBytes:  len(spec.Notebook),
		Inputs:         make([]string, 0, len(spec.Inputs)),
		Env:            spec.Env,
		StopOnError:    spec.StopOnError,
		TimeoutSeconds: spec.Limits.Timeout.Seconds(),
		MaxOutput:      spec.Limits.Output,
		MaxFiles:       spec.Limits.Files,
		MaxFileBytes:   spec.Limits.FileSize,
		Network:        grant(spec.Network),
		Command:        spec.Command,
	}
	if job.Env == nil {
		job.Env = map[string]string{}
	}
	for _, in := range spec.Inputs {
		job.Inputs = append(job.Inputs, in.Path)
	}
	return job
}

func sendInput(w io.Writer, in runner.Input) error {
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
