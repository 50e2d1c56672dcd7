package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// sampleReport has figures that are easy to calculate with.
func sampleReport(t *testing.T) *Report {
	t.Helper()
	o, err := parseOptions([]string{"-cases", "print"})
	require.NoError(t, err)
	r := newReport(o, &seed{image: "image:tag", label: "notebox.bench=x"})
	ms := func(list ...int) (out []time.Duration) {
		for _, n := range list {
			out = append(out, time.Duration(n)*time.Millisecond)
		}
		return out
	}
	c := &r.Cases[0]
	c.Latency[waySeed] = newLatency(ms(2000, 1900, 2100, 5000))
	c.Latency[wayWarm] = newLatency(ms(20, 19, 50, 21))
	c.Latency[wayEmpty] = newLatency(ms(1000))
	c.Latency[wayStep] = newLatency(ms(9, 10, 30))
	c.Sustained[waySeed] = []Load{{Callers: 1, Runs: 10, CPUPerRun: 1.5}, {Callers: 2, Runs: 20, CPUPerRun: 1.25}}
	c.Sustained[wayWarm] = []Load{{Callers: 1, Runs: 30, CPUPerRun: 1}, {Callers: 4, Runs: 40, CPUPerRun: 1.5}}
	r.Memory = []Memory{{Sandboxes: 4, Resident: 160_000_000, Proportional: 90_000_000}, {Sandboxes: 1, Problem: "permission denied"}}
	r.compare()
	return r
}

func TestRatios(t *testing.T) {
	c := sampleReport(t).Cases[0]
	require.Equal(t, 2000.0, c.Latency[waySeed].P50)
	require.Equal(t, 100.0, c.FasterP50[wayWarm])
	require.Equal(t, 100.0, c.FasterP99[wayWarm])
	require.Equal(t, 40.0, c.FasterP99OfP50[wayWarm])
	require.Equal(t, 2.0, c.FasterP50[wayEmpty])
	require.Equal(t, 0.5, c.StepOfWarm)
	require.Equal(t, []float64{0.8, 1.2}, c.CPUShare, "of the cheapest docker run")
}

func TestTargets(t *testing.T) {
	r := sampleReport(t)
	var met []bool
	for _, target := range r.Targets {
		met = append(met, target.Met)
	}
	require.Equal(t, []bool{true, true, true, true, true, false}, met, "%+v", r.Targets)
}

func TestTargetIsMissedWithoutRuns(t *testing.T) {
	r := sampleReport(t)
	r.Cases[0].Sustained[wayWarm] = []Load{{Callers: 16, Refused: 100}}
	r.compare()
	last := r.Targets[len(r.Targets)-1]
	require.Contains(t, last.What, "16 callers")
	require.False(t, last.Met)
}

// TestTargetIsMissedByRefusing: serving what is easy, and turning away the rest.
func TestTargetIsMissedByRefusing(t *testing.T) {
	r := sampleReport(t)
	r.Cases[0].Sustained[wayWarm] = []Load{{Callers: 4, Runs: 10, CPUPerRun: 0.1, Refused: 1}}
	r.compare()
	require.False(t, r.Targets[len(r.Targets)-1].Met)
}

func TestLoad(t *testing.T) {
	second := func(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }
	l := newLoad(2, []hit{
		{end: second(1), latency: second(1)},
		{end: second(7), latency: second(2)},
		{end: second(20), latency: second(3)},
		{end: second(30), latency: second(9), refused: true},
		{end: second(61), latency: second(5)},
	}, time.Minute)
	require.Equal(t, 4, l.Runs)
	require.Equal(t, 1, l.Refused)
	require.Equal(t, 0.02, l.PerSecond, "one of 50 s: neither what came first, nor what came late")
	require.Equal(t, 2000.0, l.P50)
	l.charge(cpuTime{busy: 10, stolen: 1}, second(62))
	require.Equal(t, 2.5, l.CPUPerRun)

	none := newLoad(1, nil, time.Second)
	none.charge(cpuTime{busy: 1}, time.Second)
	require.Zero(t, none.CPUPerRun)
}

func TestSteps(t *testing.T) {
	require.Equal(t, []step{{waySeed, 1}, {wayWarm, 1}, {wayCell, 1}, {waySeed, 2}, {wayWarm, 4}, {wayCell, 4}, {wayWarm, 16}, {wayCell, 16}}, steps([]int{1, 2}, []int{1, 4, 16}))
}

func TestReportFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "results", "today.json")
	r := sampleReport(t)
	require.NoError(t, r.writeFile(name))
	read, err := readReport(name)
	require.NoError(t, err)
	want, err := json.Marshal(r)
	require.NoError(t, err)
	got, err := json.Marshal(read)
	require.NoError(t, err)
	require.JSONEq(t, string(want), string(got))

	raw, err := os.ReadFile(name)
	require.NoError(t, err)
	require.Contains(t, string(raw), `"samples_ms": [ 2000, 1900, 2100, 5000 ]`, "a list is one line")
}

func TestTables(t *testing.T) {
	var out strings.Builder
	r := sampleReport(t)
	require.NoError(t, r.writeTables(&out))
	for _, row := range []string{
		"| one print | 2.00 s | 20 ms | 50 ms | 50 ms | 100 | 100 | 1.00 s | 1.00 s | 2.0 |",
		"| one print, docker run | 2 | 0.00 | 1.25 |",
		"| one print, notebox | 4 | 0.00 | 1.50 | 1.20 |",
		"| 4 | 160 MB | 90 MB | not visible |",
		"| 1 | permission denied |",
	} {
		require.Contains(t, out.String(), row)
	}
	require.NotContains(t, out.String(), "**", "no warning")
	columns := map[int]bool{}
	for line := range strings.Lines(out.String()) {
		if strings.HasPrefix(line, "| one print |") || strings.HasPrefix(line, "| one run |") {
			columns[strings.Count(line, "|")] = true
		}
	}
	require.Len(t, columns, 1, "a row has as many columns as its heading")
}
