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
	"notebox/runner/internal/conversation"
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
		b.Run(name, func(b *testing.B) { benchmarkRun(b, benchSpec(environment(b), code)) })
	}
	for name, change := range map[string]func(*runner.Spec){"print-variable": withVariable, "print-hidden": withHidden} {
		spec := benchSpec(environment(b), "print('hello')")
		change(&spec)
		b.Run(name, func(b *testing.B) { benchmarkRun(b, spec) })
	}
	for _, l := range languages(b) {
		b.Run("language="+l.Name, func(b *testing.B) { benchmarkRun(b, benchSpec(l.Environment, l.code)) })
	}
}

func benchSpec(env runner.Environment, code string) runner.Spec {
	return runner.Spec{ID: "bench", Environment: env, Notebook: runnertest.Notebook(code), Limits: runner.DefaultLimits()}
}

func benchmarkRun(b *testing.B, spec runner.Spec) {
	service := "bench-" + strconv.FormatInt(time.Now().UnixNano(), 36)
	engine := newEngine(b, service)
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
}

// BenchmarkFirst measures a language that nobody has used: until a cell of a worker that has to
// be started takes a job, and the same for a cell of a worker that is there.
func BenchmarkFirst(b *testing.B) {
	for _, l := range languages(b) {
		l.Kernel.WarmUp = nil // whoever waits does without
		b.Run("language="+l.Name, func(b *testing.B) {
			var first, next time.Duration
			for range b.N {
				engine := newEngine(b, "bench-"+strconv.FormatInt(time.Now().UnixNano(), 36))
				for _, sum := range []*time.Duration{&first, &next} {
					begun := time.Now()
					s := waiting(b, engine, l.Environment)
					*sum += time.Since(begun)
					require.NoError(b, s.Kill(b.Context()))
				}
				require.NoError(b, engine.Close())
			}
			b.ReportMetric(first.Seconds()/float64(b.N), "s/first")
			b.ReportMetric(next.Seconds()/float64(b.N), "s/next")
		})
	}
}

// waiting starts a sandbox, and returns when it takes a job.
func waiting(b *testing.B, engine runner.Engine, env runner.Environment) runner.Sandbox {
	s, err := engine.Start(b.Context(), env, runner.DefaultLimits())
	require.NoError(b, err)
	c := conversation.New(s, slog.New(slog.DiscardHandler))
	require.NoError(b, c.AwaitReady(b.Context(), env.Kernel, nil))
	return s
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

// BenchmarkWaiting opens many cells, and says what each of them holds while it waits.
func BenchmarkWaiting(b *testing.B) {
	for _, l := range languages(b) {
		count := 10
		if l.Kernel.Spec() == runner.PythonKernel {
			count = 100
		}
		b.Run("language="+l.Name, func(b *testing.B) {
			service := "bench-" + strconv.FormatInt(time.Now().UnixNano(), 36)
			engine := newEngine(b, service)
			require.NoError(b, waiting(b, engine, l.Environment).Kill(b.Context()))
			b.ReportMetric(float64(shares(b, filepath.Join("notebox", service, "[0-9a-f]*")))/1e3, "worker-pss-MB")
			b.ReportMetric(float64(used(b, service, "[0-9a-f]*"))/1e6, "worker-cpu-ms")
			for range b.N {
				all := make([]runner.Sandbox, count)
				var opening sync.WaitGroup
				begun := time.Now()
				for i := range all {
					opening.Go(func() { all[i] = waiting(b, engine, l.Environment) })
				}
				opening.Wait()
				b.ReportMetric(time.Since(begun).Seconds(), "s/ready")
				time.Sleep(time.Second)
				b.ReportMetric(float64(charged(b, service))/float64(count)/1e6, "charged-MB/cell")
				b.ReportMetric(float64(shares(b, filepath.Join("notebox", service, "worker-*/cell-*")))/float64(count)/1e3, "pss-MB/cell")
				for _, s := range all {
					require.NoError(b, s.Kill(b.Context()))
				}
			}
		})
	}
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

// shares is the proportional size of the processes of control groups, kB: of a page that several
// have, each has a part.
func shares(b *testing.B, groups string) (sum int64) {
	paths, err := filepath.Glob(filepath.Join("/sys/fs/cgroup/memory", groups, "cgroup.procs"))
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
