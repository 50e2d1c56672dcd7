package tracing

import (
	"context"
	"io"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"notebox/executor"
	"notebox/server"
	"notebox/storage"
)

// Store returns a Store that makes a span of each Put of another.
func Store(next server.Store, t trace.Tracer) server.Store { return &tracedStore{next, t} }

type tracedStore struct {
	server.Store
	tracer trace.Tracer
}

// Put implements server.Store. Its span has the kind of the object and not its key,
// which ends with a name from the user's code.
func (s *tracedStore) Put(ctx context.Context, key string, content io.Reader, name string) (storage.Object, error) {
	ctx, span := s.tracer.Start(ctx, "storage.Put")
	defer executor.EndSpan(span)()
	object, err := s.Store.Put(ctx, key, content, name)
	if !span.IsRecording() {
		return object, err
	}
	span.SetAttributes(attribute.String("notebox.kind", kindOf(key)), attribute.Int64("notebox.bytes", object.Bytes))
	if err != nil {
		span.SetStatus(codes.Error, "not stored")
	}
	return object, err
}

// kindOf reads the kind from a key of storage.RunKey: runs/<date>/<run>/<kind>…
func kindOf(key string) string {
	if parts := strings.SplitN(key, "/", 5); len(parts) >= 4 && parts[0] == "runs" {
		return parts[3]
	}
	return "record"
}
