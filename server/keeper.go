package server

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"time"

	"notebox/storage"
)

const (
	// storeTime bounds the storing of one image or notebook, which are small.
	storeTime = 30 * time.Second
	// storeAllTime bounds that of all of a run's, when it has ended: a caller waits.
	storeAllTime = 2 * time.Minute
	// storeLiveTime bounds that of an image while its run goes on. What takes longer
	// is stored at the end, and linked then.
	storeLiveTime = 5 * time.Second
)

// errNotStored is what a caller is told; the cause is in the log.
var errNotStored = errors.New("it could not be stored")

// keeper stores what one run leaves and makes links to it.
type keeper struct {
	store   Store
	log     *slog.Logger
	started time.Time
	run     string
	base    string // what links start with
}

// stored is an object of a run with a link to it.
type stored struct {
	storage.Object
	url     string
	expires time.Time
}

// put stores content to its end. Its error is errNotStored or errNotWhole, fit
// for the caller: a run does not fail because the store does.
func (k *keeper) put(ctx context.Context, kind storage.Kind, name, title string, content io.Reader) (stored, error) {
	whole := &watchedReader{Reader: content}
	key := storage.RunKey(k.started, k.run, kind, name)
	object, err := k.store.Put(ctx, key, whole, title)
	if err == nil {
		var s stored
		s.Object = object
		if s.url, s.expires, err = k.store.Link(ctx, key, k.base); err == nil {
			return s, nil
		}
	}
	if whole.failed {
		return stored{}, errNotWhole
	}
	k.log.ErrorContext(ctx, "not stored", "run", k.run, "kind", string(kind), "error", withoutKey(err, key))
	return stored{}, errNotStored
}

// keep is put for what is whole already, with a time limit. It returns a link, ""
// where that failed.
func (k *keeper) keep(ctx context.Context, limit time.Duration, kind storage.Kind, name string, content []byte) string {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	object, err := k.put(ctx, kind, name, name, bytes.NewReader(content))
	if err != nil {
		return ""
	}
	return object.url
}

// errNotWhole is about the sandbox's side of a transfer.
var errNotWhole = errors.New("it did not come out of the sandbox in full")

// watchedReader remembers whether reading failed, to tell whose fault it was.
type watchedReader struct {
	io.Reader
	failed bool
}

func (w *watchedReader) Read(p []byte) (int, error) {
	n, err := w.Reader.Read(p)
	w.failed = w.failed || err != nil && err != io.EOF
	return n, err
}
