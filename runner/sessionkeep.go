package runner

import "context"

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
	s.name = name
	s.mu.Unlock()
	if err := s.all.records.write(s.recorded); err != nil {
		return &Error{Code: CodeUnavailable, Message: "the session could not be recorded", Err: err}
	}
	s.kept.Store(true)
	return nil
}

// recordAgain writes down what has changed. Where it cannot be, a later process knows
// less.
func (s *LiveSession) recordAgain() {
	if !s.kept.Load() {
		return
	}
	if err := s.all.records.write(s.recorded); err != nil {
		s.all.log.Warn("a session is not recorded as it is", "session", s.spec.ID, "error", err)
	}
}

// unrecord has no later process hear of a session that never was open.
func (s *LiveSession) unrecord() {
	if s.kept.Load() {
		s.all.records.forget(s.recorded().file())
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
	r.Sandbox, r.Token, r.Limits, r.KernelRestarts = s.name, s.token, s.spec.Limits, s.restarts
	return r
}
