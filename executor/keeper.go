package executor

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"sync/atomic"
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
	// storePatience is what one run waits in all for a store that fails: two outages
	// that are over in time, as storage.Put tries anew for 10 s. From then on nothing
	// of the run is stored, so that 200 files do not wait one after the other.
	storePatience = 20 * time.Second
	// DefaultStoreStall is how long the store may take no byte of a file, the last of which
	// it may have 25 MB of in its buffers: a store that hangs is one that fails.
	DefaultStoreStall = 30 * time.Second
)

// unstored says why something could not be stored, fit for the caller; the cause is
// in the log. A run does not fail because the store does.
type unstored struct {
	text  string
	retry bool // the same request may do better soon
}

func (u *unstored) Error() string { return u.text }

var (
	errNotStored = &unstored{"it could not be stored", false}
	errStoreAway = &unstored{"it could not be stored: the store does not answer", true}
	// errNotWhole is about the sandbox's side of a transfer.
	errNotWhole = errors.New("it did not come out of the sandbox in full")
	ErrStalled  = errors.New("the store has taken no byte for too long")
)

// keeper stores what one run leaves and makes links to it.
type keeper struct {
	store   Store
	log     *slog.Logger
	started time.Time
	run     string
	base    string        // what links start with
	tempDir string        // for files that are to be sent to the store again
	stall   time.Duration // DefaultStoreStall; tests have less
	waited  atomic.Int64  // time that putting in vain has taken
}

// stored is an object of a run with a link to it.
type stored struct {
	storage.Object
	url     string
	expires time.Time
}

// put stores content and makes a link to it. Its error is that of the store, without
// the name.
func (k *keeper) put(ctx context.Context, kind storage.Kind, name, title string, content io.Reader) (s stored, err error) {
	key := storage.RunKey(k.started, k.run, kind, name)
	if s.Object, err = k.store.Put(ctx, key, content, title); err != nil {
		return stored{}, WithoutKey(err, key)
	}
	if s.url, s.expires, err = k.store.Link(ctx, key, k.base); err != nil {
		return stored{}, WithoutKey(err, key)
	}
	return s, nil
}

// impatient reports whether the run has waited for the store long enough.
func (k *keeper) impatient() bool { return time.Duration(k.waited.Load()) >= storePatience }

// explain logs why something was not stored, and returns what the caller is told.
func (k *keeper) explain(ctx context.Context, began time.Time, kind storage.Kind, err error) *unstored {
	k.waited.Add(int64(time.Since(began)))
	k.log.ErrorContext(ctx, "not stored", "run", k.run, "kind", string(kind), "error", err)
	if storage.Temporary(err) || errors.Is(err, ErrStalled) {
		return errStoreAway
	}
	return errNotStored
}

// keep stores what is whole already, with a time limit. It returns a link, or why
// there is none.
func (k *keeper) keep(ctx context.Context, limit time.Duration, kind storage.Kind, name string, content []byte) (string, *unstored) {
	if k.impatient() {
		return "", errStoreAway
	}
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	object, err := k.put(ctx, kind, name, name, bytes.NewReader(content))
	if err != nil {
		return "", k.explain(ctx, began, kind, err)
	}
	return object.url, nil
}

// file stores a file while it comes out of the sandbox, which sends it once: the store
// may keep it beside, to begin anew with it. If it is not stored it is read to its
// end all the same, and the error is an *unstored, with the size that it had. Any other
// error is errNotWhole.
func (k *keeper) file(ctx context.Context, name, title string, content io.Reader) (s stored, size int64, err error) {
	began := time.Now()
	whole := &WatchedReader{Reader: content}
	lost := errStoreAway
	if !k.impatient() {
		again := k.store.Replay(whole, k.tempDir)
		defer again.Close()
		s, err = putWatched(ctx, again, k.stall, func(ctx context.Context, steady io.Reader) (stored, error) {
			return k.put(ctx, storage.KindFile, name, title, steady)
		})
		switch {
		case err == nil:
			return s, s.Bytes, nil
		case whole.Failed != nil:
			return stored{}, 0, errNotWhole
		}
		lost = k.explain(ctx, began, storage.KindFile, err)
	}
	if _, err := io.Copy(io.Discard, whole); err != nil {
		return stored{}, 0, errNotWhole
	}
	return stored{}, whole.bytes, lost
}

// WatchedReader remembers why reading failed, to tell whose fault it was.
type WatchedReader struct {
	io.Reader
	bytes  int64
	Failed error
}

func (w *WatchedReader) Read(p []byte) (int, error) {
	n, err := w.Reader.Read(p)
	w.bytes += int64(n)
	if err != nil && err != io.EOF {
		w.Failed = err
	}
	return n, err
}

// watchStall is for a Put of content: timed ends, with the cause ErrStalled, when the store
// takes no byte for so long.
func watchStall(ctx context.Context, content io.Reader, after time.Duration) (timed context.Context, steady *steadyReader, stop func()) {
	timed, cancel := context.WithCancelCause(ctx)
	stall := time.AfterFunc(after, func() { cancel(ErrStalled) })
	return timed, &steadyReader{content, stall, after}, func() {
		stall.Stop()
		cancel(nil)
	}
}

// putWatched calls put with content. Its error is ErrStalled too, if the store took no byte
// for so long.
func putWatched[T any](ctx context.Context, content io.Reader, after time.Duration, put func(context.Context, io.Reader) (T, error)) (T, error) {
	timed, steady, stop := watchStall(ctx, content, after)
	defer stop()
	object, err := put(timed, steady)
	return object, joinStall(timed, err)
}

// joinStall makes an error ErrStalled too, if that is why ctx has ended.
func joinStall(ctx context.Context, err error) error {
	if err != nil && context.Cause(ctx) == ErrStalled {
		return errors.Join(ErrStalled, err)
	}
	return err
}

// steadyReader stops a timer while it is read and starts it anew. It seeks if its reader does.
type steadyReader struct {
	io.Reader
	stall *time.Timer
	after time.Duration
}

func (r *steadyReader) Read(p []byte) (int, error) {
	r.stall.Stop() // the sandbox's time is not the store's
	defer r.stall.Reset(r.after)
	return r.Reader.Read(p)
}

func (r *steadyReader) Seek(offset int64, whence int) (int64, error) {
	if seeker, ok := r.Reader.(io.Seeker); ok {
		return seeker.Seek(offset, whence)
	}
	return 0, errors.ErrUnsupported
}

// watchedContent is read from the store, or from a sandbox. Its ctx ends, with the cause
// ErrStalled, if no byte of it comes for too long.
type watchedContent struct {
	io.ReadCloser
	ctx    context.Context
	cancel context.CancelCauseFunc
	stall  *time.Timer // it goes while the content is opened or read
	after  time.Duration
}

// openWatched opens a content. Its error is ErrStalled too, if that took too long.
func openWatched(ctx context.Context, after time.Duration, open func(context.Context) (io.ReadCloser, error)) (c *watchedContent, err error) {
	c = &watchedContent{after: after}
	c.ctx, c.cancel = context.WithCancelCause(ctx)
	c.stall = time.AfterFunc(after, func() { c.cancel(ErrStalled) })
	c.ReadCloser, err = open(c.ctx)
	c.stall.Stop()
	if err != nil {
		err = joinStall(c.ctx, err)
		c.cancel(nil)
		return nil, err
	}
	return c, nil
}

func (c *watchedContent) Read(p []byte) (int, error) {
	c.stall.Reset(c.after)
	defer c.stall.Stop()
	return c.ReadCloser.Read(p)
}

func (c *watchedContent) Close() error {
	defer c.cancel(nil)
	return c.ReadCloser.Close()
}
