package runner

import (
	"context"
	"errors"
	"time"
)

// errDetached is why a session is over for this process, and not for the next.
var errDetached = errors.New("the service ends, and its sessions go on")

// keeper is the engine, where its sandboxes can outlive this process and sessions are
// recorded; else nil.
func (l *LiveSessions) keeper() Keeper {
	if l.records.folder == "" {
		return nil
	}
	k, _ := l.pool.engine.(Keeper)
	return k
}

// record has a later process find the session again.
func (s *LiveSession) record(ctx context.Context) error {
	keeper := s.all.keeper()
	if keeper == nil {
		return nil
	}
	name, err := keeper.Keep(ctx, s.link.c.sandbox)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.kept = name
	s.mu.Unlock()
	if err := s.all.records.write(s.recorded); err != nil {
		return &Error{Code: CodeUnavailable, Message: "the session could not be recorded", Err: err}
	}
	return nil
}

// recordAgain writes down what has changed. Where it cannot be, a later process knows
// less.
func (s *LiveSession) recordAgain() {
	s.mu.Lock()
	kept := s.kept
	s.mu.Unlock()
	if kept == "" {
		return
	}
	if err := s.all.records.write(s.recorded); err != nil {
		s.all.log.Warn("a session is not recorded as it is", "session", s.spec.ID, "error", err)
	}
}

// recorded is the session's record as it is now.
func (s *LiveSession) recorded() sessionRecord {
	info := s.Info()
	r := sessionRecord{
		ID: info.ID, Owner: info.Owner, Environment: info.Environment, Network: info.Network,
		Created: info.Created, Expires: info.Expires, Idle: info.Idle, Note: info.Note,
	}
	if end := s.use.end(); end != nil {
		r.Gone = &goneRecord{end.Reason, end.At}
		return r
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r.Sandbox, r.Token, r.Limits, r.KernelRestarts = s.kept, s.token, s.spec.Limits, s.restarts
	return r
}

// Detach leaves the sessions to a later process, which goes on with them by Restore, and
// returns when that is done, or ctx ends; what runs in them is no more heard of. Their
// sandboxes end by themselves where none comes. There are no more sessions from then on.
// Where there are no records, it is Close.
func (l *LiveSessions) Detach(ctx context.Context) error {
	if l.keeper() == nil {
		return l.Close(ctx)
	}
	l.shut()
	for _, s := range l.all() {
		s.detach()
	}
	return l.settled(ctx)
}

func (s *LiveSession) detach() {
	end := &GoneError{Reason: GoneLost, At: time.Now(), Err: errDetached}
	s.all.mu.Lock()
	defer s.all.mu.Unlock()
	if s.all.open[s.key()] != s || !s.use.stop(end, time.Time{}) {
		return
	}
	s.all.work.Go(func() {
		s.queue.drained(closeGrace)
		s.link.close(end)
		s.all.pool.release(s.link.c)
		s.all.mu.Lock()
		defer s.all.mu.Unlock()
		delete(s.all.open, s.key())
		close(s.ended)
	})
}
