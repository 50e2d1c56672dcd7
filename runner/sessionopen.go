package runner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"notebox/runner/internal/frame"
)

// ttlSlack is how much longer than its session a sandbox lives by itself, so that it is
// the service that ends it, with what a run has to say.
const ttlSlack = 2 * closeGrace

// begin makes the sandbox the session's, and returns when it is open. Where it
// fails, the caller ends the sandbox.
func (s *LiveSession) begin(ctx context.Context, inputs []Input) error {
	starting, cancel := context.WithTimeoutCause(ctx, s.all.pool.options.StartTimeout, errDeadline)
	defer cancel()
	err := s.keep(starting)
	if err == nil {
		err = s.put(ctx, inputs)
		if cause := s.link.over(); cause != nil && ctx.Err() == nil {
			err = cause
		}
	}
	if err == nil {
		err = s.record(ctx)
	}
	if err == nil && !s.open() {
		err = &Error{Code: CodeUnavailable, Message: "the service is going down"}
	}
	if err != nil {
		s.use.stop(&GoneError{Reason: GoneClosed, At: time.Now(), Err: err}, time.Time{})
		s.link.close(err)
		s.unrecord()
	}
	return err
}

// keep sends the session frame and waits for its answer.
func (s *LiveSession) keep(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { s.link.close(context.Cause(ctx)) })
	defer stop()
	waited := s.link.c.ahead != nil
	answer := s.link.expect(frame.KindKept)
	s.link.serve(s.spec.Network, s.spec.ID)
	hello := frame.Session{Token: s.token, TTLSeconds: (time.Until(s.use.expires) + ttlSlack).Seconds(), Env: s.spec.Env}
	if hello.Env == nil {
		hello.Env = map[string]string{}
	}
	if s.spec.Network != nil {
		hello.Network = &frame.Network{CA: string(s.spec.Network.CA())}
	}
	err := s.link.sendSession(hello)
	if err == nil {
		go s.link.read()
		err = s.link.await(ctx, answer)
	}
	switch exit := (*ExitError)(nil); {
	case errors.As(err, &exit) && waited:
		return fmt.Errorf("%w: %w", errGone, err)
	case errors.Is(err, errDeadline):
		return &Error{Code: CodeUnavailable, Message: "starting a session took too long", RetryAfter: startRetry, Err: err}
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return notStarted(err)
}

// put writes files before the session is open.
func (s *LiveSession) put(ctx context.Context, inputs []Input) error {
	for _, in := range inputs {
		if err := s.putOne(ctx, in); err != nil {
			return fmt.Errorf("input file: %w", err)
		}
	}
	return nil
}

func (s *LiveSession) putOne(ctx context.Context, in Input) error {
	content, err := in.Open()
	if err != nil {
		return err
	}
	defer content.Close()
	_, err = s.Write(ctx, in.Path, content)
	return err
}

// open makes the session known, and reports whether it could.
func (s *LiveSession) open() bool {
	if !s.all.add(s) {
		return false
	}
	s.use.watch(func(reason GoneReason, unused time.Time) bool {
		end := &GoneError{Reason: reason, At: time.Now()}
		if reason == GoneIdle {
			return s.endIdle(unused, end)
		}
		s.finish(end)
		return true
	})
	if end := s.link.over(); end != nil { // it ended before it was known
		s.lose(end)
	}
	return true
}
