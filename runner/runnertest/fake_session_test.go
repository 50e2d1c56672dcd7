package runnertest_test

import (
	"testing"
	"time"

	"notebox/runner"
	"notebox/runner/runnertest"
)

func TestFakeSessions(t *testing.T) {
	limits := runner.DefaultLimits()
	limits.Timeout, limits.DataSize = 50*time.Millisecond, 4<<20
	runnertest.TestSessions(t, runnertest.SessionHarness{
		Sessions:    func(t *testing.T) runner.Sessions { return runnertest.Sessions(t, runnertest.NewFake(), 0) },
		Environment: runner.Environment{Name: "fake", Image: "fake"},
		Limits:      limits,
		Brief:       time.Second,
	})
}
