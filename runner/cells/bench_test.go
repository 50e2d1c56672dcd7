package cells_test

import (
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/runner"
	"notebox/runner/runnertest"
)

// BenchmarkRun measures runs in cells that nobody opened ahead: the worker's own CPU time
// and that of its cells, without this process and the daemon.
func BenchmarkRun(b *testing.B) {
	for name, code := range map[string]string{
		"print": "print('hello')",
		"plot":  "import matplotlib.pyplot as plt\nplt.plot(range(5)); plt.show()",
		"table": "import pandas as pd, matplotlib.pyplot as plt\ndf=pd.DataFrame({'a':range(5),'b':list('abcde')})\nprint(df.describe())\ndf.plot(); plt.show()\ndf",
	} {
		b.Run(name, func(b *testing.B) {
			service := "bench-" + strconv.FormatInt(time.Now().UnixNano(), 36)
			engine, env := newEngine(b, service), environment(b)
			spec := runner.Spec{ID: "bench", Environment: env, Notebook: runnertest.Notebook(code), Limits: runner.DefaultLimits()}
			once := func() {
				out, err := runnertest.Once(b.Context(), engine, slog.New(slog.DiscardHandler), spec, discard{})
				require.NoError(b, err)
				require.Equal(b, runner.StatusOK, out.Status)
			}
			once()
			var runs []int64 // CPU time of each, nanoseconds; the end of a cell is the next one's
			own := used(b, service, "[0-9a-f]*")
			b.ResetTimer()
			for before := used(b, service); len(runs) < b.N; {
				once()
				now := used(b, service)
				runs, before = append(runs, now-before), now
			}
			b.StopTimer()
			slices.Sort(runs)
			sum := int64(0)
			for _, ns := range runs {
				sum += ns
			}
			milliseconds := func(ns int64) float64 { return float64(ns) / 1e6 }
			b.ReportMetric(milliseconds(sum)/float64(b.N), "cpu-ms/op")
			b.ReportMetric(milliseconds(runs[b.N/2]), "median-cpu-ms")
			b.ReportMetric(milliseconds(runs[b.N/10]), "p10-cpu-ms")
			b.ReportMetric(milliseconds(used(b, service, "[0-9a-f]*")-own)/float64(b.N), "worker-ms/op")
		})
	}
}

// discard is a Sink of which nobody wants to know.
type discard struct{}

func (discard) Output(runner.Event) {}

func (discard) File(_ context.Context, _ string, content io.Reader) error {
	_, err := io.Copy(io.Discard, content)
	return err
}

// used is the CPU time of a control group of a service's, nanoseconds: of all it has, or of
// the one whose name matches.
func used(b *testing.B, service string, more ...string) int64 {
	pattern := filepath.Join(append([]string{"/sys/fs/cgroup/cpuacct/notebox", service}, append(more, "cpuacct.usage")...)...)
	paths, err := filepath.Glob(pattern)
	require.NoError(b, err)
	require.Len(b, paths, 1)
	raw, err := os.ReadFile(paths[0])
	require.NoError(b, err)
	n, err := strconv.ParseInt(strings.TrimSpace(string(raw)), 10, 64)
	require.NoError(b, err)
	return n
}

// BenchmarkWaiting opens a hundred cells, and says what each of them holds while it waits.
func BenchmarkWaiting(b *testing.B) {
	const cells = 100
	service := "bench-" + strconv.FormatInt(time.Now().UnixNano(), 36)
	engine, env := newEngine(b, service), environment(b)
	open := func() runner.Sandbox {
		s, err := engine.Start(b.Context(), env, runner.DefaultLimits())
		require.NoError(b, err)
		require.NoError(b, runnertest.Ready(s))
		return s
	}
	first := open()
	for range b.N {
		var waiting [cells]runner.Sandbox
		var all sync.WaitGroup
		begun := time.Now()
		for i := range waiting {
			all.Go(func() { waiting[i] = open() })
		}
		all.Wait()
		b.ReportMetric(time.Since(begun).Seconds(), "s/100-ready")
		time.Sleep(time.Second)
		b.ReportMetric(float64(charged(b, service))/cells/1e6, "charged-MB/cell")
		b.ReportMetric(float64(shares(b, service))/cells/1e3, "pss-MB/cell")
		for _, s := range waiting {
			require.NoError(b, s.Kill(b.Context()))
		}
	}
	require.NoError(b, first.Kill(b.Context()))
}

// charged is the memory that the kernel has counted for cells, bytes.
func charged(b *testing.B, service string) (sum int64) {
	paths, err := filepath.Glob(filepath.Join("/sys/fs/cgroup/memory/notebox", service, "worker-*/cell-*/memory.usage_in_bytes"))
	require.NoError(b, err)
	for _, path := range paths {
		raw, err := os.ReadFile(path)
		require.NoError(b, err)
		n, err := strconv.ParseInt(strings.TrimSpace(string(raw)), 10, 64)
		require.NoError(b, err)
		sum += n
	}
	return sum
}

// shares is the proportional size of the processes of cells, kB: of a page that several have,
// each has a part.
func shares(b *testing.B, service string) (sum int64) {
	paths, err := filepath.Glob(filepath.Join("/sys/fs/cgroup/memory/notebox", service, "worker-*/cell-*/cgroup.procs"))
	require.NoError(b, err)
	for _, path := range paths {
		raw, err := os.ReadFile(path)
		require.NoError(b, err)
		for pid := range strings.FieldsSeq(string(raw)) {
			rollup, err := os.ReadFile(filepath.Join("/proc", pid, "smaps_rollup"))
			require.NoError(b, err)
			_, after, _ := strings.Cut(string(rollup), "\nPss:")
			n, err := strconv.ParseInt(strings.Fields(after)[0], 10, 64)
			require.NoError(b, err)
			sum += n
		}
	}
	return sum
}
