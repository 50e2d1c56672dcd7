package tracing_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/trace"

	"notebox/environments"
	"notebox/observe/metrics"
	"notebox/observe/tracing"
	"notebox/runner/admission"
	"notebox/runner/pool"
	"notebox/runner/runnertest"
	"notebox/runner/session"
	"notebox/server"
	"notebox/storage"
)

// service is the whole way of a request, on sandboxes that are goroutines.
type service struct {
	t       *testing.T
	url     string
	host    *runnertest.Fake
	opened  *session.Sessions
	metrics *metrics.Metrics
	log     *lockedBuffer
}

// lockedBuffer is a log that goroutines write to.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// newService wires one up as cmd/notebox does. tracer may be nil.
func newService(t *testing.T, tracer trace.Tracer, change ...func(*server.Config)) *service {
	s := &service{t: t, host: runnertest.NewFake(), log: new(lockedBuffer)}
	t.Cleanup(s.host.Close)
	s.host.On("1+1", func(*runnertest.Kernel) {}) // what /readyz runs
	log := slog.New(tracing.LogHandler(slog.NewJSONHandler(s.log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	pool := pool.New(s.host.Engine("test"), pool.Options{Log: log})
	t.Cleanup(func() { require.NoError(t, pool.Close(context.Background())) })
	admission := admission.New(pool, admission.Limits{MaxRunning: 4, MaxWaiting: 4, MaxWait: time.Minute})
	s.opened = session.New(pool, admission, session.Options{Log: log})
	t.Cleanup(func() { require.NoError(t, s.opened.Close(context.Background())) })
	store, err := storage.Open(t.Context(), storage.Options{URL: "mem://"})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })

	s.metrics = metrics.New(metrics.Sources{
		Pool: pool.Stats, Runs: func() (int, int) { return admission.Running(), admission.Waiting() }, Environments: []string{"jupyter"},
	})
	cfg := server.Config{
		Runner: s.metrics.Runner(admission), Store: store,
		Metrics: s.metrics.Handler(), Observer: s.metrics, Pool: pool.Stats, Prober: pool,
		Environments: []environments.Environment{{Name: "jupyter", Language: "python", Kernel: environments.Kernel{Name: "python3"}, Image: "fake", MediaTypes: []string{"text/x-python"}}},
		Sessions:     s.opened, TempDir: t.TempDir(), Log: log,
	}
	for _, c := range change {
		c(&cfg)
	}
	cfg.Store = s.metrics.Store(cfg.Store)
	if tracer != nil {
		cfg.Tracer, cfg.Runner, cfg.Store = tracer, tracing.Runner(cfg.Runner, tracer), tracing.Store(cfg.Store, tracer)
	}
	api, err := server.New(cfg)
	require.NoError(t, err)
	ts := httptest.NewUnstartedServer(nil)
	ts.Config = api.HTTPServer()
	ts.Start()
	t.Cleanup(func() { require.NoError(t, api.Close()) })
	t.Cleanup(ts.Close)
	s.url = ts.URL
	return s
}

// ask sends a request. headers are names and values in turn.
func (s *service) ask(method, path, body string, headers ...string) (int, string) {
	s.t.Helper()
	req, err := http.NewRequest(method, s.url+path, strings.NewReader(body))
	require.NoError(s.t, err)
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := http.DefaultTransport.RoundTrip(req)
	require.NoError(s.t, err)
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	require.NoError(s.t, err)
	return res.StatusCode, string(answer)
}

// began begins an MCP session, and returns its id.
func (s *service) began() string {
	s.t.Helper()
	body := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
	req, err := http.NewRequest(http.MethodPost, s.url+"/mcp", strings.NewReader(body))
	require.NoError(s.t, err)
	req.Header.Set(asJSON, mediaJSON)
	req.Header.Set("Accept", "application/json, text/event-stream")
	res, err := http.DefaultTransport.RoundTrip(req)
	require.NoError(s.t, err)
	defer res.Body.Close()
	return res.Header.Get("Mcp-Session-Id")
}

const (
	asJSON    = "Content-Type"
	mediaJSON = "application/json"
)
