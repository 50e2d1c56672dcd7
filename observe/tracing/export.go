package tracing

import (
	"context"
	"fmt"
	"os"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// ServiceName is that of the spans' resource if OTEL_SERVICE_NAME gives none.
const ServiceName = "notebox"

// scope names the spans' instrumentation.
const scope = "notebox"

// Enabled reports whether the environment names a collector
// (https://opentelemetry.io/docs/specs/otel/protocol/exporter/), and tracing is not
// switched off.
func Enabled(getenv func(string) string) bool {
	if strings.EqualFold(getenv("OTEL_SDK_DISABLED"), "true") || getenv("OTEL_TRACES_EXPORTER") == "none" {
		return false
	}
	return getenv("OTEL_EXPORTER_OTLP_ENDPOINT") != "" || getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") != ""
}

// Open returns a Tracer that sends its spans where the OTEL_* variables say, and a
// function that sends what waits and ends it. If they say nothing, both are nil.
// Nothing global is changed.
func Open(ctx context.Context) (trace.Tracer, func(context.Context) error, error) {
	if !Enabled(os.Getenv) {
		return nil, nil, nil
	}
	for _, name := range []string{"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"} {
		if protocol := os.Getenv(name); protocol != "" && protocol != "http/protobuf" {
			return nil, nil, fmt.Errorf("%s is %q: only http/protobuf is spoken", name, protocol)
		}
	}
	exporter, err := otlptracehttp.New(ctx) // reads the endpoint, headers, certificates, timeout
	if err != nil {
		return nil, nil, fmt.Errorf("tracing: %w", err)
	}
	about, err := resource.New(ctx, resource.WithTelemetrySDK(), resource.WithAttributes(attribute.String("service.name", ServiceName)), resource.WithFromEnv())
	if err != nil {
		return nil, nil, fmt.Errorf("tracing: resource: %w", err)
	}
	// The sampler and the batches are as OTEL_TRACES_SAMPLER and OTEL_BSP_* say; what
	// the queue does not hold is dropped, and no request waits for a collector.
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(about))
	return provider.Tracer(scope), provider.Shutdown, nil
}
