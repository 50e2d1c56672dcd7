package executor

import (
	"context"

	"go.opentelemetry.io/otel/trace"
)

// RunAttribute is a span's attribute with the id of its run.
const RunAttribute = "notebox.run.id"

// EndSpan returns what ends a span, to be deferred. Where span.End itself is deferred
// it finds a panic, and puts its text into the span, which may quote what is a
// caller's.
func EndSpan(span trace.Span) func() { return func() { span.End() } }

// below returns ctx with the span that another context is in: a run outlives the
// request that began it, and belongs to its trace all the same.
func below(ctx, other context.Context) context.Context {
	return trace.ContextWithSpan(ctx, trace.SpanFromContext(other))
}
