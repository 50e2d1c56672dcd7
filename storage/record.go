package storage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"

	"gocloud.dev/blob"
	"gocloud.dev/gcerrors"
)

// ErrExists says that there is an object of this key already.
var ErrExists = errors.New("exists already")

const (
	// recordsPrefix is the first component of every record's key. No link is made to
	// what is below it, and none opens it.
	recordsPrefix = "records"

	// recordType is given, so that gocloud does not sniff for it.
	recordType = "application/json"

	// listPage is how many keys List holds at one time: a page of every cloud's.
	listPage = 1000
)

// RecordKey is the key of a record: records/<part>/<part>… Any parts are taken, and
// different ones give different keys. A record is small, is no file of a run, and cannot
// be reached by a link.
func RecordKey(parts ...string) string {
	key := recordsPrefix
	for _, part := range parts {
		key += "/" + shortComponent(part, maxComponentBytes)
	}
	return key
}

func isRecord(key string) bool {
	return key == recordsPrefix || strings.HasPrefix(key, recordsPrefix+"/")
}

// isShare tells the key of a run's share, of which there is one.
func isShare(key string) bool {
	parts := strings.Split(key, "/")
	return len(parts) == 4 && parts[0] == runsPrefix && parts[3] == string(KindShare)
}

// PutNew stores content as the record key, or as a run's share, if there is none: of several
// callers that try it at once, in whatever process, one succeeds and the others get
// ErrExists. With another error it is not known whether the object is there.
func (s *Store) PutNew(ctx context.Context, key string, content []byte) error {
	err := s.putNew(ctx, key, content)
	if gcerrors.Code(err) == gcerrors.FailedPrecondition {
		err = ErrExists
	}
	if err != nil {
		return fmt.Errorf("storage: new record %q: %w", key, shown(err))
	}
	return nil
}

func (s *Store) putNew(ctx context.Context, key string, content []byte) error {
	if !validKey(key) || !isRecord(key) && !isShare(key) {
		return errors.New("not a record's key")
	}
	if s.folder != nil {
		return s.putNewFile(ctx, key, content)
	}
	options := &blob.WriterOptions{ContentType: recordType, IfNotExist: true}
	if s.cloud == nil {
		return s.bucket.WriteAll(ctx, key, content, options)
	}
	options.BufferSize = max(smallPartBytes, len(content)+1) // one request: the condition is of each
	ctx, bucket := s.cloud.once(ctx, options)
	return bucket.Upload(ctx, key, struct{ io.Reader }{bytes.NewReader(content)}, options)
}

// putNewFile is PutNew in a folder. fileblob's own IfNotExist looks and then renames,
// under a lock that each writer has for itself: two writers can both find nothing. link(2)
// looks and names in one step, for all processes that see the file system, NFS included.
func (s *Store) putNewFile(ctx context.Context, key string, content []byte) error {
	w, err := s.createLocal(ctx, Object{Key: key, Name: key, MediaType: recordType})
	if err != nil {
		return err
	}
	defer w.abort() // removes the temporary name; the other stays
	if _, err := w.Write(content); err != nil {
		return err
	}
	return s.folder.name(&w.temporary, key)
}

// Replace stores content as the record key, whether there is one or not.
func (s *Store) Replace(ctx context.Context, key string, content []byte) error {
	if !isRecord(key) {
		return fmt.Errorf("storage: replace %q: not a record's key", key)
	}
	_, err := s.Put(ctx, key, bytes.NewReader(content), key)
	return err
}

// Read returns the whole record key, which may have maxBytes. The error is ErrNotFound
// if there is none.
func (s *Store) Read(ctx context.Context, key string, maxBytes int64) ([]byte, error) {
	content, err := s.read(ctx, key, maxBytes)
	if err != nil {
		return nil, fmt.Errorf("storage: read %q: %w", key, err)
	}
	return content, nil
}

func (s *Store) read(ctx context.Context, key string, maxBytes int64) ([]byte, error) {
	if !validKey(key) || !isRecord(key) {
		return nil, ErrNotFound
	}
	r, err := s.bucket.NewReader(ctx, key, nil)
	if err != nil {
		return nil, s.notFound(ctx, err)
	}
	defer func() { _ = r.Close() }()
	content, err := io.ReadAll(io.LimitReader(r, maxBytes+1))
	if err == nil && int64(len(content)) > maxBytes {
		err = fmt.Errorf("it has more than %d bytes", maxBytes)
	}
	return content, shown(err)
}

// List yields the keys of all records below folder, a result of RecordKey, in no certain
// order: those that were there when it began and still are, and of those that come
// meanwhile any. Records may be deleted while it goes on. After an error it ends.
func (s *Store) List(ctx context.Context, folder string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		var err error
		each := func(key string) bool { return yield(key, nil) }
		switch {
		case !validKey(folder) || !isRecord(folder):
			err = errors.New("not a record's key")
		case s.folder != nil:
			err = s.folder.list(ctx, folder, each)
		default:
			err = s.listBucket(ctx, folder+"/", each)
		}
		if err != nil && !errors.Is(err, errStopped) {
			yield("", fmt.Errorf("storage: list %q: %w", folder, shown(err)))
		}
	}
}

// errStopped says that the caller of List wants no more.
var errStopped = errors.New("stopped")

func (s *Store) listBucket(ctx context.Context, prefix string, yield func(string) bool) error {
	return s.pages(ctx, &blob.ListOptions{Prefix: prefix}, func(page []*blob.ListObject) error {
		for _, o := range page {
			if !yield(o.Key) {
				return errStopped
			}
		}
		return nil
	})
}

// pages calls take with each page of a list.
func (s *Store) pages(ctx context.Context, o *blob.ListOptions, take func([]*blob.ListObject) error) error {
	for token := blob.FirstPageToken; len(token) > 0; {
		page, next, err := s.bucket.ListPage(ctx, token, listPage, o)
		if err == nil {
			err = take(page)
		}
		if err != nil {
			return err
		}
		token = next
	}
	return nil
}
