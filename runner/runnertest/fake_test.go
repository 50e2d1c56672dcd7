package runnertest_test

import (
	"testing"
	"time"

	"notebox/runner"
	"notebox/runner/runnertest"
)

func TestFake(t *testing.T) {
	host := runnertest.NewFake()
	limits := runner.DefaultLimits()
	limits.Timeout = 50 * time.Millisecond
	runnertest.TestEngine(t, runnertest.Harness{
		Engine:      func(_ *testing.T, service string) runner.Engine { return host.Engine(service) },
		Left:        func(_ *testing.T, service string) []string { return host.Sandboxes(service) },
		Environment: runner.Environment{Name: "fake", Image: "fake"},
		Missing:     runner.Environment{Name: "fake", Image: runnertest.FakeMissing},
		Limits:      limits,
	})
}
