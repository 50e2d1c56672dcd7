package runnertest

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/runner"
	"notebox/runner/pool"
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
