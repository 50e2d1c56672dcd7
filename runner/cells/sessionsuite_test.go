package cells_test

import (
	"context"
	"crypto/rand"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/runner"
	"notebox/runner/admission"
	"notebox/runner/pool"
	"notebox/runner/runnertest"
	"notebox/runner/session"
)

// TestSessions runs on cells of one worker.
func TestSessions(t *testing.T) {
	limits := smallLimits()
	limits.Timeout = 5 * time.Second
	service := "test-sessions-" + strings.ToLower(rand.Text())
	engine := newEngine(t, service)
	runnertest.TestSessions(t, runnertest.SessionHarness{
		Sessions: func(t *testing.T) runner.Sessions {
			pool := pool.New(engine, pool.Options{Log: testLog(t)})
			admission := admission.New(pool, admission.Limits{MaxRunning: 2})
			all := session.New(pool, admission, session.Options{Log: testLog(t)})
			t.Cleanup(func() {
				ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
				defer cancel()
				require.NoError(t, all.Close(ctx))
				require.NoError(t, pool.Close(ctx))
			})
			return all
		},
		Environment: environment(t),
		Limits:      limits,
		Brief:       30 * time.Second,
	})
	require.Empty(t, left(t, service))
}
