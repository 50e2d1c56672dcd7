package storage

import (
	"context"
	"errors"
	"io"

	"gocloud.dev/blob"
)

// maxHoldTries bounds how often a Put makes its temporary file anew. A sweep meets it
// only in the microseconds before it is locked, and each process sweeps once.
const maxHoldTries = 10

// smallPartBytes is the smallest piece that Google takes.
const smallPartBytes = 256 << 10

// target is an object that nobody can see until commit returns.
type target interface {
	io.Writer
	// commit makes the object visible, all of it or, with an error, nothing of it.
	commit() error
	// abort drops the object. After commit it does nothing.
	abort()
}

// writer is a target in a folder or in memory.
type writer struct {
	blob      *blob.Writer
	temporary temporary
	cancel    context.CancelFunc
	closed    bool
}

// create starts to write o. The caller must call abort. small says that all of it is a
// few hundred bytes.
func (s *Store) create(ctx context.Context, o Object, small bool) (target, error) {
	if s.cloud != nil {
		return startUpload(ctx, s.bucket, o.Key, cloudOptions(o, small, s.partBytes), s.takesBack), nil
	}
	return s.createLocal(ctx, o)
}

// cloudOptions bound the buffers. For a small object they are small: Google's client
// makes the buffer for one piece at once.
func cloudOptions(o Object, small bool, part int) *blob.WriterOptions {
	options := &blob.WriterOptions{
		ContentType:        o.MediaType,
		ContentDisposition: o.Disposition(),
		BufferSize:         part,
		MaxConcurrency:     partsAtOnce,
	}
	if small {
		options.BufferSize = smallPartBytes
	}
	return options
}

func (s *Store) createLocal(ctx context.Context, o Object) (*writer, error) {
	var err error
	for range maxHoldTries {
		var w *writer
		if w, err = s.tryCreate(ctx, o); err == nil {
			return w, nil
		}
		if !errors.Is(err, errSwept) {
			break
		}
	}
	return nil, err
}

func (s *Store) tryCreate(ctx context.Context, o Object) (*writer, error) {
	ctx, cancel := context.WithCancel(ctx)
	w := &writer{cancel: cancel}
	options := &blob.WriterOptions{ContentType: o.MediaType, ContentDisposition: o.Disposition()}
	if s.folder != nil {
		options.BeforeWrite = w.temporary.hold
	}
	var err error
	if w.blob, err = s.bucket.NewWriter(ctx, o.Key, options); err != nil {
		cancel()
		w.temporary.release()
		return nil, err
	}
	return w, nil
}

func (w *writer) Write(p []byte) (int, error) { return w.blob.Write(p) }

func (w *writer) commit() error {
	if err := w.temporary.sync(); err != nil {
		return err
	}
	return w.close()
}

// abort drops the object: a blob.Writer whose context has ended writes nothing.
func (w *writer) abort() {
	w.cancel()
	if !w.closed {
		_ = w.close()
	}
}

func (w *writer) close() error {
	w.closed = true
	defer w.temporary.release()
	defer w.cancel()
	return w.blob.Close()
}
