package executor

import (
	"bytes"
	"context"
	"errors"
	"io"
	"path"
	"time"

	"golang.org/x/sync/errgroup"

	"notebox/executor/problem"
	"notebox/storage"
)

// Keeping is files of an owner that are being kept for later runs: all of them or none.
type Keeping struct {
	of    *Executor
	owner string
	made  time.Time
	kept  []KeptInput
	begun []string // the ids of all that may be in the store
}

// Keep begins to keep files of an owner. Either Publish or Undo must be called.
func (x *Executor) Keep(owner string) *Keeping { return &Keeping{of: x, owner: owner, made: x.now()} }

// Len is how many files there are.
func (k *Keeping) Len() int { return len(k.kept) }

// Put stores one file. name is clean, see CleanName. If content cannot be read, or the
// store fails, nothing of it is kept.
func (k *Keeping) Put(ctx context.Context, name string, content io.Reader) error {
	id, err := NewID("file_", k.made)
	if err != nil {
		return err
	}
	key, _ := InputKey(k.owner, id, storage.PartContent)
	k.begun = append(k.begun, id)
	object, err := k.of.put(ctx, key, content, path.Base(name))
	if err != nil {
		return k.failed(ctx, err)
	}
	known := KeptInput{ID: id, Name: name, Bytes: object.Bytes, SHA256: object.SHA256, MediaType: object.MediaType}
	if k.of.retention > 0 {
		known.ExpiresAt = new(Stamp(k.made.Add(k.of.retention)))
	}
	k.kept = append(k.kept, known)
	return nil
}

// put is the store's Put. Its error is ErrStalled too, if the store took no byte for too long.
func (x *Executor) put(ctx context.Context, key string, content io.Reader, name string) (storage.Object, error) {
	return putWatched(ctx, content, x.stall, func(ctx context.Context, steady io.Reader) (storage.Object, error) {
		return x.store.Put(ctx, key, steady, name)
	})
}

// failed is what the client is told of a store that has not taken something.
func (k *Keeping) failed(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	text := "the files cannot be stored"
	if storage.Temporary(err) || errors.Is(err, ErrStalled) {
		text = errStoreAway.text
	}
	return &problem.Error{Status: problem.StatusUnavailable, Text: text, RetryAfter: storeRetry, Cause: err}
}

// Publish makes the files known, and returns them.
func (k *Keeping) Publish(caller context.Context) ([]KeptInput, error) {
	ctx, cancel := context.WithTimeout(caller, storeAllTime)
	defer cancel()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(inputsAtOnce)
	for _, known := range k.kept {
		group.Go(func() error {
			key, _ := InputKey(k.owner, known.ID, storage.PartAbout)
			raw, err := EncodeJSON(known)
			if err == nil {
				_, err = k.of.store.Put(ctx, key, bytes.NewReader(raw), string(storage.PartAbout))
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, k.failed(caller, err)
	}
	return k.kept, nil
}

// Undo removes what was stored. What it cannot remove is known to nobody, and goes with
// its time.
func (k *Keeping) Undo(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTime)
	defer cancel()
	group, ctx := errgroup.WithContext(ctx) // a store that fails once is not asked for each
	group.SetLimit(inputsAtOnce)
	for _, id := range k.begun {
		group.Go(func() error {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return k.of.removeInput(ctx, k.owner, id)
		})
	}
	if err := group.Wait(); err != nil {
		k.of.log.Warn("files of an upload that failed are left in the store", "error", err)
	}
}
