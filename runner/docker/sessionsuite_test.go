package docker

import (
	"context"
	"crypto/rand"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/runner"
	"notebox/runner/runnertest"
)

// TestSessions runs on containers, which are few at one time so that a small machine
// has room for them.
func TestSessions(t *testing.T) {
	limits := smallLimits()
	limits.Timeout = 2 * time.Second
	env := environment(t)
	runnertest.TestSessions(t, runnertest.SessionHarness{
		Sessions: func(t *testing.T) runner.Sessions {
			service := "test-sessions-" + strings.ToLower(rand.Text())
			pool := runner.NewPool(newEngine(t, service), runner.PoolOptions{Log: testLog(t)})
			admission := runner.NewAdmission(runner.NewSingleUse(pool), runner.AdmissionLimits{MaxRunning: 2})
			all := runner.NewLiveSessions(pool, admission, runner.SessionOptions{Log: testLog(t)})
			t.Cleanup(func() {
				ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
				defer cancel()
				require.NoError(t, all.Close(ctx))
				require.NoError(t, pool.Close(ctx))
				require.Empty(t, left(t, service))
			})
			return all
		},
		Environment: env,
		Limits:      limits,
		Brief:       20 * time.Second,
	})
}
