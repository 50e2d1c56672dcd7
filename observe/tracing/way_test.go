package tracing_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"notebox/executor"
	"notebox/runner/runnertest"
	"notebox/storage"
)

const (
	callersTrace = "0af7651916cd43dd8448eb211c80319c"
	callersSpan  = "b7ad6b7169203331"
	traceparent  = "00-" + callersTrace + "-" + callersSpan + "-01"
	// spanPatience is for spans that end after an answer was sent.
	spanPatience = 20 * time.Second
)

// recorded returns a tracer and what it has made.
func recorded(t *testing.T) (trace.Tracer, *tracetest.InMemoryExporter) {
	t.Helper()
	spans := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
	return provider.Tracer("test"), spans
}

// await returns all spans, when that of the request has ended.
func await(t *testing.T, spans *tracetest.InMemoryExporter, request string) tracetest.SpanStubs {
	t.Helper()
	require.Eventually(t, func() bool {
		for _, s := range spans.GetSpans() {
			if s.Name == request {
				return true
			}
		}
		return false
	}, spanPatience, time.Millisecond)
	return spans.GetSpans()
}

// TestFiveHops: a request is one tree below its caller's traceparent, in each of
// the forms in which it can wait for its run.
func TestFiveHops(t *testing.T) {
	for _, c := range []struct {
		desc    string
		headers []string
		status  int
	}{
		{"plain", nil, 200},
		{"streamed", []string{"Accept", "text/event-stream"}, 200},
		{"idempotent", []string{"Idempotency-Key", "k"}, 200},
		{"asynchronous", []string{"Prefer", "respond-async"}, 202},
	} {
		t.Run(c.desc, func(t *testing.T) {
			tracer, spans := recorded(t)
			s := newService(t, tracer)
			s.host.On("x", func(k *runnertest.Kernel) { k.Print("y\n"); k.Files["out.csv"] = "1,2" })
			status, body := s.ask(http.MethodPost, "/v1/execute", `{"code":"x"}`, append(c.headers, asJSON, mediaJSON, "traceparent", traceparent)...)
			require.Equal(t, c.status, status, body)
			await(t, spans, "storage.Put")
			require.Eventually(t, func() bool { return len(kinds(spans.GetSpans())) >= 2 }, spanPatience, time.Millisecond)
			requireTree(t, await(t, spans, "POST /v1/execute"))
		})
	}
}

// TestEachProtocol goes the same way: what is between the request and the runner is one tree.
func TestEachProtocol(t *testing.T) {
	call := `{"call":{"id":"c","type":"function","function":{"name":"execute_python","arguments":"{\"code\":\"x\"}"}}}`
	for _, c := range []struct{ desc, path, body string }{
		{"a run in a session", "/v1/execute", `{"code":"x","session":"SESSION"}`},
		{"a tool's call", "/v1/tools/call", call},
		{"Dify's call", "/run_code", `{"sandbox_id":"SESSION","code":"x"}`},
		{"MCP's call", "/mcp", `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"run_python","arguments":{"code":"x"}}}`},
	} {
		t.Run(c.desc, func(t *testing.T) {
			tracer, spans := recorded(t)
			s := newService(t, tracer)
			s.host.On("x", func(k *runnertest.Kernel) { k.Print("y\n") })
			status, body := s.ask(http.MethodPost, "/v1/sessions", "{}", asJSON, mediaJSON)
			require.Equal(t, http.StatusCreated, status, body)
			head := []string{asJSON, mediaJSON, "Accept", "application/json, text/event-stream"}
			if c.path == "/v1/execute" {
				head = head[:2]
			}
			if c.path == "/mcp" {
				head = append(head, "Mcp-Session-Id", s.began())
				await(t, spans, "POST /mcp") // that of initialize, below which the session's calls are
			}
			status, body = s.ask(http.MethodPost, c.path, strings.ReplaceAll(c.body, "SESSION", s.opened.List("")[0].ID), head...)
			require.Equal(t, http.StatusOK, status, body)
			all := await(t, spans, "POST "+c.path)
			byID := map[trace.SpanID]string{}
			for _, s := range all {
				byID[s.SpanContext.SpanID()] = s.Name
			}
			parents := map[string]string{}
			for _, s := range all {
				if strings.HasPrefix(s.Name, "executor.") || strings.HasPrefix(s.Name, "notebook.") {
					parents[s.Name] = byID[s.Parent.SpanID()]
				}
			}
			require.Equal(t, map[string]string{
				"executor.Begin": "POST " + c.path, "notebook.New": "executor.Begin",
				"executor.Run": "POST " + c.path, "notebook.Decode": "executor.Run",
			}, parents)
		})
	}
}

// kinds are those of the objects of runs that were stored.
func kinds(all tracetest.SpanStubs) map[string]bool {
	out := map[string]bool{}
	for _, s := range all {
		// A result.json comes after the reply, at any time.
		if kind := value(s, "notebox.kind"); s.Name == "storage.Put" && kind != "record" && kind != string(storage.KindResult) {
			out[kind] = true
		}
	}
	return out
}

func value(s tracetest.SpanStub, name string) string {
	for _, a := range s.Attributes {
		if a.Key == attribute.Key(name) {
			return a.Value.String()
		}
	}
	return ""
}

func requireTree(t *testing.T, all tracetest.SpanStubs) {
	t.Helper()
	parents, run := map[string]string{}, ""
	byID := map[trace.SpanID]string{}
	for _, s := range all {
		byID[s.SpanContext.SpanID()] = s.Name
	}
	for _, s := range all {
		require.Equal(t, callersTrace, s.SpanContext.TraceID().String(), s.Name)
		if id := value(s, executor.RunAttribute); id != "" {
			require.True(t, run == "" || run == id)
			run = id
		}
		if s.Name == "storage.Put" {
			continue
		}
		parents[s.Name] = byID[s.Parent.SpanID()]
		if s.Name == "POST /v1/execute" {
			require.Equal(t, callersSpan, s.Parent.SpanID().String())
			require.True(t, s.Parent.IsRemote())
			require.Equal(t, trace.SpanKindServer, s.SpanKind)
			require.Equal(t, "/v1/execute", value(s, "http.route"))
		}
		if s.Name == "runner.Run" {
			require.Equal(t, "ok", value(s, "notebox.status"))
			require.Equal(t, "jupyter", value(s, "notebox.environment"))
		}
	}
	require.True(t, strings.HasPrefix(run, "run_"), run)
	require.Equal(t, map[string]string{
		"POST /v1/execute": "", // the caller's
		"executor.Begin":   "POST /v1/execute",
		"notebook.New":     "executor.Begin",
		"executor.Run":     "POST /v1/execute",
		"runner.Run":       "executor.Run",
		"runner.queue":     "runner.Run",
		"runner.acquire":   "runner.Run",
		"runner.execute":   "runner.Run",
		"runner.collect":   "runner.Run",
		"notebook.Decode":  "executor.Run",
	}, parents)
	for _, s := range all {
		if s.Name == "storage.Put" {
			want := map[string][]string{
				"files": {"runner.Run"}, "notebook.ipynb": {"executor.Run"}, string(storage.KindResult): {"POST /v1/execute"},
				"record": {"executor.Begin", "POST /v1/execute"}, // the lease, and the end
			}[value(s, "notebox.kind")]
			require.Contains(t, want, byID[s.Parent.SpanID()], "of %s", value(s, "notebox.kind"))
		}
	}
	require.Equal(t, map[string]bool{"files": true, "notebook.ipynb": true}, kinds(all))
}

// TestWithoutACaller a request is the root of a trace of its own, and questions of
// machines are none.
func TestWithoutACaller(t *testing.T) {
	tracer, spans := recorded(t)
	s := newService(t, tracer)
	for _, path := range []string{"/healthz", "/readyz", "/metrics"} {
		status, body := s.ask(http.MethodGet, path, "")
		require.Equal(t, http.StatusOK, status, body)
	}
	status, _ := s.ask("GET", "/v1/nothing/like/this?signature=x", "")
	require.Equal(t, http.StatusNotFound, status)
	all := await(t, spans, "GET none")
	require.Len(t, all, 1)
	require.False(t, all[0].Parent.IsValid())
}

// TestOff: without a tracer the log still has the caller's trace.
func TestOff(t *testing.T) {
	s := newService(t, nil)
	status, body := s.ask(http.MethodPost, "/v1/execute", runnertest.CellHello, asJSON, "text/x-python", "traceparent", traceparent)
	require.Equal(t, http.StatusOK, status, body)
	require.Eventually(t, func() bool { return strings.Contains(s.log.String(), `"msg":"request"`) }, spanPatience, time.Millisecond)
	for line := range strings.Lines(s.log.String()) {
		if strings.Contains(line, `"run":"run_`) {
			require.Contains(t, line, `"trace_id":"`+callersTrace+`"`)
		}
	}
}
