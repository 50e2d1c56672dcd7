package session

import (
	"context"
	"time"

	"notebox/runner"
	"notebox/runner/internal/conversation"
)

// Close implements Session.
func (s *Session) Close(ctx context.Context) error {
	if !s.finish(&runner.GoneError{Reason: runner.GoneClosed, At: time.Now()}) {
		return s.use.end()
	}
	select {
	case <-s.ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// lose ends a session whose sandbox is no good any more.
func (s *Session) lose(cause error) {
	s.conversation.Close(cause)
	s.finish(&runner.GoneError{Reason: runner.GoneLost, At: time.Now(), Err: cause})
}

// finish ends the session in the background, and reports whether it was open.
func (s *Session) finish(end *runner.GoneError) bool { return s.endIdle(time.Time{}, end) }

// endIdle is finish of a session that was not used since then, if not zero.
func (s *Session) endIdle(unused time.Time, end *runner.GoneError) bool {
	s.all.mu.Lock()
	defer s.all.mu.Unlock()
	return s.endIdleLocked(unused, end)
}

func (s *Session) endIdleLocked(unused time.Time, end *runner.GoneError) bool {
	if s.all.open[s.key()] != s || !s.use.stop(end, unused) {
		return false
	}
	s.all.work.Go(func() { s.wind(end) }) // under the lock, which settled's callers take after it
	return true
}

// wind ends what goes on in a session that is over, and its sandbox.
func (s *Session) wind(end *runner.GoneError) {
	if end.Reason == runner.GoneLost {
		s.all.log.Error("a session was lost", "session", s.spec.ID, "sandbox", s.conversation.Sandbox.ID(), "error", conversation.ExplainExitOfRun(end.Err, s.all.log))
	}
	s.recordAgain() // first: if this process is killed now, the sandbox is reaped
	s.queue.drained(closeGrace)
	s.conversation.Close(end)
	s.conversation.Wait()
	s.all.pool.Done(s.conversation, false)
	s.all.remove(s, end)
	if s.spec.Ended != nil {
		s.spec.Ended()
	}
	close(s.ended)
}

// orGone is err, or how the session ended if that is why.
func (s *Session) orGone(err error) error {
	if err == nil {
		return nil
	}
	if cause := s.conversation.Over(); cause != nil { // of which the session is about to be told
		s.lose(cause)
	}
	if end := s.use.end(); end != nil {
		return end
	}
	return err
}
