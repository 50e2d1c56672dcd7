package metrics_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/trace/noop"

	"notebox/observe/tracing"
	"notebox/server"
	"notebox/storage"
)

// againStore reads content twice, as a storage.Store does after a short outage.
type againStore struct {
	server.Store
	read []string
}

func (s *againStore) Put(_ context.Context, _ string, content io.Reader, _ string) (storage.Object, error) {
	for range 2 {
		all, _ := io.ReadAll(content)
		s.read = append(s.read, string(all))
		seeker, ok := content.(io.Seeker)
		if !ok {
			return storage.Object{}, errors.New("it cannot be read again")
		}
		if _, err := seeker.Seek(0, io.SeekStart); err != nil {
			return storage.Object{}, err
		}
	}
	return storage.Object{}, nil
}

// TestStoreMayBeginAnew: what counts and traces a Put keeps no store from reading a
// content again.
func TestStoreMayBeginAnew(t *testing.T) {
	m := newMetrics()
	tracer := noop.NewTracerProvider().Tracer("")
	again := new(againStore)
	_, err := tracing.Store(m.Store(again), tracer).Put(t.Context(), "key", bytes.NewReader([]byte("content")), "")
	require.NoError(t, err)
	require.Equal(t, []string{"content", "content"}, again.read)

	once := new(againStore)
	_, err = tracing.Store(m.Store(once), tracer).Put(t.Context(), "key", io.MultiReader(), "")
	require.ErrorIs(t, err, errors.ErrUnsupported, "one that comes once says so")
}
