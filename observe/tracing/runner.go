package tracing

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"notebox/executor"
	"notebox/runner"
)

// Runner returns a Runner that makes a span of each run of another, with one for
// each of its phases.
func Runner(next runner.Runner, t trace.Tracer) runner.Runner { return &tracedRunner{next, t} }

// Sessions returns Sessions with such spans of the runs in them.
func Sessions(next runner.Sessions, t trace.Tracer) runner.Sessions {
	return runner.DecorateSessions(next, func(r runner.Runner) runner.Runner { return Runner(r, t) })
}

type tracedRunner struct {
	next   runner.Runner
	tracer trace.Tracer
}

// Run implements runner.Runner.
func (r *tracedRunner) Run(ctx context.Context, spec runner.Spec, events runner.Sink) (*runner.Outcome, error) {
	ctx, span := r.tracer.Start(ctx, "runner.Run")
	defer executor.EndSpan(span)()
	if !span.IsRecording() {
		return r.next.Run(ctx, spec, events)
	}
	var inputs int64
	for _, in := range spec.Inputs {
		inputs += in.Size
	}
	span.SetAttributes(
		attribute.String(executor.RunAttribute, spec.ID),
		attribute.String("notebox.environment", spec.Environment.Name),
		attribute.Int("notebox.notebook.bytes", len(spec.Notebook)),
		attribute.Int("notebox.inputs", len(spec.Inputs)),
		attribute.Int64("notebox.inputs.bytes", inputs),
	)
	spec.Observe = spec.Observe.And(func(p runner.Phase, begin, end time.Time) {
		_, phase := r.tracer.Start(ctx, "runner."+string(p), trace.WithTimestamp(begin))
		phase.End(trace.WithTimestamp(end))
	})
	out, err := r.next.Run(ctx, spec, events)
	if err != nil {
		span.SetStatus(codes.Error, codeOf(err)) // the error itself may quote what is the caller's
		return out, err
	}
	span.SetAttributes(
		attribute.String("notebox.status", string(out.Status)),
		attribute.Int64("notebox.cpu_ms", out.Usage.CPU.Milliseconds()),
		attribute.Int64("notebox.peak_memory.bytes", out.Usage.PeakMemory),
		attribute.Int("notebox.skipped", len(out.Skipped)),
	)
	return out, nil
}

func codeOf(err error) string {
	if gone := (*runner.GoneError)(nil); errors.As(err, &gone) {
		return string(gone.Reason)
	}
	if known := (*runner.Error)(nil); errors.As(err, &known) {
		return string(known.Code)
	}
	return "failed"
}
