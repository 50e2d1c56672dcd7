package session

import (
	"context"
	"fmt"
	"time"

	"notebox/runner"
	"notebox/runner/internal/conversation"
	"notebox/runner/internal/frame"
)

// ttlSlack is how much longer than its session a sandbox lives by itself, so that it is
// the service that ends it, with what a run has to say.
const ttlSlack = 2 * closeGrace

// begin makes the sandbox the session's, and returns when it is open. If it
// fails, the caller ends the sandbox.
func (s *Session) begin(ctx context.Context, inputs []runner.Input) error {
	starting, cancel := context.WithTimeoutCause(ctx, s.all.pool.StartTimeout(), conversation.ErrDeadline)
	defer cancel()
	hello := frame.Session{Token: s.token, TTLSeconds: (time.Until(s.use.expires) + ttlSlack).Seconds(), Env: s.spec.Env}
	err := s.conversation.Keep(starting, hello, s.spec.Network, s.spec.ID)
	if err == nil {
		err = s.put(ctx, inputs)
		if cause := s.conversation.Over(); cause != nil && ctx.Err() == nil {
			err = cause
		}
	}
	if err == nil {
		err = s.record(ctx)
	}
	if err == nil && !s.open() {
		err = &runner.Error{Code: runner.CodeUnavailable, Message: "the service is going down"}
	}
	if err != nil {
		s.use.stop(&runner.GoneError{Reason: runner.GoneClosed, At: time.Now(), Err: err}, time.Time{})
		s.conversation.Close(err)
		if s.isKept() { // no later process is to hear of it
			s.all.records.forget(s.recorded().file())
		}
	}
	return err
}

// put writes files before the session is open.
func (s *Session) put(ctx context.Context, inputs []runner.Input) error {
	for _, in := range inputs {
		if err := s.putOne(ctx, in); err != nil {
			return fmt.Errorf("input file: %w", err)
		}
	}
	return nil
}

func (s *Session) putOne(ctx context.Context, in runner.Input) error {
	content, err := in.Open()
	if err != nil {
		return err
	}
	defer content.Close()
	_, err = s.Write(ctx, in.Path, content)
	return err
}

// open makes the session known, and reports whether it could.
func (s *Session) open() bool {
	if !s.all.add(s) {
		return false
	}
	s.use.watch(func(reason runner.GoneReason, unused time.Time) bool {
		end := &runner.GoneError{Reason: reason, At: time.Now()}
		if reason == runner.GoneIdle {
			return s.endIdle(unused, end)
		}
		s.finish(end)
		return true
	})
	s.conversation.OnEnd(s.lose)
	return true
}
