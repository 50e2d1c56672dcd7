package storage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"gocloud.dev/blob"
	"gocloud.dev/gcerrors"
)

// errChanged says that an object was replaced while it was read.
var errChanged = errors.New("the object was replaced while it was read")

// Reader reads one object. Seek costs nothing; the Read after it opens a range, so that
// http.ServeContent works and no content is held in memory. It must be closed, and is
// for one goroutine.
type Reader struct {
	Object
	// ETag is a strong entity tag with its quotes, as the header takes it.
	ETag string

	ctx    context.Context // Get's: reads end with it
	store  *Store
	pinned *blob.ReaderOptions // to the object that Get found
	body   *blob.Reader        // nil until Read
	offset int64
}

// Get opens the object key. The error is ErrNotFound if there is none, and the
// Reader reads only as long as ctx lasts.
func (s *Store) Get(ctx context.Context, key string) (*Reader, error) {
	r, err := s.get(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("storage: get %q: %w", key, err)
	}
	return r, nil
}

func (s *Store) get(ctx context.Context, key string) (*Reader, error) {
	if !validKey(key) {
		return nil, ErrNotFound
	}
	attributes, err := s.bucket.Attributes(ctx, key)
	if err != nil {
		return nil, s.notFound(ctx, err)
	}
	r := &Reader{
		Object: Object{
			Key:       key,
			Name:      nameOf(key),
			MediaType: attributes.ContentType,
			Bytes:     attributes.Size,
			ModTime:   attributes.ModTime,
		},
		ETag:  quoted(attributes.ETag),
		ctx:   ctx,
		store: s,
	}
	if s.cloud != nil {
		r.pinned = s.cloud.pin(attributes)
	}
	if s.folder != nil { // it keeps contents alone
		head, _, err := readHead(r, make([]byte, sniffBytes))
		if err == nil {
			r.MediaType = MediaType(r.Name, head)
			_, err = r.Seek(0, io.SeekStart)
		}
		if err != nil {
			_ = r.Close()
			return nil, err
		}
	}
	return r, nil
}

// Read reads on from where the last Read or Seek ended.
func (r *Reader) Read(p []byte) (int, error) {
	if r.offset >= r.Bytes {
		return 0, io.EOF
	}
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	if r.body == nil {
		body, err := r.store.bucket.NewRangeReader(r.ctx, r.Key, r.offset, -1, r.pinned)
		if gcerrors.Code(err) == gcerrors.FailedPrecondition {
			return 0, errChanged
		}
		if err != nil {
			return 0, r.store.known(err)
		}
		r.body = body
		if body.Size() != r.Bytes {
			return 0, errChanged
		}
	}
	n, err := r.body.Read(p)
	r.offset += int64(n)
	if err == io.EOF && r.offset < r.Bytes {
		err = io.ErrUnexpectedEOF
	}
	if err != nil && err != io.EOF {
		err = shown(err)
	}
	return n, err
}

// Seek implements io.Seeker. Beyond the end, Read gives io.EOF.
func (r *Reader) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekStart:
	case io.SeekCurrent:
		offset += r.offset
	case io.SeekEnd:
		offset += r.Bytes
	default:
		return 0, fmt.Errorf("storage: seek: unknown whence %d", whence)
	}
	if offset < 0 {
		return 0, errors.New("storage: seek: before the start")
	}
	if offset != r.offset {
		_ = r.Close()
		r.offset = offset
	}
	return offset, nil
}

// Close frees what the last Read opened.
func (r *Reader) Close() error {
	if r.body == nil {
		return nil
	}
	err := r.body.Close()
	r.body = nil
	return err
}

// Delete removes the object key; the error is ErrNotFound if there is none.
func (s *Store) Delete(ctx context.Context, key string) error {
	if err := s.remove(ctx, key); err != nil {
		return fmt.Errorf("storage: delete %q: %w", key, err)
	}
	return nil
}

func (s *Store) remove(ctx context.Context, key string) error {
	if !validKey(key) {
		return ErrNotFound
	}
	if s.folder != nil { // fileblob would remove an empty folder of this name
		if _, err := s.bucket.Attributes(ctx, key); err != nil {
			return s.known(err)
		}
	}
	return s.notFound(ctx, s.bucket.Delete(ctx, key))
}

// notFound is known for clouds too whose answer to HEAD does not tell an object from a
// container that is missing.
func (s *Store) notFound(ctx context.Context, err error) error {
	err = s.known(err)
	if s.cloud != nil && errors.Is(err, ErrNotFound) {
		if gone := s.cloud.holds(ctx); gone != nil {
			return shown(gone)
		}
	}
	return err
}

// quoted is an entity tag as RFC 9110 wants it; Google's come without quotes.
func quoted(tag string) string {
	if tag == "" || strings.HasSuffix(tag, `"`) {
		return tag
	}
	return `"` + tag + `"`
}
