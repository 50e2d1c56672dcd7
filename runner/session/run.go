package session

import (
	"context"
	"errors"
	"fmt"
	"time"

	"notebox/runner"
	"notebox/runner/internal/conversation"
)

// Run implements Session.
//
//  1. It waits for its turn in the session.
//  2. It takes a place from the admission, as a run of single use does.
//  3. Its files are written, the job is sent, and what comes of it received.
//  4. The turn goes to the next when the sandbox is done with the job.
func (s *Session) Run(ctx context.Context, spec runner.Spec, events runner.Sink) (*runner.Outcome, error) {
	if len(spec.Env) > 0 {
		return nil, fmt.Errorf("run %s: the variables of a session are those that it was opened with", spec.ID)
	}
	leave, err := s.use.begin()
	if err != nil {
		return nil, err
	}
	defer leave()
	asked := time.Now()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(s.use.over, func() { cancel(s.use.end()) })()
	if err := s.queue.join(ctx); err != nil {
		return s.notRun(ctx, err, asked)
	}
	turn := &turn{s: s}
	out, err := s.all.admission.With(turn).Run(ctx, spec, events)
	turn.leave()
	switch {
	case !turn.taken && (err == nil || ctx.Err() != nil):
		return s.notRun(ctx, context.Cause(ctx), asked)
	case err != nil:
		return nil, err
	}
	out.Usage.Queue = turn.began.Sub(asked)
	return out, nil
}

// notRun is what becomes of a run that has not begun.
func (s *Session) notRun(ctx context.Context, err error, asked time.Time) (*runner.Outcome, error) {
	err = s.orGone(err)
	switch end := (*runner.GoneError)(nil); {
	case conversation.Lost(err):
		return nil, err
	case ctx.Err() != nil || errors.As(err, &end):
		return &runner.Outcome{Status: runner.StatusCancelled, Usage: runner.Usage{Queue: time.Since(asked)}}, nil
	}
	return nil, err
}

// turn is a Runner of the one run that has the session's turn.
type turn struct {
	s     *Session
	taken bool
	began time.Time
	job   *conversation.Job // once it was sent
}

// leave gives the turn to the next, as soon as the sandbox can take it.
func (t *turn) leave() {
	if t.job == nil {
		t.s.queue.leave()
		return
	}
	select {
	case <-t.job.Finished():
		t.s.queue.leave()
	default:
		go func() {
			select {
			case <-t.job.Finished():
			case <-t.s.use.over.Done():
			}
			t.s.queue.leave()
		}()
	}
}

// Run implements Runner.
func (t *turn) Run(ctx context.Context, spec runner.Spec, events runner.Sink) (*runner.Outcome, error) {
	t.taken, t.began = true, time.Now()
	out, err := t.run(ctx, spec, events)
	if err != nil {
		return nil, fmt.Errorf("run %s in session %s: %w", spec.ID, t.s.spec.ID, err)
	}
	return out, nil
}

func (t *turn) run(ctx context.Context, spec runner.Spec, events runner.Sink) (*runner.Outcome, error) {
	if err := t.s.put(ctx, spec.Inputs); err != nil {
		return t.s.notRun(ctx, err, t.began)
	}
	if err := t.s.enter(ctx); err != nil {
		return t.s.notRun(ctx, err, t.began)
	}
	spec.Observe.Tell(runner.PhaseAcquire, t.began)
	spec.Inputs, spec.Network, spec.Env = nil, nil, nil
	began := time.Now()
	var err error
	t.job, err = t.s.conversation.Begin(ctx, spec)
	t.s.exit()
	if err != nil {
		t.s.lose(err)
		return t.s.notRun(ctx, err, began)
	}
	out, err := t.job.Receive(ctx, events)
	if t.job.Answered() {
		out.KernelRestarted = t.s.restarted(out.KernelRestarted)
	}
	if over := t.s.conversation.Over(); over != nil {
		t.s.lose(over)
	}
	return out, err
}
