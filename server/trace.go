package server

import (
	"cmp"
	"net/http"

	"notebox/executor"
	"notebox/server/web"

	"github.com/labstack/echo/v4"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// callersTrace reads W3C's traceparent (https://www.w3.org/TR/trace-context/).
// tracestate and baggage, which are a caller's data, are left where they are.
var callersTrace = propagation.TraceContext{}

// traceRequests makes a span of each request, below the caller's own. Without a
// tracer that costs the reading of one header, and lines in the log still carry
// the caller's trace id.
func (s *Server) traceRequests(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		r := c.Request()
		switch r.URL.Path {
		case "/healthz", "/readyz", "/metrics":
			return next(c) // of machines that ask every few seconds
		}
		ctx := callersTrace.Extract(r.Context(), propagation.MapCarrier{"traceparent": r.Header.Get("Traceparent")})
		ctx, span := s.tracer.Start(ctx, "HTTP "+methodOf(r.Method), trace.WithSpanKind(trace.SpanKindServer))
		defer executor.EndSpan(span)()
		c.SetRequest(r.WithContext(ctx))
		err := next(c)
		if !span.IsRecording() {
			return err
		}
		route, status := cmp.Or(c.Path(), noRoute), c.Response().Status
		span.SetName(methodOf(r.Method) + " " + route)
		span.SetAttributes(
			attribute.String("http.request.method", methodOf(r.Method)),
			attribute.String("http.route", route),
			attribute.Int("http.response.status_code", status),
			attribute.Int64("http.response.body.size", c.Response().Size),
		)
		if r.ContentLength >= 0 {
			span.SetAttributes(attribute.Int64("http.request.body.size", r.ContentLength))
		}
		if run := web.Run(c); run != "" {
			span.SetAttributes(attribute.String(executor.RunAttribute, run))
		}
		if status >= http.StatusInternalServerError {
			span.SetStatus(codes.Error, "")
		}
		return err
	}
}
