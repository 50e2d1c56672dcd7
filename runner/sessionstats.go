package runner

import (
	"context"
	"errors"
	"maps"
	"time"
)

// SessionStats is what there is of sessions.
type SessionStats struct {
	Open    int                `json:"open"`    // also where nobody uses them
	Running int                `json:"running"` // have a run that has a place
	Idle    int                `json:"idle"`    // are used by nobody now
	Waiting int                `json:"waiting"` // runs that wait, for their session's turn or for a place
	Opened  int                `json:"opened"`  // since the service's start
	Ended   map[GoneReason]int `json:"ended"`   // the same, by reason
}

// Stats returns what there is now.
func (l *LiveSessions) Stats() SessionStats {
	open := l.all()
	l.mu.Lock()
	out := SessionStats{Open: len(open), Opened: l.opened, Ended: maps.Clone(l.ended)}
	l.mu.Unlock()
	for _, s := range open {
		info := s.Info()
		out.Waiting += info.Waiting
		if info.Running {
			out.Running++
		}
		if _, idle := s.use.idleSince(); idle {
			out.Idle++
		}
	}
	return out
}

// errDetached is the cause where this process has left a session to a later one.
var errDetached = errors.New("the service has ended, and the session goes on without it")

// Detach ends this process's part in the sessions, once their runs are over: those
// whose sandbox is kept go on without it, the others are closed. It returns when that
// is done, or ctx ends.
func (l *LiveSessions) Detach(ctx context.Context) error {
	l.shut()
	for _, s := range l.all() {
		if s.kept.Load() {
			s.detach()
		} else {
			s.finish(&GoneError{Reason: GoneClosed, At: time.Now()})
		}
	}
	return l.settled(ctx)
}

// detach lets go of a session's sandbox.
func (s *LiveSession) detach() {
	end := &GoneError{Reason: GoneLost, At: time.Now(), Err: errDetached}
	if !s.use.stop(end, time.Time{}) {
		return
	}
	s.link.close(end)
	s.all.pool.release(s.link.c)
	close(s.ended)
}
