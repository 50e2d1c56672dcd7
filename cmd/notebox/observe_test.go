package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"log/slog"
	"net/http"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func observeFlags(t *testing.T, flags ...string) (*observeSettings, error) {
	t.Helper()
	s := new(observeSettings)
	set := flag.NewFlagSet("test", flag.ContinueOnError)
	set.SetOutput(new(bytes.Buffer))
	s.register(set)
	if err := set.Parse(flags); err != nil {
		return s, err
	}
	return s, s.check()
}

func TestObserveFlags(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		desc  string
		flags []string
		wrong string
	}{
		{"none", nil, ""},
		{"all", []string{"--log-format", "json", "--log-level", "warn", "--probe-every", "1m"}, ""},
		{"no probes", []string{"--probe-every", "0"}, ""},
		{"another format", []string{"--log-format", "xml"}, "--log-format"},
		{"another level", []string{"--log-level", "loud"}, "log-level"},
		{"a core for probes", []string{"--probe-every", "10ms"}, "--probe-every"},
	} {
		t.Run(c.desc, func(t *testing.T) {
			_, err := observeFlags(t, c.flags...)
			if c.wrong == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.wrong)
		})
	}
}

func TestLogFormats(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	s, err := observeFlags(t, "--log-format", "json", "--log-level", "warn")
	require.NoError(t, err)
	log := s.logger(&out)
	log.Info("not this")
	log.Warn("this", "run", "run_1", "took", 1500*time.Millisecond)
	var entry map[string]any
	require.NoError(t, json.Unmarshal(out.Bytes(), &entry), "one object: %s", out.String())
	require.Equal(t, "run_1", entry["run"])
	require.Equal(t, 1.5, entry["took"])
	require.Equal(t, slog.LevelWarn.String(), entry["level"])

	out.Reset()
	s, err = observeFlags(t)
	require.NoError(t, err)
	s.logger(&out).Info("this", "run", "run_1")
	require.Contains(t, out.String(), "level=INFO msg=this run=run_1")
}

// metricOf reads one series of a service.
func metricOf(t *testing.T, p *program, series string) float64 {
	t.Helper()
	status, raw := get(t, p.url()+"/metrics")
	require.Equal(t, http.StatusOK, status)
	found := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(series) + ` (\S+)$`).FindSubmatch(raw)
	require.NotNil(t, found, "no %s in\n%s", series, raw)
	value, err := strconv.ParseFloat(string(found[1]), 64)
	require.NoError(t, err)
	return value
}

// TestReadyzRunsCode: with real containers, /readyz has a run of its own, that is
// none of a caller's, and a caller's run is seen in all of its phases.
func TestReadyzRunsCode(t *testing.T) {
	t.Parallel()
	p, stop, err := start(t.TempDir(), "--service-id", serviceID+"-observe", "--pool-size", "1")
	require.NoError(t, err)
	defer func() { require.NoError(t, stop()) }()
	require.Eventually(t, func() bool { return p.pool.Stats().Warm > 0 }, 2*time.Minute, 20*time.Millisecond)

	const probes = `notebox_readiness_probes_total{result="ok"}`
	const runs = `notebox_runs_total{environment="jupyter",status="ok"}`
	require.Zero(t, metricOf(t, p, probes))
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for metricOf(t, p, probes) == 0 { // a host that is slow answers 503 first
		require.NoError(t, ctx.Err())
		_ = mustAsk(t, http.MethodGet, p.url()+"/readyz", "")
		time.Sleep(20 * time.Millisecond)
	}
	require.Zero(t, metricOf(t, p, runs))
	require.Zero(t, metricOf(t, p, `notebox_run_phase_seconds_count{phase="execute"}`))
	require.Zero(t, metricOf(t, p, `notebox_readiness_probes_total{result="failed"}`))

	r := executeOn(t, p, map[string]any{"code": "open('a.csv', 'w').write('1,2')"})
	require.Equal(t, "ok", r.Status, r.Text)
	require.Equal(t, 1.0, metricOf(t, p, runs))
	for _, phase := range []string{"queue", "acquire", "execute", "collect", "store"} {
		require.Equal(t, 1.0, metricOf(t, p, `notebox_run_phase_seconds_count{phase="`+phase+`"}`), phase)
	}
	require.Equal(t, 3.0, metricOf(t, p, `notebox_stored_bytes_total{kind="files"}`))
	require.Positive(t, metricOf(t, p, `notebox_run_cpu_seconds_total{environment="jupyter"}`))
	require.Positive(t, metricOf(t, p, "notebox_pool_target"))
}
