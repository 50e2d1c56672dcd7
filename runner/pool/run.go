package pool

import (
	"context"
	"errors"
	"fmt"
	"time"

	"notebox/runner"
	"notebox/runner/internal/conversation"
)

// Run implements runner.Runner. The sandbox's removal goes on after it has returned, in
// the background: no process of the run is left then, and nobody has to wait.
func (p *Pool) Run(ctx context.Context, spec runner.Spec, events runner.Sink) (*runner.Outcome, error) {
	again := true
	for asked := time.Now(); ; {
		out, err := p.try(ctx, spec, events, asked)
		switch {
		case errors.Is(err, conversation.ErrGone):
			// Its code had not begun; and one that was started for this run is never gone.
		case errors.Is(err, runner.ErrWithOthers) && !errors.Is(err, conversation.ErrSeen) && again:
			again = false // what ends others twice may be its code
		default:
			return out, err
		}
	}
}

func (p *Pool) try(ctx context.Context, spec runner.Spec, events runner.Sink, asked time.Time) (*runner.Outcome, error) {
	began := time.Now()
	c, err := p.take(ctx, spec.Owner, spec.Environment, spec.Limits, spec.WaitUntil)
	spec.Observe.Tell(runner.PhaseAcquire, began)
	if err != nil {
		if ctx.Err() != nil {
			return &runner.Outcome{Status: runner.StatusCancelled, Usage: runner.Usage{Queue: time.Since(asked)}}, nil
		}
		return nil, err
	}
	queue := time.Since(asked)
	out, err := p.use(ctx, c, spec, events)
	if err != nil {
		return nil, fmt.Errorf("run %s in %s: %w", spec.ID, c.Sandbox.ID(), err)
	}
	out.Usage.Queue = queue
	return out, nil
}

// use makes the one run of a sandbox, and ends that.
func (p *Pool) use(ctx context.Context, c *conversation.Conversation, spec runner.Spec, events runner.Sink) (*runner.Outcome, error) {
	finished := false
	defer func() { p.Done(c, finished) }()
	job, err := c.Begin(ctx, spec)
	if err != nil {
		if ctx.Err() != nil {
			return &runner.Outcome{Status: runner.StatusCancelled}, nil
		}
		return nil, err
	}
	out, err := job.Receive(ctx, events)
	finished = job.Done()
	return out, err
}
