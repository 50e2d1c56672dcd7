package runner

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Run implements Session.
//
//  1. It waits for its turn in the session.
//  2. It takes a place from the admission, as a run of single use does.
//  3. Its files are written, the job is sent, and what comes of it received.
//  4. The turn goes to the next when the sandbox is done with the job.
func (s *LiveSession) Run(ctx context.Context, spec Spec, events Sink) (*Outcome, error) {
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
	turn := &sessionTurn{s: s}
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
func (s *LiveSession) notRun(ctx context.Context, err error, asked time.Time) (*Outcome, error) {
	err = s.orGone(err)
	switch end := (*GoneError)(nil); {
	case isLost(err):
		return nil, err
	case ctx.Err() != nil || errors.As(err, &end):
		return &Outcome{Status: StatusCancelled, Usage: Usage{Queue: time.Since(asked)}}, nil
	}
	return nil, err
}

// isLost reports whether an error is the end of a session that nobody wanted.
func isLost(err error) bool {
	end := (*GoneError)(nil)
	return errors.As(err, &end) && end.Reason == GoneLost
}

// sessionTurn is a Runner of the one run that has the session's turn.
type sessionTurn struct {
	s     *LiveSession
	taken bool
	began time.Time
	job   *sessionJob // once it was sent
}

// leave gives the turn to the next, as soon as the sandbox can take it.
func (t *sessionTurn) leave() {
	if t.job == nil {
		t.s.queue.leave()
		return
	}
	select {
	case <-t.job.finished:
		t.s.queue.leave()
	default:
		go func() {
			t.job.ended(t.s.use.over)
			t.s.queue.leave()
		}()
	}
}

// Run implements Runner.
func (t *sessionTurn) Run(ctx context.Context, spec Spec, events Sink) (*Outcome, error) {
	t.taken, t.began = true, time.Now()
	out, err := t.run(ctx, spec, events)
	if err != nil {
		return nil, fmt.Errorf("run %s in session %s: %w", spec.ID, t.s.spec.ID, err)
	}
	return out, nil
}

func (t *sessionTurn) run(ctx context.Context, spec Spec, events Sink) (*Outcome, error) {
	if err := t.s.put(ctx, spec.Inputs); err != nil {
		return t.s.notRun(ctx, err, t.began)
	}
	if err := t.s.enter(ctx); err != nil {
		return t.s.notRun(ctx, err, t.began)
	}
	spec.Observe.tell(PhaseAcquire, t.began)
	spec.Inputs, spec.Network, spec.Env = nil, nil, nil
	began := time.Now()
	taking, giveUp := context.WithCancel(ctx) // of the Sink
	defer giveUp()
	t.job = newSessionJob(spec)
	deadline := newJobDeadline(t.s, t.job)
	defer deadline.leave()
	err := t.s.send(t.job, spec)
	t.s.exit()
	if err != nil {
		return t.s.notRun(ctx, err, began)
	}
	deadline.sent(spec.Limits.Timeout)
	defer context.AfterFunc(ctx, func() {
		if !isLost(context.Cause(ctx)) {
			deadline.cancel()
		}
	})()
	r := &reception{log: t.s.all.log, next: t.job.next, spec: spec, events: events, began: time.Now()}
	defer r.tell(began)
	stored := func() bool { return true }
	err = r.takeAll(taking, func() { // the Sink's time for files begins
		stored = time.AfterFunc(collectTimeout, giveUp).Stop
	})
	stored()
	if r.out.Status != "" {
		r.out.KernelRestarted = t.s.restarted(r.out.KernelRestarted)
	}
	if err == nil {
		return &r.out, nil
	}
	if errors.Is(err, errAbandoned) && r.out.Status != "" {
		r.out.Skipped = append(r.out.Skipped, Skipped{dataFolder, "the run was cancelled before all files were read"})
		return &r.out, nil
	}
	if !errors.Is(err, errAbandoned) {
		t.s.lose(err) // what came was not in order, or nothing comes
	}
	cancelled := ctx.Err() != nil && !isLost(context.Cause(ctx))
	return r.cutOff(cancelled, err, deadline.late())
}

// send sends a job. A sandbox that does not take it is lost.
func (s *LiveSession) send(job *sessionJob, spec Spec) error {
	timer := time.AfterFunc(sendTimeout, func() { s.link.close(fmt.Errorf("send the job: %w", errDeadline)) })
	defer timer.Stop()
	err := s.link.begin(job, spec)
	if err != nil {
		job.fail(err)
		s.lose(err)
	}
	return err
}
