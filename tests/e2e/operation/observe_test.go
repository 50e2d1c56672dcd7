package operation

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/tests/e2e/service"
)

// TestReadyzRunsCode: with real containers, /readyz has a run of its own, that is
// none of a caller's, and a caller's run is seen in all of its phases.
func TestReadyzRunsCode(t *testing.T) {
	t.Parallel()
	p := service.Start(t, "observe", "--pool-size", "1")
	require.Eventually(t, func() bool { return p.Sandboxes(t, "warm") > 0 }, 2*time.Minute, 20*time.Millisecond)

	const probes = `notebox_readiness_probes_total{result="ok"}`
	const runs = `notebox_runs_total{environment="jupyter",status="ok"}`
	require.Zero(t, p.Metric(t, probes))
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for p.Metric(t, probes) == 0 { // a host that is slow answers 503 first
		require.NoError(t, ctx.Err())
		_ = service.Ask(t, http.MethodGet, p.URL+"/readyz", "")
		time.Sleep(20 * time.Millisecond)
	}
	require.Zero(t, p.Metric(t, runs))
	require.Zero(t, p.Metric(t, `notebox_run_phase_seconds_count{phase="execute"}`))
	require.Zero(t, p.Metric(t, `notebox_readiness_probes_total{result="failed"}`))

	r := p.Execute(t, map[string]any{"code": "open('a.csv', 'w').write('1,2')"})
	require.Equal(t, "ok", r.Status, r.Text)
	require.Equal(t, 1.0, p.Metric(t, runs))
	for _, phase := range []string{"queue", "acquire", "execute", "collect", "store"} {
		require.Equal(t, 1.0, p.Metric(t, `notebox_run_phase_seconds_count{phase="`+phase+`"}`), phase)
	}
	require.Equal(t, 3.0, p.Metric(t, `notebox_stored_bytes_total{kind="files"}`))
	require.Positive(t, p.Metric(t, `notebox_run_cpu_seconds_total{environment="jupyter"}`))
	require.Positive(t, p.Metric(t, "notebox_pool_target"))
}
