package tracing_test

import (
	"compress/gzip"
	"context"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"

	"notebox/observe/tracing"
	"notebox/runner/runnertest"
)

// newCollector is an OTLP/HTTP receiver. What it was sent, it gives to the channel.
func newCollector(t *testing.T) (url string, got <-chan *collector.ExportTraceServiceRequest) {
	t.Helper()
	received := make(chan *collector.ExportTraceServiceRequest, 100)
	ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body io.Reader = r.Body
		if r.Header.Get("Content-Encoding") == "gzip" {
			unzipped, err := gzip.NewReader(r.Body)
			if err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			body = unzipped
		}
		raw, err := io.ReadAll(body)
		request := new(collector.ExportTraceServiceRequest)
		if err != nil || r.URL.Path != "/v1/traces" || r.Header.Get("X-Token") != "collector's" || proto.Unmarshal(raw, request) != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		received <- request
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	t.Cleanup(ts.Close)
	return ts.URL, received
}

// TestExport sends a request's spans to a real receiver, as the standard variables
// say.
func TestExport(t *testing.T) {
	url, got := newCollector(t)
	for name, value := range map[string]string{
		"OTEL_EXPORTER_OTLP_ENDPOINT": url,
		"OTEL_EXPORTER_OTLP_HEADERS":  "x-token=collector%27s",
		"OTEL_RESOURCE_ATTRIBUTES":    "deployment.environment.name=test",
		"OTEL_BSP_SCHEDULE_DELAY":     "10",
	} {
		t.Setenv(name, value)
	}
	tracer, end, err := tracing.Open(t.Context())
	require.NoError(t, err)
	s := newService(t, tracer)
	status, body := s.ask(http.MethodPost, "/v1/execute", runnertest.CellHello, asJSON, "text/x-python", "traceparent", traceparent)
	require.Equal(t, http.StatusOK, status, body)

	want := map[string]bool{"POST /v1/execute": true, "notebook.New": true, "runner.Run": true, "runner.queue": true, "runner.acquire": true,
		"runner.execute": true, "runner.collect": true, "notebook.Decode": true, "storage.Put": true}
	deadline := time.After(spanPatience)
	for len(want) > 0 {
		select {
		case <-deadline:
			require.Failf(t, "spans did not come", "%v", want)
		case request := <-got:
			for _, resource := range request.GetResourceSpans() {
				about := map[string]string{}
				for _, a := range resource.GetResource().GetAttributes() {
					about[a.GetKey()] = a.GetValue().GetStringValue()
				}
				require.Equal(t, "notebox", about["service.name"])
				require.Equal(t, "test", about["deployment.environment.name"])
				for _, scope := range resource.GetScopeSpans() {
					for _, span := range scope.GetSpans() {
						require.Equal(t, callersTrace, hex.EncodeToString(span.GetTraceId()))
						delete(want, span.GetName())
					}
				}
			}
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), spanPatience)
	defer cancel()
	require.NoError(t, end(ctx))
}

func TestEnabled(t *testing.T) {
	for _, c := range []struct {
		desc string
		env  map[string]string
		want bool
	}{
		{"nothing is set", nil, false},
		{"a collector", map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}, true},
		{"one for traces", map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://c:4318/v1/traces"}, true},
		{"one for metrics alone", map[string]string{"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "http://c:4318"}, false},
		{"switched off", map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318", "OTEL_SDK_DISABLED": "true"}, false},
		{"no exporter", map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318", "OTEL_TRACES_EXPORTER": "none"}, false},
	} {
		t.Run(c.desc, func(t *testing.T) {
			require.Equal(t, c.want, tracing.Enabled(func(name string) string { return c.env[name] }))
		})
	}
}

// TestOpen makes nothing where no collector is named, and says what it does not speak.
func TestOpen(t *testing.T) {
	for _, name := range []string{"OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"} {
		t.Setenv(name, "")
	}
	tracer, end, err := tracing.Open(t.Context())
	require.NoError(t, err)
	require.Nil(t, tracer)
	require.Nil(t, end)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
	_, _, err = tracing.Open(t.Context())
	require.ErrorContains(t, err, "http/protobuf")
}
