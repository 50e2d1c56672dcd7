package runnertest_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/runner"
	"notebox/runner/admission"
	"notebox/runner/pool"
	"notebox/runner/runnertest"
	"notebox/runner/session"
)

func TestFakeSessions(t *testing.T) {
	limits := runner.DefaultLimits()
	limits.Timeout, limits.DataSize = 50*time.Millisecond, 4<<20
	runnertest.TestSessions(t, runnertest.SessionHarness{
		Sessions: func(t *testing.T) runner.Sessions {
			log := slog.New(slog.NewTextHandler(t.Output(), nil))
			host := runnertest.NewFake()
			pool := pool.New(host.Engine("test"), pool.Options{Log: log})
			all := session.New(pool, admission.New(nil, admission.Limits{MaxRunning: 2}), session.Options{Log: log})
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
