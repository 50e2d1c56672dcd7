package metrics

import (
	"context"
	"errors"

	"notebox/runner"
)

// Sessions returns Sessions whose runs are counted and timed as all others are, and so
// are those that could not be opened.
func (m *Metrics) Sessions(next runner.Sessions) runner.Sessions {
	return &meteredSessions{runner.DecorateSessions(next, m.Runner), m}
}

type meteredSessions struct {
	runner.Sessions
	metrics *Metrics
}

// Open implements runner.Sessions.
func (s *meteredSessions) Open(ctx context.Context, spec runner.SessionSpec) (runner.Session, error) {
	session, err := s.Sessions.Open(ctx, spec)
	if known := (*runner.Error)(nil); errors.As(err, &known) {
		switch known.Code {
		case runner.CodeFull, runner.CodeUnavailable:
			s.metrics.refusals.WithLabelValues(string(known.Code)).Inc()
		}
	}
	return session, err
}
