package executor

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"notebox/executor/intake"
	"notebox/executor/ledger"
	"notebox/executor/problem"
	"notebox/record"
	"notebox/storage"
)

const (
	// sharedText and sharedImages bound what one shared page holds: as much as a run may put
	// out unless an operator sets more, and a dozen large pictures.
	sharedText   = 8 << 20
	sharedImages = 12 << 20
	// maxSharedNotebook bounds the executed notebook that a page is made of, and the reply:
	// both are in memory while that is made.
	maxSharedNotebook = 64 << 20
	// maxShareLine is far above the first line of a share.
	maxShareLine = 64 << 10
	// shareTime bounds the making of a page: its caller waits.
	shareTime = time.Minute
)

// Share is a run that its owner shows to whoever has the link. It is stored beside what the
// run left, as one line of JSON, and the record of the run as another.
type Share struct {
	ID      string        `json:"id"` // of the run
	Owner   string        `json:"owner"`
	Secret  string        `json:"secret"` // of this share: the link of one that was revoked is not that of the next
	Ends    *time.Time    `json:"ends"`   // when the run's files go; null: they stay
	Title   string        `json:"title"`
	Summary string        `json:"summary"`
	Picture *record.Image `json:"picture"` // the first image, without its bytes; null if there is none
	Plots   bool          `json:"plots"`   // it has figures of Plotly
	Widgets bool          `json:"widgets"`
}

// SharedKey is what a link to a share of a run signs. No object has this key.
func SharedKey(id, secret string) string { return "shares/" + id + "/" + secret }

// Key is that of a file or an image of the run, by its name below /mnt/data. There need not
// be one, and no name leads out of the run.
func (s *Share) Key(kind storage.Kind, name string) string { return leftKey(s.ID, kind, name) }

// leftKey is the key of what a run left. The id says on which day it began.
func leftKey(id string, kind storage.Kind, name string) string {
	made, _ := ulid.Parse(strings.TrimPrefix(id, "run_")) // of an id, see IsRunID
	return storage.RunKey(ulid.Time(made.Time()), id, kind, name)
}

// Share shares an owner's run that has ended, or returns the share that there is.
func (x *Executor) Share(ctx context.Context, owner, id string) (share *Share, err error) {
	ctx, cancel := context.WithTimeout(ctx, shareTime)
	defer cancel()
	if err := x.hasEnded(ctx, owner, id); err != nil {
		return nil, err
	}
	// In turn whatever its size: pictures are in the notebook, and not in the reply.
	err = x.intake.InTurn(ctx, owner, intake.SpoolMemory, func() error {
		share, err = x.makeShare(ctx, owner, id)
		return err
	})
	return share, err
}

func (x *Executor) makeShare(ctx context.Context, owner, id string) (*Share, error) {
	answer, started, err := x.leftResult(ctx, owner, id)
	if err != nil {
		return nil, err
	}
	there, content, err := x.OpenShare(ctx, id)
	switch {
	case err == nil:
		return there, content.Close()
	case !errors.Is(err, errNoShare):
		return nil, err
	}
	share := &Share{ID: id, Owner: owner, Secret: rand.Text()}
	if x.retention > 0 {
		share.Ends = new(Stamp(started.Add(x.retention)))
	}
	if share.over(x.now()) {
		return nil, problem.NotFound()
	}
	var page bytes.Buffer
	if err := x.writeShare(ctx, &page, share, answer); err != nil {
		return nil, err
	}
	return x.keepShare(ctx, share, page.Bytes())
}

// keepShare stores a share. Of several callers at once one succeeds, and the others get its
// share, so that each has a link that works. The store may refuse those with any error: S3 has
// one of its own for writes at the same moment, after which there need not be an object.
func (x *Executor) keepShare(ctx context.Context, share *Share, page []byte) (*Share, error) {
	key := leftKey(share.ID, storage.KindShare, "")
	var err error
	for range 2 {
		if err = x.store.PutNew(ctx, key, page); err == nil {
			return share, nil
		}
		there, opened := x.standing(ctx, share.ID)
		if there != nil || opened != nil {
			return there, opened
		}
	}
	return nil, inputsAway(ctx, WithoutKey(err, key))
}

// standing returns the share that a run has, nil if it has none, and removes one that is over:
// the operator keeps files for longer now. One caller at a time, who has seen that one, so that
// none removes what another has just stored.
func (x *Executor) standing(ctx context.Context, id string) (*Share, error) {
	x.sharing.Lock()
	defer x.sharing.Unlock()
	share, content, err := x.OpenShare(ctx, id)
	switch {
	case err == nil:
		return share, content.Close()
	case errors.Is(err, errOver):
		if err := x.book.Remove(ctx, leftKey(id, storage.KindShare, "")); err != nil {
			return nil, inputsAway(ctx, err)
		}
		return nil, nil
	case errors.Is(err, errNoShare):
		return nil, nil
	}
	return nil, err
}

func (s *Share) over(now time.Time) bool { return s.Ends != nil && !now.Before(*s.Ends) }

// hasEnded waits until what a run of this process left is stored. The error is that of one
// that goes on.
func (x *Executor) hasEnded(ctx context.Context, owner, id string) error {
	if x.Here(owner, id) {
		return goesOn()
	}
	if gone := x.running.gone(owner, id); gone != nil {
		select {
		case <-gone:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func goesOn() *problem.Error {
	return &problem.Error{Status: problem.StatusConflict, Text: "the run goes on; share it when it has ended"}
}

// leftResult reads an owner's result.json, and tells when the run began. Another owner's is not
// found.
func (x *Executor) leftResult(ctx context.Context, owner, id string) (raw []byte, started time.Time, err error) {
	raw, err = x.left(ctx, id, storage.KindResult, "", maxSharedNotebook)
	if errors.Is(err, storage.ErrNotFound) {
		stands, _, err := x.book.Look(ctx, owner, id)
		switch {
		case err != nil:
			return nil, started, err
		case stands == ledger.Running: // at another service
			return nil, started, goesOn()
		}
		return nil, started, problem.NotFound()
	}
	if err != nil {
		return nil, started, err
	}
	var about struct {
		Started   time.Time
		Owner, ID string
	}
	if json.Unmarshal(raw, &about) != nil || about.Owner != owner || about.ID != id {
		return nil, started, problem.NotFound()
	}
	return raw, about.Started, nil
}

// left reads one object of what a run left. The error is storage.ErrNotFound where there is
// none, else one for the caller.
func (x *Executor) left(ctx context.Context, id string, kind storage.Kind, name string, most int64) ([]byte, error) {
	content, size, err := x.openLeft(ctx, leftKey(id, kind, name))
	if err != nil {
		return nil, err
	}
	defer content.Close()
	if size > most {
		return nil, problem.TooLarge("", "what the run put out has more than %d bytes, which is too much for a page", most)
	}
	raw, err := io.ReadAll(content)
	if err != nil {
		return nil, inputsAway(ctx, err)
	}
	return raw, nil
}

func (x *Executor) openLeft(ctx context.Context, key string) (content io.ReadCloser, size int64, err error) {
	content, err = openWatched(ctx, x.stall, func(ctx context.Context) (io.ReadCloser, error) {
		r, err := x.store.Get(ctx, key)
		if err == nil {
			size = r.Bytes
		}
		return r, err
	})
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return nil, 0, storage.ErrNotFound
	case err != nil:
		return nil, 0, inputsAway(ctx, WithoutKey(err, key))
	}
	return content, size, nil
}

// writeShare makes the page of what the service itself has stored of the run.
func (x *Executor) writeShare(ctx context.Context, w *bytes.Buffer, share *Share, answer []byte) error {
	executed, err := x.left(ctx, share.ID, storage.KindNotebook, "", maxSharedNotebook)
	if errors.Is(err, storage.ErrNotFound) {
		return &problem.Error{Status: problem.StatusConflict, Text: "the run left no notebook in the store, so that there is nothing to share"}
	}
	if err != nil {
		return err
	}
	run, err := record.New(executed, answer, func(name string) ([]byte, error) {
		image, err := x.left(ctx, share.ID, storage.KindImage, name, sharedImages)
		if errors.Is(err, storage.ErrNotFound) {
			return nil, nil
		}
		return image, err
	}, record.Bounds{Text: sharedText, Images: sharedImages})
	if err != nil {
		return err
	}
	share.describe(run)
	for _, line := range []any{share, run} {
		raw, err := json.Marshal(line) // with every "<" escaped
		if err != nil {
			return fmt.Errorf("share: %w", err)
		}
		w.Write(append(raw, '\n'))
	}
	return nil
}

// describe notes what is to be known of a page before it is read.
func (s *Share) describe(run *record.Run) {
	s.Title, s.Summary = run.Title, run.Summary()
	s.Plots, s.Widgets = run.Has("application/vnd.plotly.v1+json"), run.Has("application/vnd.jupyter.widget-view+json")
	if p := run.Picture(); p != nil {
		s.Picture = &record.Image{Name: p.Name, MediaType: p.MediaType, Width: p.Width, Height: p.Height}
	}
}

var (
	// errNoShare says that a run is not shared, or not any more.
	errNoShare error = problem.NotFound()
	// errOver is errNoShare where there still is one, which is over or cannot be read.
	errOver = fmt.Errorf("%w", errNoShare)
)

// OpenShare returns the share of a run, and its record as JSON in which every "<" is escaped,
// which must be closed. Who may see it is not asked. A run that is not shared is not found.
func (x *Executor) OpenShare(ctx context.Context, id string) (*Share, io.ReadCloser, error) {
	content, _, err := x.openLeft(ctx, leftKey(id, storage.KindShare, ""))
	if errors.Is(err, storage.ErrNotFound) {
		return nil, nil, errNoShare
	}
	if err != nil {
		return nil, nil, err
	}
	lines := bufio.NewReaderSize(content, maxShareLine)
	share := new(Share)
	line, err := lines.ReadSlice('\n')
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, bufio.ErrBufferFull) {
		_ = content.Close()
		return nil, nil, inputsAway(ctx, err)
	}
	if err == nil {
		err = json.Unmarshal(line, share)
	}
	if err != nil || share.ID != id || share.Secret == "" || share.over(x.now()) {
		_ = content.Close()
		return nil, nil, errOver
	}
	return share, struct {
		io.Reader
		io.Closer
	}{lines, content}, nil
}

// Unshare ends the share of an owner's run, for all services on the store. found is whether
// there was one.
func (x *Executor) Unshare(ctx context.Context, owner, id string) (found bool, err error) {
	share, content, err := x.OpenShare(ctx, id)
	switch {
	case errors.Is(err, errNoShare):
		return false, nil
	case err != nil:
		return false, err
	}
	_ = content.Close()
	if share.Owner != owner {
		return false, nil
	}
	if err := x.book.Remove(ctx, leftKey(id, storage.KindShare, "")); err != nil {
		return true, inputsAway(ctx, err)
	}
	return true, nil
}
