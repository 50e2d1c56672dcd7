// Package tracing makes OpenTelemetry spans of a request's way, and sends them to
// a collector.
//
//  1. server begins: a span of the request, below the caller's traceparent, with
//     notebook.New and notebook.Decode in it (server.Config.Tracer).
//  2. Runner makes runner.Run, and of the phases that a run tells of runner.queue,
//     runner.acquire, runner.execute and runner.collect, when they are over: the
//     runner itself does not know of traces, and waits for none.
//  3. Store makes storage.Put.
//  4. LogHandler puts the trace's id on the lines of the log.
//  5. Open sends them by OTLP over HTTP, as the standard OTEL_* variables say;
//     without them nothing is made.
//
// Spans have ids, statuses, sizes and times. No code, output, name of a file,
// variable, key or address is in them.
package tracing
