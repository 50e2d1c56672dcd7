package runner

import (
	"context"
	"time"
)

// Close implements Session.
func (s *LiveSession) Close(ctx context.Context) error {
	if !s.finish(&GoneError{Reason: GoneClosed, At: time.Now()}) {
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
func (s *LiveSession) lose(cause error) {
	s.link.close(cause)
	s.finish(&GoneError{Reason: GoneLost, At: time.Now(), Err: cause})
}

// finish ends the session in the background, and reports whether it was open.
func (s *LiveSession) finish(end *GoneError) bool { return s.endIdle(time.Time{}, end) }

// endIdle is finish of a session that was not used since then, if not zero.
func (s *LiveSession) endIdle(unused time.Time, end *GoneError) bool {
	s.all.mu.Lock()
	defer s.all.mu.Unlock()
	return s.endIdleLocked(unused, end)
}

func (s *LiveSession) endIdleLocked(unused time.Time, end *GoneError) bool {
	if s.all.open[s.key()] != s || !s.use.stop(end, unused) {
		return false
	}
	s.all.work.Go(func() { s.wind(end) }) // under the lock, which settled's callers had after it
	return true
}

// wind ends what goes on in a session that is over, and its sandbox.
func (s *LiveSession) wind(end *GoneError) {
	if end.Reason == GoneLost {
		s.all.log.Error("a session was lost", "session", s.spec.ID, "sandbox", s.link.c.sandbox.ID(), "error", explainExitOfRun(end.Err, s.all.log))
	}
	s.recordAgain() // first: where this process is killed now, the sandbox is reaped
	s.queue.drained(closeGrace)
	s.link.close(end)
	s.link.network.wait()
	s.all.pool.done(s.link.c)
	s.all.remove(s, end)
	if s.spec.Ended != nil {
		s.spec.Ended()
	}
	close(s.ended)
}

// orGone is err, or how the session ended where that is why.
func (s *LiveSession) orGone(err error) error {
	if err == nil {
		return nil
	}
	if cause := s.link.over(); cause != nil { // of which the session is about to be told
		s.lose(cause)
	}
	if end := s.use.end(); end != nil {
		return end
	}
	return err
}
