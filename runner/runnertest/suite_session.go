package runnertest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/runner"
)

// SessionHarness is what sessions bring to their conformance test.
type SessionHarness struct {
	// Sessions returns sessions of nobody else, which are closed when the test ends.
	Sessions    func(t *testing.T) runner.Sessions
	Environment runner.Environment
	// Limits of the suite's sessions and runs; their Timeout is how long those take
	// which are to reach it.
	Limits runner.Limits
	// Brief is how long a session is open that is to end by itself: enough for its start.
	Brief time.Duration
}

// TestSessions tests that sessions do what their contract says.
func TestSessions(t *testing.T, h SessionHarness) {
	for _, s := range []struct {
		name string
		test func(*testing.T, SessionHarness)
	}{
		{"State", testSessionState},
		{"Order", testSessionOrder},
		{"Apart", testSessionsApart},
		{"Owners", testSessionOwners},
		{"Interrupt", testSessionInterrupt},
		{"Restart", testSessionRestart},
		{"RestartOfARun", testSessionRestartOfARun},
		{"KernelDeath", testSessionKernelDeath},
		{"Ends", testSessionEnds},
		{"Commands", testSessionCommands},
		{"Inputs", testSessionInputs},
		{"Files", testSessionFiles},
		{"Refusals", testSessionRefusals},
		{"NewFiles", testSessionNewFiles},
		{"FilesAtOnce", testSessionFilesAtOnce},
		{"Expiry", testSessionExpiry},
		{"Close", testSessionClose},
	} {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			s.test(t, h)
		})
	}
}

const sessionOwner = "owner"

// opened is a session in a test.
type openedSession struct {
	runner.Session
	h   SessionHarness
	all runner.Sessions
}

// open opens a session of new Sessions.
func (h SessionHarness) open(t *testing.T, change ...func(*runner.SessionSpec)) *openedSession {
	return h.openIn(t, h.Sessions(t), change...)
}

func (h SessionHarness) openIn(t *testing.T, all runner.Sessions, change ...func(*runner.SessionSpec)) *openedSession {
	s, err := h.tryOpen(t, all, change...)
	require.NoError(t, err)
	return &openedSession{s, h, all}
}

func (h SessionHarness) tryOpen(t *testing.T, all runner.Sessions, change ...func(*runner.SessionSpec)) (runner.Session, error) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	spec := runner.SessionSpec{
		ID: newService(), Owner: sessionOwner, Environment: h.Environment, Limits: h.Limits,
		TTL: time.Hour, Idle: time.Hour,
	}
	for _, c := range change {
		c(&spec)
	}
	return all.Open(ctx, spec)
}

// sessionRun is a run in a session that has come to its end.
type sessionRun struct {
	out      *runner.Outcome
	err      error
	executed Executed
	sink     *Recorder
}

// spec is that of a run with time enough.
func (s *openedSession) spec(cells ...string) runner.Spec {
	limits := s.h.Limits
	limits.Timeout = patience
	return runner.Spec{ID: newService(), Owner: sessionOwner, Notebook: Notebook(cells...), Limits: limits}
}

// run makes a run that is to have an outcome.
func (s *openedSession) run(t *testing.T, cells ...string) sessionRun {
	t.Helper()
	return s.do(t, t.Context(), s.spec(cells...), nil)
}

func (s *openedSession) do(t *testing.T, ctx context.Context, spec runner.Spec, onOutput func(runner.Event)) sessionRun {
	t.Helper()
	r := s.try(t, ctx, spec, onOutput)
	require.NoError(t, r.err)
	return r
}

func (s *openedSession) try(t *testing.T, ctx context.Context, spec runner.Spec, onOutput func(runner.Event)) sessionRun {
	ctx, cancel := context.WithTimeout(ctx, 3*patience)
	defer cancel()
	r := sessionRun{sink: NewRecorder(t)}
	r.sink.OnOutput = onOutput
	r.out, r.err = s.Run(ctx, spec, r.sink)
	r.sink.Seal()
	if r.err == nil && r.out.Notebook != nil {
		r.executed, r.err = ParseExecuted(r.out)
	}
	return r
}

// start makes a run in the background, and returns when it has printed something.
func (s *openedSession) start(t *testing.T, ctx context.Context, spec runner.Spec) <-chan sessionRun {
	t.Helper()
	began, ended := make(chan struct{}, 1000), make(chan sessionRun, 1)
	go func() {
		ended <- s.try(t, ctx, spec, func(runner.Event) {
			select {
			case began <- struct{}{}:
			default:
			}
		})
	}()
	select {
	case <-began:
	case r := <-ended:
		require.Fail(t, "the run ended at once", "%+v", r)
	case <-time.After(3 * patience):
		require.Fail(t, "the run has not begun")
	}
	return ended
}

func await(t *testing.T, ended <-chan sessionRun) sessionRun {
	t.Helper()
	select {
	case r := <-ended:
		return r
	case <-time.After(3 * patience):
		require.FailNow(t, "the run has not ended")
		return sessionRun{}
	}
}

func (r sessionRun) is(t *testing.T, status runner.Status, restarted bool) sessionRun {
	t.Helper()
	require.NoError(t, r.err)
	require.Equal(t, status, r.out.Status)
	require.Equal(t, restarted, r.out.KernelRestarted, "kernel restarted")
	return r
}

func (r sessionRun) printed(t *testing.T, want string) {
	t.Helper()
	r.is(t, runner.StatusOK, false)
	require.Equal(t, want, r.executed.Stdout(0))
	streamed, err := StreamedText(r.sink.Events())
	require.NoError(t, err)
	require.Equal(t, want, streamed)
}

func (r sessionRun) raised(t *testing.T, names ...string) {
	t.Helper()
	require.NoError(t, r.err)
	require.Equal(t, runner.StatusError, r.out.Status)
	require.Equal(t, names, r.executed.Errors())
}

// gone waits until a session is over, and returns why.
func (s *openedSession) gone(t *testing.T) runner.GoneReason {
	t.Helper()
	end := (*runner.GoneError)(nil)
	info := s.Info()
	require.Eventually(t, func() bool {
		_, err := s.all.Find(info.Owner, info.ID)
		return errors.As(err, &end)
	}, 2*patience, 20*time.Millisecond)
	require.Empty(t, s.all.List(info.Owner))
	for call, err := range map[string]error{
		"Run":       s.try(t, t.Context(), s.spec(CellHello), nil).err,
		"Interrupt": s.Interrupt(t.Context()),
		"Restart":   s.Restart(t.Context()),
		"Delete":    s.Delete(t.Context(), "x"),
		"Close":     s.Close(t.Context()),
	} {
		again := (*runner.GoneError)(nil)
		require.ErrorAs(t, err, &again, call)
		require.Equal(t, end.Reason, again.Reason, call)
	}
	return end.Reason
}
