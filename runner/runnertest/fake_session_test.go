package runnertest_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/runner"
	"notebox/runner/runnertest"
)

func TestFakeSessions(t *testing.T) {
	limits := runner.DefaultLimits()
	limits.Timeout, limits.DataSize = 50*time.Millisecond, 4<<20
	runnertest.TestSessions(t, runnertest.SessionHarness{
		Sessions: func(t *testing.T) runner.Sessions {
			log := slog.New(slog.NewTextHandler(t.Output(), nil))
			host := runnertest.NewFake()
			pool := runner.NewPool(host.Engine("test"), runner.PoolOptions{Log: log})
			all := runner.NewLiveSessions(pool, runner.NewAdmission(nil, runner.AdmissionLimits{MaxRunning: 2}), runner.SessionOptions{Log: log})
			t.Cleanup(func() {
				ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
				defer cancel()
				require.NoError(t, all.Close(ctx))
				require.NoError(t, pool.Close(ctx))
				require.Empty(t, host.Sandboxes(""))
			})
			return all
		},
		Environment: runner.Environment{Name: "fake", Image: "fake"},
		Limits:      limits,
		Brief:       time.Second,
	})
}
