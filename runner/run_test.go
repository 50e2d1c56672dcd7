package runner_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/runner"
	"notebox/runner/runnertest"
)

// ran is one run on a Fake that has come to its end.
type ran struct {
	host *runnertest.Fake
	sink *runnertest.Recorder
	out  *runner.Outcome
	err  error
	took time.Duration // on the bubble's clock
}

// inBubble runs a test where no time goes by while anything can go on, and that
// fails where a goroutine is left behind.
func inBubble(t *testing.T, test func(*testing.T)) {
	t.Helper()
	synctest.Test(t, test)
}

// newHost returns a Fake whose sandboxes run a program, or the honest one.
func newHost(t *testing.T, p runnertest.Program) *runnertest.Fake {
	host := runnertest.NewFake()
	if p != nil {
		host.Program = p
	}
	t.Cleanup(host.Close)
	return host
}

// run makes a run on the host.
func run(ctx context.Context, t *testing.T, host *runnertest.Fake, spec runner.Spec, sink *runnertest.Recorder) ran {
	begun := time.Now()
	out, err := runnertest.Once(ctx, host.Engine("test"), testLog(t), spec, sink)
	sink.Seal()
	r := ran{host: host, sink: sink, out: out, err: err, took: time.Since(begun)}
	require.NotEqual(t, out == nil, err == nil, "an outcome or an error")
	if !host.HangAtKill {
		require.Empty(t, host.Sandboxes(""), "no sandbox is left when Run returns")
	}
	return r
}

// newSpec returns a run of these cells with limits that tests can reach.
func newSpec(cells ...string) runner.Spec {
	l := runner.DefaultLimits()
	l.Timeout, l.Output, l.Files, l.FileSize = 10*time.Second, 64<<10, 3, 1<<20
	return runner.Spec{
		ID: "run-1", Owner: "test", Notebook: runnertest.Notebook(cells...),
		Environment: runner.Environment{Name: "fake", Image: "fake"}, Limits: l,
	}
}

func testLog(t *testing.T) *slog.Logger {
	return slog.New(slog.NewTextHandler(t.Output(), nil))
}

// requireCode requires that an error is one that callers can act upon.
func requireCode(t *testing.T, want runner.Code, err error) {
	t.Helper()
	var failure *runner.Error
	require.True(t, errors.As(err, &failure), "%v is a *runner.Error", err)
	require.Equal(t, want, failure.Code)
}
