package runnertest

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/runner"
	"notebox/runner/admission"
	"notebox/runner/pool"
	"notebox/runner/session"
)

// SessionsOn returns sessions on a real engine, of which two run at one time, so that a small machine
// has room for them. They are closed at the end of the test.
func SessionsOn(t testing.TB, e runner.Engine, log *slog.Logger) runner.Sessions {
	pool := pool.New(e, pool.Options{Log: log})
	all := session.New(pool, admission.New(pool, admission.Limits{MaxRunning: 2}), session.Options{Log: log})
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		require.NoError(t, all.Close(ctx))
		require.NoError(t, pool.Close(ctx))
	})
	return all
}

// Sessions returns sessions whose sandboxes are a host's, at most so many; 0 is no bound.
// They are closed at the end of the test, and leave nothing.
func Sessions(t testing.TB, host *Fake, maxSandboxes int) *session.Sessions {
	log := Log(t)
	pool := pool.New(host.Engine("test"), pool.Options{Log: log, MaxSandboxes: maxSandboxes})
	all := session.New(pool, admission.New(nil, admission.Limits{MaxRunning: 100}), session.Options{MaxSessions: 1000, Log: log})
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		require.NoError(t, all.Close(ctx))
		require.NoError(t, pool.Close(ctx))
		require.Empty(t, host.Sandboxes(""))
	})
	return all
}
