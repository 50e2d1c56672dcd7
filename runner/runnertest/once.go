package runnertest

import (
	"context"
	"log/slog"
	"time"

	"notebox/runner"
)

// Once makes one run on an engine, with a sandbox that is started for it, and
// returns when that is removed, or cannot be.
func Once(ctx context.Context, e runner.Engine, log *slog.Logger, spec runner.Spec, events runner.Sink) (*runner.Outcome, error) {
	pool := runner.NewPool(e, runner.PoolOptions{Log: log})
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		_ = pool.Close(ctx) // what is left is what callers look for
	}()
	return runner.NewSingleUse(pool).Run(ctx, spec, events)
}
