package docker

import (
	"crypto/rand"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/runner"
	"notebox/runner/posture"
	"notebox/runner/runnertest"
)

func TestNoUnsafeSandbox(t *testing.T) {
	l := runner.DefaultLimits()
	l.Memory = l.DataSize
	_, err := newEngine(t, "test").Start(t.Context(), runner.Environment{}, l)
	require.Equal(t, posture.Check(l), err)
}

// TestUsage has a run use what can be told from what an idle sandbox uses.
func TestUsage(t *testing.T) {
	const code = `import time
hoard = b"x" * (150 << 20)
del hoard
end = time.process_time() + 0.3
while time.process_time() < end:
    pass`
	sink := runnertest.NewRecorder(t)
	l := smallLimits()
	l.Timeout = time.Minute
	out, err := runnertest.Once(t.Context(), newEngine(t, "test-usage-"+strings.ToLower(rand.Text())), testLog(t), runner.Spec{
		ID: "usage", Environment: environment(t), Notebook: runnertest.Notebook(code), Limits: l,
	}, sink)
	require.NoError(t, err)
	require.Equal(t, runner.StatusOK, out.Status)
	require.GreaterOrEqual(t, out.Usage.CPU, 300*time.Millisecond)
	require.GreaterOrEqual(t, out.Usage.Wall, 300*time.Millisecond)
	require.Less(t, out.Usage.CPU, out.Usage.Wall+time.Second, "one core, and what the harness does beside it")
	require.Greater(t, out.Usage.PeakMemory, int64(150<<20))
	require.LessOrEqual(t, out.Usage.PeakMemory, l.Memory)
}

// TestUsageOfAKernelsStart: variables have a kernel start anew, which may run code of
// the caller's, so that it is counted, though not as the cells' own.
func TestUsageOfAKernelsStart(t *testing.T) {
	l := smallLimits()
	l.Timeout = time.Minute
	out, err := runnertest.Once(t.Context(), newEngine(t, "test-start-"+strings.ToLower(rand.Text())), testLog(t), runner.Spec{
		ID: "start", Environment: environment(t), Notebook: runnertest.Notebook("pass"), Limits: l,
		Env: map[string]string{"NOTEBOX_TEST": "1"},
	}, runnertest.NewRecorder(t))
	require.NoError(t, err)
	require.Equal(t, runner.StatusOK, out.Status)
	// An interpreter that imports ipykernel takes several hundred.
	require.Greater(t, out.Usage.CPUOfJob, out.Usage.CPU+100*time.Millisecond)
}
