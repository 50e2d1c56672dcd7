package metrics_test

import (
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"

	"notebox/access"
	"notebox/observe/metrics"
	"notebox/runner"
	"notebox/runner/cells"
	"notebox/runner/pool"
	"notebox/runner/session"
	"notebox/server"
)

// newMetrics returns Metrics that have seen a request, as those series come with
// the first one.
func newMetrics() *metrics.Metrics {
	m := metrics.New(metrics.Sources{
		Pool: func() pool.Stats {
			return pool.Stats{Size: 3, Warm: 2, Starting: 1, Running: 4, Sessions: 7, Removing: 1, Sandboxes: 15, WarmCells: 2}
		},
		Cells: func() cells.Stats {
			return cells.Stats{Cells: 9, Workers: map[cells.WorkerState]int{cells.WorkerUsed: 2, cells.WorkerSpare: 1}, Lost: 3, CellsCharged: 7 << 20, WorkersPSS: 1 << 20}
		},
		Isolation: server.Isolation{Kind: "container", MissingWall: "proc"},
		Runs:      func() (int, int) { return 4, 7 },
		Limits: func() (access.Sharing, bool) {
			return access.Sharing{Store: access.SharingDown, Services: 3, Calls: 10, Failed: 2}, true
		},
		Sessions: func() session.Stats {
			return session.Stats{Open: 7, Running: 1, Idle: 5, Opened: 10, Ended: map[runner.GoneReason]int{runner.GoneIdle: 3}}
		},
		Environments: []string{"jupyter"},
	})
	m.Answered("POST", "/v1/execute", 200, time.Second)
	return m
}

// gathered are all metrics by their names.
func gathered(t *testing.T, m *metrics.Metrics) map[string]*dto.MetricFamily {
	t.Helper()
	all, err := m.Registry().Gather()
	require.NoError(t, err)
	out := map[string]*dto.MetricFamily{}
	for _, family := range all {
		out[family.GetName()] = family
	}
	return out
}

var documentedMetric = regexp.MustCompile("^\\| `([a-z_]+)` \\| (counter|gauge|histogram) \\| ([a-z, ]*) ?\\| ")

// TestDocumented: docs/metrics.md names every metric of notebox's own with its type
// and labels, and none that does not exist.
func TestDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/metrics.md")
	require.NoError(t, err)
	described := map[string][2]string{}
	for line := range strings.Lines(string(text)) {
		if found := documentedMetric.FindStringSubmatch(line); found != nil {
			described[found[1]] = [2]string{found[2], strings.TrimSpace(found[3])}
		} else {
			require.NotContains(t, line, "| `notebox_", "a row that this test cannot read")
		}
	}
	for name, family := range gathered(t, newMetrics()) {
		if !strings.HasPrefix(name, "notebox_") {
			require.Regexp(t, `^(go|process)_`, name)
			continue
		}
		require.Contains(t, described, name, "exists and is not described")
		require.Equal(t, described[name][0], strings.ToLower(family.GetType().String()), name)
		have := map[string]bool{}
		for _, label := range family.GetMetric()[0].GetLabel() {
			have[label.GetName()] = true
		}
		want := map[string]bool{}
		for label := range strings.SplitSeq(described[name][1], ",") {
			if label = strings.TrimSpace(label); label != "" {
				want[label] = true
			}
		}
		require.Equal(t, want, have, name)
		delete(described, name)
	}
	require.Empty(t, described, "described and does not exist")
}

// TestLabelValuesAreDescribed: so are those of all labels but what the program's own
// routes and environments are called.
func TestLabelValuesAreDescribed(t *testing.T) {
	raw, err := os.ReadFile("../../docs/metrics.md")
	require.NoError(t, err)
	for name, family := range gathered(t, newMetrics()) {
		for _, metric := range family.GetMetric() {
			for _, label := range metric.GetLabel() {
				switch label.GetName() {
				case "phase", "reason", "state", "kind", "operation", "result":
					require.Contains(t, string(raw), "`"+label.GetValue()+"`", "%s{%s}", name, label.GetName())
				}
			}
		}
	}
}

func TestHandler(t *testing.T) {
	answer := httptest.NewRecorder()
	newMetrics().Handler().ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
	require.Equal(t, 200, answer.Code)
	for _, line := range []string{
		"notebox_runs_running 4\n", "notebox_runs_waiting 7\n", "notebox_pool_target 3\n", "notebox_sandboxes 15\n",
		`notebox_pool_sandboxes{state="warm"} 2` + "\n", `notebox_pool_sandboxes{state="starting"} 1` + "\n",
		`notebox_cells{state="waiting"} 2` + "\n", `notebox_cells{state="in_use"} 7` + "\n", "notebox_workers_lost_total 3\n",
		`notebox_workers{state="used"} 2` + "\n", `notebox_workers{state="spare"} 1` + "\n", `notebox_workers{state="starting"} 0` + "\n",
		`notebox_cells_memory_bytes{kind="charged"} 7.340032e+06` + "\n", `notebox_workers_memory_bytes{kind="pss"} 1.048576e+06` + "\n",
		`notebox_limits_store{state="ok"} 0` + "\n", `notebox_limits_store{state="down"} 1` + "\n", "notebox_limits_services 3\n",
		`notebox_limits_store_calls_total{result="ok"} 8` + "\n", `notebox_limits_store_calls_total{result="failed"} 2` + "\n",
		`notebox_isolation{kind="container"} 1` + "\n", `notebox_missing_walls{wall="proc"} 1` + "\n", `notebox_missing_walls{wall="seccomp"} 0` + "\n",
		`notebox_sessions{state="running"} 2` + "\n", `notebox_sessions{state="idle"} 5` + "\n", `notebox_pool_sandboxes{state="session"} 7` + "\n",
		"notebox_sessions_opened_total 10\n", `notebox_sessions_ended_total{reason="idle"} 3` + "\n", `notebox_sessions_ended_total{reason="lost"} 0` + "\n",
		`notebox_runs_total{environment="jupyter",status="out_of_memory"} 0` + "\n",
		`notebox_http_requests_total{code="2xx",method="POST",route="/v1/execute"} 1` + "\n",
		`notebox_run_phase_seconds_bucket{phase="queue",le="0.005"} 0` + "\n", `le="300"`, "\ngo_build_info{", "\nprocess_cpu_seconds_total ",
	} {
		require.Contains(t, answer.Body.String(), line)
	}
}
