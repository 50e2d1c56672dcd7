package metrics

import (
	"context"
	"errors"
	"io"
	"strings"
	"time"

	"notebox/server"
	"notebox/storage"
)

// The values of the label operation.
const (
	operationPut   = "put"
	operationGet   = "get"
	operationReady = "ready"
)

func operations() []string { return []string{operationPut, operationGet, operationReady} }

// kindOther is of objects that are not a run's file, image or notebook: replies
// that are kept.
const kindOther = "other"

func kinds() []string {
	return []string{string(storage.KindFile), string(storage.KindImage), string(storage.KindNotebook), kindOther}
}

// Store returns a Store that counts and times the calls of another.
func (m *Metrics) Store(next server.Store) server.Store { return &meteredStore{next, m} }

type meteredStore struct {
	server.Store
	metrics *Metrics
}

// Put implements server.Store. Its time is also that of reading content: of a file
// that comes out of a sandbox.
func (s *meteredStore) Put(ctx context.Context, key string, content io.Reader, name string) (storage.Object, error) {
	began := time.Now()
	source := &source{Reader: content}
	object, err := s.Store.Put(ctx, key, source, name)
	if source.failed {
		return object, err // no fault of the store's
	}
	s.metrics.stored(operationPut, began, err)
	if err == nil {
		s.metrics.storedBytes.WithLabelValues(kindOf(key)).Add(float64(object.Bytes))
	}
	return object, err
}

// Get implements server.Store.
func (s *meteredStore) Get(ctx context.Context, key string) (*storage.Reader, error) {
	began := time.Now()
	r, err := s.Store.Get(ctx, key)
	s.metrics.stored(operationGet, began, err)
	return r, err
}

// Ready implements server.Store.
func (s *meteredStore) Ready(ctx context.Context) error {
	began := time.Now()
	err := s.Store.Ready(ctx)
	s.metrics.stored(operationReady, began, err)
	return err
}

func (m *Metrics) stored(operation string, began time.Time, err error) {
	m.storeTimes.WithLabelValues(operation).Observe(time.Since(began).Seconds())
	if err != nil && !errors.Is(err, storage.ErrNotFound) && !errors.Is(err, context.Canceled) {
		m.storeErrors.WithLabelValues(operation).Inc()
	}
}

// kindOf reads the kind from a key of storage.RunKey: runs/<date>/<run>/<kind>…
func kindOf(key string) string {
	if parts := strings.SplitN(key, "/", 5); len(parts) >= 4 && parts[0] == "runs" {
		for _, kind := range kinds() {
			if parts[3] == kind {
				return kind
			}
		}
	}
	return kindOther
}

// source remembers whether reading failed, to tell whose fault it was, and seeks where
// its reader does: a store begins anew with it.
type source struct {
	io.Reader
	failed bool
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	s.failed = s.failed || err != nil && !errors.Is(err, io.EOF)
	return n, err
}

func (s *source) Seek(offset int64, whence int) (int64, error) {
	if seeker, ok := s.Reader.(io.Seeker); ok {
		return seeker.Seek(offset, whence)
	}
	return 0, errors.ErrUnsupported
}
