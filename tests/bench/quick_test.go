package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"notebox/tests/starter"
)

// The tests of this file need a Docker daemon and the sandbox image, which
// `make test` brings.

// TestQuick runs the whole benchmark in small: that it works, not how fast it is.
func TestQuick(t *testing.T) {
	needContainers(t)
	folder := t.TempDir()
	out := filepath.Join(folder, "results.json")
	notebox, err := starter.Notebox()
	require.NoError(t, err)
	args := []string{"-quick", "-notebox", notebox, "-pool-size", "2", "-out", out, "-environments", "../../environments"}
	require.NoError(t, run(t.Context(), args))

	r, err := readReport(out)
	require.NoError(t, err)
	require.True(t, r.Quick)
	require.NotEmpty(t, r.Machine.CPU)
	require.Positive(t, r.Machine.Cores)
	require.Contains(t, r.Machine.Image, "notebox/jupyter:")
	require.Len(t, r.Cases, 4)
	for _, c := range r.Cases {
		for w, runs := range map[way]int{waySeed: quickOtherRuns, wayWarm: quickWarmRuns, wayEmpty: quickOtherRuns, wayStep: quickWarmRuns, wayCell: quickWarmRuns} {
			l := c.Latency[w]
			require.Len(t, l.Samples, runs, "%s %s", c.Name, w)
			require.Positive(t, l.P50)
			require.LessOrEqual(t, l.P50, l.P95)
			require.LessOrEqual(t, l.P95, l.P99)
		}
		require.Positive(t, c.FasterP50[wayWarm])
		require.Positive(t, c.FasterP50[wayEmpty])
		require.Positive(t, c.StepOfWarm)
	}
	of := r.Cases[0].Sustained
	loads := slices.Concat(of[waySeed], of[wayWarm], of[wayCell])
	require.Len(t, loads, 5)
	for _, l := range loads {
		require.Positive(t, l.Runs)
		require.Zero(t, l.Refused)
		require.Positive(t, l.CPUPerRun)
		require.GreaterOrEqual(t, l.SecondsUntilIdle, l.Seconds)
	}
	require.Equal(t, crowdCells, r.Cells.Cells)
	require.Equal(t, crowdRequests, r.Cells.Requests)
	require.Positive(t, r.Cells.Answered)
	for _, figure := range []float64{r.Cells.FirstAnswer, r.Cells.Ready, r.Cells.LastAnswer} {
		require.Positive(t, figure)
	}
	for _, bytes := range []int64{r.Cells.CellProportional, r.Cells.WorkerProportional, r.Cells.ServiceProportional} {
		require.Positive(t, bytes)
	}
	require.Equal(t, "python", r.Languages[0].Language)
	require.Greater(t, len(r.Languages), 2)
	for _, l := range r.Languages {
		require.Len(t, l.Latency.Samples, quickOtherRuns, l.Title)
		require.Positive(t, l.OfPython)
	}
	require.NotEmpty(t, r.Targets)
	require.Equal(t, []int{1, 2}, []int{r.Memory[0].Sandboxes, r.Memory[1].Sandboxes})
	left, err := exec.Command("docker", "ps", "-aq", "--filter", r.label()).Output()
	require.NoError(t, err)
	require.Empty(t, string(left))
}

// label finds the filter for this benchmark's own containers in its report.
func (r *Report) label() string {
	_, rest, _ := strings.Cut(r.Method[0], "--label ")
	label, _, _ := strings.Cut(rest, " ")
	return "label=" + label
}

func needContainers(t *testing.T) {
	if testing.Short() {
		t.Skip("this needs containers, which -short is without")
	}
}

// TestMemoryOfAContainer reads that of a real one.
func TestMemoryOfAContainer(t *testing.T) {
	needContainers(t)
	image, err := exec.Command("go", "run", "../../cmd/notebox", "image").Output()
	require.NoError(t, err)
	name := fmt.Sprintf("notebox-bench-memory-%d", os.Getpid())
	id, err := exec.Command("docker", "run", "--rm", "-d", "--name", name, "--label", "notebox.bench="+name, "--network", "none",
		"--entrypoint", "python3", strings.TrimSpace(string(image)), "-c", "x = b'x' * (64 << 20); __import__('time').sleep(300)").Output()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, exec.Command("docker", "kill", name).Run()) })

	var m *Memory
	require.Eventually(t, func() bool {
		m, err = readMemory(t.Context(), []string{strings.TrimSpace(string(id))})
		return err != nil || m.Problem != "" || m.Proportional > 64<<20
	}, idleTimeout, idlePoll)
	require.NoError(t, err)
	if m.Problem != "" {
		t.Skip(m.Problem)
	}
	require.Equal(t, 1.0, m.Processes)
	require.Greater(t, m.Resident, m.Proportional-1)
	require.Less(t, m.Resident, int64(200<<20))
	require.Positive(t, m.ShimProportional)
	require.Less(t, m.ShimProportional, int64(100<<20))
}
