package docker

import (
	"context"
	"crypto/rand"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/runner"
	"notebox/runner/pool"
	"notebox/runner/runnertest"
)

// TestNothingGrows has runs of several ends, one after another, and looks at
// what this process holds when the engine is closed.
func TestNothingGrows(t *testing.T) {
	env := environment(t)
	before := held(t)
	e, err := New(Options{ServiceID: "test-grows-" + strings.ToLower(rand.Text()), Log: testLog(t)})
	require.NoError(t, err)
	pool := pool.New(e, pool.Options{Log: testLog(t)})
	single := pool
	for _, cell := range []string{runnertest.CellHello, runnertest.CellKill, runnertest.CellSleep} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		sink := runnertest.NewRecorder(t)
		sink.OnOutput = func(runner.Event) { cancel() }
		_, err := single.Run(ctx, runner.Spec{
			ID: "grows", Environment: env, Notebook: runnertest.Notebook(cell), Limits: smallLimits(),
		}, sink)
		require.NoError(t, err)
		cancel()
	}
	_, err = single.Run(t.Context(), runner.Spec{
		ID: "grows", Environment: runner.Environment{Name: "none", Image: "notebox/no-such-image:0"},
		Notebook: runnertest.Notebook(), Limits: smallLimits(),
	}, runnertest.NewRecorder(t))
	require.Error(t, err)
	require.NoError(t, pool.Close(t.Context()))
	require.NoError(t, e.Close(t.Context()))
	now := held(t)
	for end := time.Now().Add(10 * time.Second); now.more(before) && time.Now().Before(end); now = held(t) {
		time.Sleep(20 * time.Millisecond)
	}
	require.False(t, now.more(before), "before: %+v, now: %+v", before, now)
}

type holding struct{ goroutines, files int }

func (h holding) more(than holding) bool {
	return h.goroutines > than.goroutines || h.files > than.files
}

func held(t *testing.T) holding {
	files, err := os.ReadDir("/proc/self/fd")
	if os.IsNotExist(err) { // not on Linux
		files = nil
	} else {
		require.NoError(t, err)
	}
	return holding{runtime.NumGoroutine(), len(files)}
}
