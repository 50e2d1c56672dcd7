package executor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"
	"golang.org/x/sync/errgroup"

	"notebox/executor/intake"
	"notebox/executor/ledger"
	"notebox/executor/problem"
	"notebox/runner"
	"notebox/storage"
)

// maxAboutBytes is far above a KeptInput with the longest name.
const maxAboutBytes = 16 << 10

// inputsAtOnce is how many inputs of one request are looked up, made known or removed at
// one time: with 10 ms for each, a thousand take a second or two.
const inputsAtOnce = 8

// storeRetry is when to come back to a store that does not answer.
const storeRetry = 2 * time.Second

// KeptInput is a file that is kept for later runs, as its owner sees it and as it is
// stored beside the content.
type KeptInput struct {
	ID        string     `json:"id"`
	Name      string     `json:"name"`
	Bytes     int64      `json:"bytes"`
	SHA256    string     `json:"sha256"`
	MediaType string     `json:"media_type"`
	ExpiresAt *time.Time `json:"expires_at"` // null: it stays until it is deleted
}

// inputIDs are those of kept inputs, as NewID makes them.
var inputIDs = regexp.MustCompile(`^file_[0-7][0-9A-HJKMNP-TV-Z]{25}$`)

// InputKey is the key of one object of a kept input. The id says on which day it was
// made, and the owner is a part of the key: under another one there is nothing.
func InputKey(owner, id string, part storage.Part) (string, bool) {
	if !inputIDs.MatchString(id) {
		return "", false
	}
	made, err := ulid.ParseStrict(strings.TrimPrefix(id, "file_"))
	if err != nil {
		return "", false
	}
	return storage.InputKey(ulid.Time(made.Time()), ledger.OwnerFolder(owner), id, part), true
}

// lookUp returns what is known of a kept input, nil if there is none.
func (x *Executor) lookUp(ctx context.Context, owner, id string) (*KeptInput, error) {
	key, ok := InputKey(owner, id, storage.PartAbout)
	if !ok {
		return nil, nil
	}
	timed, cancel := context.WithTimeout(ctx, ledger.CallTime)
	defer cancel()
	r, err := x.store.Get(timed, key)
	if errors.Is(err, storage.ErrNotFound) {
		return nil, nil
	}
	var raw []byte
	if err == nil {
		defer r.Close()
		raw, err = io.ReadAll(io.LimitReader(r, maxAboutBytes))
	}
	if err != nil {
		return nil, inputsAway(ctx, err)
	}
	known := new(KeptInput)
	if json.Unmarshal(raw, known) != nil || known.ID != id {
		return nil, nil // as a power cut may leave it
	}
	if known.ExpiresAt != nil && !x.now().Before(*known.ExpiresAt) {
		return nil, nil
	}
	return known, nil
}

// inputsAway is a store that cannot be asked for an input. The cause is told as text: a
// content that was cut off must not be taken for one that ended.
func inputsAway(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return ctx.Err()
	}
	return &problem.Error{
		Status: problem.StatusUnavailable, Text: "the store of files does not answer",
		RetryAfter: storeRetry, Cause: fmt.Errorf("inputs: %s", err),
	}
}

// findInputs looks up the files that a request names by id. Their contents go from the
// store to the sandbox when the run begins; room is what /mnt/data holds.
func (x *Executor) findInputs(ctx context.Context, owner string, all *Inputs, room int64) error {
	problems := make([]error, len(all.List))
	var group errgroup.Group
	group.SetLimit(inputsAtOnce)
	for i, in := range all.List {
		if in.ID == "" {
			continue
		}
		group.Go(func() error {
			known, err := x.lookUp(ctx, owner, in.ID)
			switch {
			case err != nil:
				problems[i] = err
			case known == nil:
				problems[i] = noSuchInput(in)
			default:
				in.Size = known.Bytes
				in.Stored = func() (io.ReadCloser, error) { return x.openInput(ctx, owner, in) }
			}
			return nil
		})
	}
	_ = group.Wait()
	for _, err := range problems { // the first as the request has them
		if err != nil {
			return err
		}
	}
	return all.Check(room)
}

func noSuchInput(in *Input) *problem.Error {
	return problem.Unfit(in.Field+".id", "there is no such file: it has expired, was deleted, or never was")
}

// openInput opens the content of a kept input, for as long as ctx lasts. A store that
// hangs while it is read is one that does not answer: a run holds its place meanwhile.
func (x *Executor) openInput(ctx context.Context, owner string, in *Input) (io.ReadCloser, error) {
	key, _ := InputKey(owner, in.ID, storage.PartContent)
	content, err := openWatched(ctx, x.stall, func(ctx context.Context) (io.ReadCloser, error) { return x.store.Get(ctx, key) })
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return nil, noSuchInput(in)
	case err != nil:
		return nil, inputsAway(ctx, err)
	}
	return &inputContent{content, ctx}, nil
}

type inputContent struct {
	*watchedContent
	run context.Context
}

func (c *inputContent) Read(p []byte) (int, error) {
	n, err := c.watchedContent.Read(p)
	if err != nil && err != io.EOF {
		err = inputsAway(c.run, err)
	}
	return n, err
}

// Drop removes a kept input. found is whether there was one.
func (x *Executor) Drop(ctx context.Context, owner, id string) (found bool, err error) {
	known, err := x.lookUp(ctx, owner, id)
	if known == nil || err != nil {
		return false, err
	}
	if err := x.removeInput(ctx, owner, id); err != nil {
		return true, inputsAway(ctx, err)
	}
	return true, nil
}

// removeInput removes what makes an input known first: the rest cannot be had without.
func (x *Executor) removeInput(ctx context.Context, owner, id string) error {
	for _, part := range []storage.Part{storage.PartAbout, storage.PartContent} {
		key, _ := InputKey(owner, id, part)
		if err := x.book.Remove(ctx, key); err != nil {
			return err
		}
	}
	return nil
}

// Gather finds and fetches a request's inputs, for a /mnt/data of so many bytes.
func (x *Executor) Gather(ctx context.Context, owner string, all *Inputs, room int64, work *intake.Workspace) ([]runner.Input, error) {
	if err := x.findInputs(ctx, owner, all, room); err != nil {
		return nil, err
	}
	budget := min(x.maxUpload, room-all.Size())
	if err := x.fetchAll(ctx, all, budget, work); err != nil {
		return nil, err
	}
	return all.Spec(), nil
}

// Fetch gets one file by its URL, of at most so many bytes.
func (x *Executor) Fetch(ctx context.Context, in *Input, most int64, work *intake.Workspace) error {
	return x.fetchAll(ctx, &Inputs{List: []*Input{in}}, min(x.maxUpload, most), work)
}
