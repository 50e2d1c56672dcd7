package cells_test

import (
	"crypto/rand"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/runner"
	"notebox/runner/runnertest"
)

// TestSessions runs on cells of one worker.
func TestSessions(t *testing.T) {
	limits := smallLimits()
	limits.Timeout = 5 * time.Second
	service := "test-sessions-" + strings.ToLower(rand.Text())
	engine := newEngine(t, service)
	runnertest.TestSessions(t, runnertest.SessionHarness{
		Sessions: func(t *testing.T) runner.Sessions {
			return runnertest.SessionsOn(t, engine, testLog(t))
		},
		Environment: environment(t),
		Limits:      limits,
		Brief:       30 * time.Second,
	})
	require.Empty(t, left(t, service))
}
