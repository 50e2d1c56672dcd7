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

// Once makes one run on an engine, with a sandbox that is started for it, and
// returns when that is removed, or cannot be.
func Once(ctx context.Context, e runner.Engine, log *slog.Logger, spec runner.Spec, events runner.Sink) (*runner.Outcome, error) {
	pool := pool.New(e, pool.Options{Log: log})
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		_ = pool.Close(ctx) // what is left is what callers look for
	}()
	return pool.Run(ctx, spec, events)
}

// Single returns a Runner on an engine without a pool. What it has started is gone
// at the end of the test.
func Single(t *testing.T, e runner.Engine, log *slog.Logger) runner.Runner {
	t.Helper()
	pool := pool.New(e, pool.Options{Log: log})
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		require.NoError(t, pool.Close(ctx))
	})
	return pool
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
