package docker

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

// TestSessions runs on containers, which are few at one time so that a small machine
// has room for them.
func TestSessions(t *testing.T) {
	limits := smallLimits()
	limits.Timeout = 5 * time.Second
	env := environment(t)
	runnertest.TestSessions(t, runnertest.SessionHarness{
		Sessions: func(t *testing.T) runner.Sessions {
			service := "test-sessions-" + strings.ToLower(rand.Text())
			pool := pool.New(newEngine(t, service), pool.Options{Log: testLog(t)})
			admission := admission.New(pool, admission.Limits{MaxRunning: 2})
			all := session.New(pool, admission, session.Options{Log: testLog(t)})
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
		Brief:       30 * time.Second,
	})
}
