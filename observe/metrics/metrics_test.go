package metrics_test

import (
	"context"
	"errors"
	"io"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"notebox/observe/metrics"
	"notebox/runner"
	"notebox/server"
	"notebox/storage"
)

// runFunc is a runner.Runner that does what a test wants.
type runFunc func(runner.Spec) (*runner.Outcome, error)

func (f runFunc) Run(_ context.Context, spec runner.Spec, _ runner.Sink) (*runner.Outcome, error) {
	return f(spec)
}

// requireMetric requires what a metric is, in the text format without its head.
func requireMetric(t *testing.T, m *metrics.Metrics, want ...string) {
	t.Helper()
	for _, line := range want {
		series, value, _ := strings.Cut(line, " ")
		name, labels, _ := strings.Cut(strings.TrimSuffix(series, "}"), "{")
		family := gathered(t, m)[name]
		require.NotNil(t, family, name)
		found := false
		for _, metric := range family.GetMetric() {
			var have []string
			for _, l := range metric.GetLabel() {
				have = append(have, l.GetName()+"="+l.GetValue())
			}
			if strings.Join(have, ",") == labels {
				found = true
				n := metric.GetCounter().GetValue() + float64(metric.GetHistogram().GetSampleCount())
				require.Equal(t, value, strconv.FormatFloat(n, 'f', -1, 64), line)
			}
		}
		require.True(t, found, "no series %s", line)
	}
}

func TestRunner(t *testing.T) {
	fails := func(err error) runFunc { return func(runner.Spec) (*runner.Outcome, error) { return nil, err } }
	code := func(c runner.Code) error { return &runner.Error{Code: c, Message: "no"} }
	for _, c := range []struct {
		desc string
		env  string
		run  runFunc
		want []string
	}{
		{"a good one", "jupyter", func(spec runner.Spec) (*runner.Outcome, error) {
			now := time.Now()
			spec.Observe(runner.PhaseQueue, now, now.Add(time.Second))
			spec.Observe(runner.PhaseExecute, now, now.Add(time.Minute))
			return &runner.Outcome{Status: runner.StatusOK, Usage: runner.Usage{CPU: 3 * time.Second}}, nil
		}, []string{"notebox_runs_total{environment=jupyter,status=ok} 1", "notebox_run_cpu_seconds_total{environment=jupyter} 3",
			"notebox_run_phase_seconds{phase=queue} 1", "notebox_run_phase_seconds{phase=execute} 1", "notebox_run_phase_seconds{phase=collect} 0"}},
		{"code that is hostile to the clock", "jupyter", func(runner.Spec) (*runner.Outcome, error) {
			return &runner.Outcome{Status: runner.StatusTimeout, Usage: runner.Usage{CPU: -time.Second}}, nil
		}, []string{"notebox_runs_total{environment=jupyter,status=timeout} 1", "notebox_run_cpu_seconds_total{environment=jupyter} 0"}},
		{"an environment that nobody named", "else", func(runner.Spec) (*runner.Outcome, error) {
			return &runner.Outcome{Status: runner.StatusError}, nil
		}, []string{"notebox_runs_total{environment=other,status=error} 1"}},
		{"a failure of ours", "jupyter", fails(errors.New("gone")), []string{"notebox_runs_total{environment=jupyter,status=failed} 1"}},
		{"full", "jupyter", fails(code(runner.CodeFull)), []string{"notebox_refusals_total{reason=full} 1", "notebox_runs_total{environment=jupyter,status=failed} 0"}},
		{"share", "jupyter", fails(code(runner.CodeShare)), []string{"notebox_refusals_total{reason=share} 1"}},
		{"no sandbox", "jupyter", fails(code(runner.CodeUnavailable)), []string{"notebox_refusals_total{reason=unavailable} 1"}},
		{"variables that do not fit", "jupyter", fails(code(runner.CodeEnv)), []string{"notebox_runs_total{environment=jupyter,status=failed} 0"}},
	} {
		t.Run(c.desc, func(t *testing.T) {
			m, heard := newMetrics(), 0
			spec := runner.Spec{Environment: runner.Environment{Name: c.env}, Observe: func(runner.Phase, time.Time, time.Time) { heard++ }}
			_, _ = m.Runner(c.run).Run(t.Context(), spec, nil)
			requireMetric(t, m, c.want...)
			if c.desc == "a good one" {
				require.Equal(t, 2, heard, "who listened before still does")
			}
		})
	}
}

// brokenStore fails as a test wants.
type brokenStore struct {
	server.Store
	err error
}

func (s brokenStore) Put(_ context.Context, _ string, content io.Reader, _ string) (storage.Object, error) {
	n, err := io.Copy(io.Discard, content)
	return storage.Object{Bytes: n}, errors.Join(err, s.err)
}

func (s brokenStore) Get(context.Context, string) (*storage.Reader, error) { return nil, s.err }

func TestStore(t *testing.T) {
	m := newMetrics()
	key := storage.RunKey(time.Now(), "run_1", storage.KindFile, "a.csv")
	good := m.Store(brokenStore{})
	_, err := good.Put(t.Context(), key, strings.NewReader("12345"), "a.csv")
	require.NoError(t, err)
	_, err = good.Put(t.Context(), storage.RecordKey("executions", "-", "x"), strings.NewReader("123"), "x")
	require.NoError(t, err)
	requireMetric(t, m, "notebox_stored_bytes_total{kind=files} 5", "notebox_stored_bytes_total{kind=other} 3",
		"notebox_store_errors_total{operation=put} 0", "notebox_store_seconds{operation=put} 2")

	_, err = good.Put(t.Context(), key, io.MultiReader(strings.NewReader("1"), brokenReader{}), "a.csv")
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	requireMetric(t, m, "notebox_store_errors_total{operation=put} 0")

	bad := m.Store(brokenStore{err: errors.New("no space")})
	_, err = bad.Put(t.Context(), key, strings.NewReader("12345"), "a.csv")
	require.Error(t, err)
	_, err = bad.Get(t.Context(), key)
	require.Error(t, err)
	_, err = m.Store(brokenStore{err: storage.ErrNotFound}).Get(t.Context(), key)
	require.ErrorIs(t, err, storage.ErrNotFound)
	requireMetric(t, m, "notebox_store_errors_total{operation=put} 1", "notebox_store_errors_total{operation=get} 1", "notebox_stored_bytes_total{kind=files} 5")
}

// brokenReader is a sandbox that is cut off.
type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// TestObserver counts what the server tells, whatever statuses handlers make up.
func TestObserver(t *testing.T) {
	m := newMetrics()
	m.Answered("GET", "none", 0, time.Second)
	m.Answered("GET", "none", 499, time.Second)
	m.Refused(server.RefusedRate)
	m.Probed(true)
	m.Probed(false)
	m.Stored(time.Second)
	m.Reaped(4)
	requireMetric(t, m, "notebox_http_requests_total{code=other,method=GET,route=none} 1", "notebox_http_requests_total{code=4xx,method=GET,route=none} 1",
		"notebox_refusals_total{reason=rate} 1", "notebox_readiness_probes_total{result=ok} 1", "notebox_readiness_probes_total{result=failed} 1",
		"notebox_run_phase_seconds{phase=store} 1", "notebox_reaped_sandboxes_total 4")
}

// TestLint holds the names against Prometheus's conventions.
func TestLint(t *testing.T) {
	problems, err := testutil.GatherAndLint(newMetrics().Registry())
	require.NoError(t, err)
	for _, p := range problems {
		require.NotContains(t, p.Metric, "notebox_", p.Text)
	}
}
