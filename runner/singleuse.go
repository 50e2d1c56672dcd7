package runner

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

const (
	// startTimeout bounds a sandbox's start until it is ready: a second on an
	// idle host, many on one where all cores start one.
	startTimeout = 60 * time.Second
	// killTimeout bounds the wait for a sandbox's end; what takes longer goes on
	// in the background.
	killTimeout = 15 * time.Second
)

// SingleUse is a Runner that starts a sandbox for each run.
type SingleUse struct {
	engine Engine
	log    *slog.Logger
}

// NewSingleUse returns a Runner on the engine.
func NewSingleUse(engine Engine, log *slog.Logger) *SingleUse {
	return &SingleUse{engine: engine, log: log}
}

// Run implements Runner.
func (r *SingleUse) Run(ctx context.Context, spec Spec, events Sink) (*Outcome, error) {
	asked := time.Now()
	c, err := r.ready(ctx, spec)
	if err != nil {
		if ctx.Err() != nil {
			return &Outcome{Status: StatusCancelled, Usage: Usage{Queue: time.Since(asked)}}, nil
		}
		return nil, err
	}
	defer r.kill(ctx, c.sandbox)
	queue := time.Since(asked)
	out, err := c.run(ctx, spec, events)
	if err != nil {
		return nil, fmt.Errorf("run %s in %s: %w", spec.ID, c.sandbox.ID(), err)
	}
	out.Usage.Queue = queue
	return out, nil
}

// ready starts a sandbox and waits until it takes a job.
func (r *SingleUse) ready(ctx context.Context, spec Spec) (*conversation, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	sandbox, err := r.engine.Start(ctx, spec.Environment, spec.Limits)
	if err != nil {
		return nil, fmt.Errorf("start a sandbox: %w", err)
	}
	c := newConversation(sandbox, r.log)
	if err := c.awaitReady(ctx); err != nil {
		r.kill(ctx, sandbox)
		return nil, fmt.Errorf("sandbox %s did not get ready: %w", sandbox.ID(), explainExit(err, r.log))
	}
	return c, nil
}

func (r *SingleUse) kill(ctx context.Context, s Sandbox) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), killTimeout)
	defer cancel()
	if err := s.Kill(ctx); err != nil {
		r.log.Error("a sandbox could not be ended", "sandbox", s.ID(), "error", err)
	}
}

// explainExit puts what a sandbox wrote before it ended into the log.
func explainExit(err error, log *slog.Logger) error {
	if exit := (*ExitError)(nil); errors.As(err, &exit) {
		log.Error("a sandbox ended by itself", "exit_code", exit.Code, "stderr", exit.Log)
	}
	return err
}
