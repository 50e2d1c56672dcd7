package runnertest

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/runner"
)

// Ran is one run on a Fake that has come to its end.
type Ran struct {
	Host *Fake
	Sink *Recorder
	Out  *runner.Outcome
	Err  error
	Took time.Duration // on the bubble's clock
}

// InBubble runs a test where no time goes by while anything can go on, and that
// fails if a goroutine is left behind.
func InBubble(t *testing.T, test func(*testing.T)) {
	t.Helper()
	synctest.Test(t, test)
}

// NewHost returns a Fake whose sandboxes run a program, or the honest one.
func NewHost(t *testing.T, p Program) *Fake {
	host := NewFake()
	if p != nil {
		host.Program = p
	}
	t.Cleanup(host.Close)
	return host
}

// RunOn makes a run on the host.
func RunOn(ctx context.Context, t *testing.T, host *Fake, spec runner.Spec, sink *Recorder) Ran {
	begun := time.Now()
	out, err := Once(ctx, host.Engine("test"), Log(t), spec, sink)
	sink.Seal()
	r := Ran{Host: host, Sink: sink, Out: out, Err: err, Took: time.Since(begun)}
	require.NotEqual(t, out == nil, err == nil, "an outcome or an error")
	if !host.HangAtKill {
		require.Empty(t, host.Sandboxes(""), "no sandbox is left when Run returns")
	}
	return r
}

// SpecTimeout is the time limit of NewSpec.
const SpecTimeout = 10 * time.Second

// NewSpec returns a run of these cells with limits that tests can reach.
func NewSpec(cells ...string) runner.Spec {
	l := runner.DefaultLimits()
	l.Timeout, l.Output, l.Files, l.FileSize = SpecTimeout, 64<<10, 3, 1<<20
	return runner.Spec{
		ID: "run-1", Owner: "test", Notebook: Notebook(cells...),
		Environment: runner.Environment{Name: "fake", Image: "fake"}, Limits: l,
	}
}

// Log is a test's.
func Log(t testing.TB) *slog.Logger {
	return slog.New(slog.NewTextHandler(t.Output(), nil))
}

// RequireCode requires that an error is one that callers can act upon.
func RequireCode(t *testing.T, want runner.Code, err error) {
	t.Helper()
	var failure *runner.Error
	require.True(t, errors.As(err, &failure), "%v is a *runner.Error", err)
	require.Equal(t, want, failure.Code)
}

// HangsInCollection is a program that ends its run well and then says no more.
var HangsInCollection = AfterGo(func(to io.Writer) int {
	SendOutcome(to, runner.StatusOK)
	return Stays
})

// FailingReader fails with its error.
type FailingReader struct{ Err error }

// Read implements io.Reader.
func (f FailingReader) Read([]byte) (int, error) { return 0, f.Err }
