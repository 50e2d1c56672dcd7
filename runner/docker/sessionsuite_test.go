package docker

import (
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
	limits.Timeout = 5 * time.Second
	env := environment(t)
	runnertest.TestSessions(t, runnertest.SessionHarness{
		Sessions: func(t *testing.T) runner.Sessions {
			service := "test-sessions-" + strings.ToLower(rand.Text())
			t.Cleanup(func() { require.Empty(t, left(t, service)) })
			return runnertest.SessionsOn(t, newEngine(t, service), testLog(t))
		},
		Environment: env,
		Limits:      limits,
		Brief:       30 * time.Second,
	})
}
