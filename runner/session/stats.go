package session

import (
	"maps"

	"notebox/runner"
)

// Stats is what there is of sessions.
type Stats struct {
	Open    int                       `json:"open"`    // even if nobody uses them
	Running int                       `json:"running"` // have a run that has a place
	Idle    int                       `json:"idle"`    // are used by nobody now
	Waiting int                       `json:"waiting"` // runs that wait, for their session's turn or for a place
	Opened  int                       `json:"opened"`  // since the service's start
	Ended   map[runner.GoneReason]int `json:"ended"`   // the same, by reason
}

// Stats returns what there is now.
func (l *Sessions) Stats() Stats {
	open := l.all()
	l.mu.Lock()
	out := Stats{Open: len(open), Opened: l.opened, Ended: maps.Clone(l.ended)}
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
