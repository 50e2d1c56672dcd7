package metrics_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"notebox/runner"
)

// oneSession is a session in which nothing runs long.
type oneSession struct {
	runner.Session
	run error
}

func (s oneSession) Info() runner.SessionInfo { return runner.SessionInfo{Environment: "jupyter"} }

func (s oneSession) Run(context.Context, runner.Spec, runner.Sink) (*runner.Outcome, error) {
	return &runner.Outcome{Status: runner.StatusError}, s.run
}

// sessionsOf are Sessions with that one.
type sessionsOf struct {
	session oneSession
	refuse  error
}

func (s sessionsOf) Open(context.Context, runner.SessionSpec) (runner.Session, error) {
	return s.session, s.refuse
}
func (s sessionsOf) Find(string, string) (runner.Session, error) { return s.session, s.refuse }
func (s sessionsOf) List(string) []runner.SessionInfo            { return nil }

// TestSessions: runs in them count as all others do, and refusals to open one.
func TestSessions(t *testing.T) {
	m := newMetrics()
	session, err := m.Sessions(sessionsOf{}).Find("owner", "id")
	require.NoError(t, err)
	_, err = session.Run(t.Context(), runner.Spec{}, nil)
	require.NoError(t, err)
	requireMetric(t, m, "notebox_runs_total{environment=jupyter,status=error} 1")

	session, err = m.Sessions(sessionsOf{session: oneSession{run: &runner.GoneError{Reason: runner.GoneIdle}}}).Open(t.Context(), runner.SessionSpec{})
	require.NoError(t, err)
	_, err = session.Run(t.Context(), runner.Spec{}, nil)
	require.Error(t, err)
	requireMetric(t, m, "notebox_runs_total{environment=jupyter,status=failed} 0")

	_, err = m.Sessions(sessionsOf{refuse: &runner.Error{Code: runner.CodeFull}}).Open(t.Context(), runner.SessionSpec{})
	require.Error(t, err)
	requireMetric(t, m, "notebox_refusals_total{reason=full} 1")
}
