package session

import (
	"context"
	"errors"
	"time"

	"notebox/runner"
)

// errDetached is the cause if this process has left a session to a later one.
var errDetached = errors.New("the service has ended, and the session goes on without it")

// keeper is the engine, if its sandboxes can outlive this process and sessions are
// recorded; else nil.
func (l *Sessions) keeper() runner.Keeper {
	if l.records.folder == "" {
		return nil
	}
	return l.pool.Keeper()
}

// record writes down what a later process needs to find the session again.
func (s *Session) record(ctx context.Context) error {
	keeper := s.all.keeper()
	if keeper == nil {
		return nil
	}
	name, err := keeper.Keep(ctx, s.conversation.Sandbox)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.name = name
	s.mu.Unlock()
	if err := s.all.records.write(s.recorded); err != nil {
		return &runner.Error{Code: runner.CodeUnavailable, Message: "the session could not be recorded", Err: err}
	}
	return nil
}

// isKept reports whether a later process can go on with the session.
func (s *Session) isKept() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.name != ""
}

// recordAgain writes down what has changed. If that fails, a later process knows less.
func (s *Session) recordAgain() {
	if !s.isKept() {
		return
	}
	if err := s.all.records.write(s.recorded); err != nil {
		s.all.log.Warn("a session is not recorded as it is", "session", s.spec.ID, "error", err)
	}
}

// recorded is the session's record as it is now.
func (s *Session) recorded() savedSession {
	info := s.Info()
	r := savedSession{
		ID: info.ID, Owner: info.Owner, Environment: info.Environment, Network: info.Network,
		Created: info.Created, Expires: info.Expires, Idle: info.Idle, Note: info.Note,
	}
	if end := s.use.end(); end != nil && end.Err != errDetached {
		r.Gone = &goneRecord{end.Reason, end.At}
		return r
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r.Sandbox, r.Token, r.Limits, r.KernelRestarts = s.name, s.token, s.spec.Limits, s.restarts
	return r
}

// Detach ends this process's part in the sessions, once their runs are over: those that
// are recorded go on without it, until a later process restores them or the time of
// their sandboxes is over; the others are closed. It returns when that is done, or ctx
// ends. There are no more sessions from then on.
func (l *Sessions) Detach(ctx context.Context) error {
	l.shut()
	for _, s := range l.all() {
		if s.isKept() {
			s.detach()
		} else {
			s.finish(&runner.GoneError{Reason: runner.GoneClosed, At: time.Now()})
		}
	}
	return l.settled(ctx)
}

// detach lets go of a session's sandbox.
func (s *Session) detach() {
	end := &runner.GoneError{Reason: runner.GoneLost, At: time.Now(), Err: errDetached}
	if !s.use.stop(end, time.Time{}) {
		return
	}
	s.conversation.Close(end)
	s.all.pool.Release(s.conversation)
	close(s.ended)
}
