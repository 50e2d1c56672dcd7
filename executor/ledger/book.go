package ledger

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"

	"notebox/executor/problem"
	"notebox/storage"
)

// Store keeps replies, and records: what services that share it tell each other, and
// themselves after a restart, about executions. *storage.Store is one.
type Store interface {
	// Put stores content to its end, or nothing. name is for downloads.
	Put(ctx context.Context, key string, content io.Reader, name string) (storage.Object, error)
	// Get returns an error that is storage.ErrNotFound for an unknown key.
	Get(ctx context.Context, key string) (*storage.Reader, error)

	// PutNew creates a record, or a run's share. Of several callers at once, in whatever process,
	// one succeeds; the others get an error that is storage.ErrExists.
	PutNew(ctx context.Context, key string, content []byte) error
	Replace(ctx context.Context, key string, content []byte) error
	// Read returns an error that is storage.ErrNotFound for an unknown key.
	Read(ctx context.Context, key string, maxBytes int64) ([]byte, error)
	// List yields the keys below a folder, in no certain order.
	List(ctx context.Context, folder string) iter.Seq2[string, error]
	Delete(ctx context.Context, key string) error
}

const (
	// replyTime bounds the storing of a reply, and recordRetry is when to come back to a
	// store that does not answer.
	replyTime   = 30 * time.Second
	recordRetry = 2 * time.Second
	// CallTime bounds one call of the store for a record: what takes longer
	// for a few hundred bytes does not work.
	CallTime = 10 * time.Second
	// maxStoredWait bounds the Retry-After of a problem that is read back: the service
	// writes 60 s at most.
	maxStoredWait = time.Hour
	// maxRecordBytes is far above a problem that quotes a caller's text.
	maxRecordBytes = 64 << 10
)

// The folders of records, each with a folder for every owner in it.
const (
	executionRecords   = "executions"
	idempotencyRecords = "idempotency"
)

// The records of an execution, as the last part of their keys.
const (
	recordLease  = "lease"
	recordCancel = "cancel"     // somebody wants it cancelled
	recordResult = "result"     // it has ended
	RecordReply  = "reply.json" // the reply, as it was sent; there before recordResult
)

// lease says who runs an execution.
type lease struct {
	Service  string    `json:"service"`           // as New was given it
	Instance string    `json:"instance"`          // of this start of it
	Expires  time.Time `json:"expires"`           // renewed while the execution goes on
	Passing  bool      `json:"passing,omitempty"` // nothing of the execution is kept after its end
}

// result says how an execution ended.
type result struct {
	Expires time.Time      `json:"expires"` // from then on it is as if it were not there
	Problem *storedProblem `json:"problem"` // null: there is a reply
}

// storedProblem is the public part of a problem.
type storedProblem struct {
	Status     int     `json:"status"`
	Field      string  `json:"field,omitempty"`
	Text       string  `json:"text"`
	RetryAfter float64 `json:"retry_after,omitempty"` // seconds
}

// Book reads and writes the records.
type Book struct {
	store    Store
	service  string
	instance string
	ttl      time.Duration // of results
	now      func() time.Time
}

// New returns a Book that writes as a service of this id; "" is an id of its own. Two
// processes that run at one time must not have one id. ttl is how long results stay.
func New(store Store, service string, ttl time.Duration, now func() time.Time) *Book {
	return &Book{store: store, service: cmp.Or(service, rand.Text()), instance: rand.Text(), ttl: ttl, now: now}
}

// ExecutionKey is the key of one record of an execution.
func ExecutionKey(owner, id, record string) string {
	return storage.RecordKey(executionRecords, OwnerFolder(owner), id+"."+record)
}

// OwnerFolder is "-" on a service without API keys; owners are hex digits.
func OwnerFolder(owner string) string {
	if owner == "" {
		return "-"
	}
	return owner
}

// Look returns what is known of an execution that this process does not run; its
// problem is that of one that ended with one.
func (b *Book) Look(ctx context.Context, owner, id string) (State, *problem.Error, error) {
	var r result
	switch found, err := b.read(ctx, ExecutionKey(owner, id, recordResult), &r); {
	case err != nil:
		return Unknown, nil, err
	case found && !b.now().Before(r.Expires):
		return Unknown, nil, nil
	case found:
		return Ended, r.Problem.problem(), nil
	}
	var l lease
	switch found, err := b.read(ctx, ExecutionKey(owner, id, recordLease), &l); {
	case err != nil || !found:
		return Unknown, nil, err
	case l.Passing && l.Instance == b.instance: // it has ended, and its lease is about to go
		return Unknown, nil, nil
	case b.alive(l):
		return Running, nil, nil
	case b.now().Before(l.Expires.Add(b.ttl)):
		return BrokenOff, nil, nil
	}
	return Unknown, nil, nil
}

// read decodes a record. One that is none, as a power cut may leave it, is there
// and empty: expired, and of nobody.
func (b *Book) read(ctx context.Context, key string, v any) (found bool, err error) {
	timed, cancel := context.WithTimeout(ctx, CallTime)
	defer cancel()
	raw, err := b.store.Read(timed, key, maxRecordBytes)
	if errors.Is(err, storage.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, b.silent(ctx, err)
	}
	_ = json.Unmarshal(raw, v)
	return true, nil
}

// put creates a record; false says that there is one already.
func (b *Book) put(ctx context.Context, key string, v any) (bool, error) {
	timed, cancel := context.WithTimeout(ctx, CallTime)
	defer cancel()
	raw, err := json.Marshal(v)
	if err == nil {
		err = b.store.PutNew(timed, key, raw)
	}
	if errors.Is(err, storage.ErrExists) {
		return false, nil
	}
	if err != nil {
		return false, b.silent(ctx, err)
	}
	return true, nil
}

// replace writes a record anew.
func (b *Book) replace(ctx context.Context, key string, v any) error {
	timed, cancel := context.WithTimeout(ctx, CallTime)
	defer cancel()
	raw, err := json.Marshal(v)
	if err == nil {
		err = b.store.Replace(timed, key, raw)
	}
	if err != nil {
		return b.silent(ctx, err)
	}
	return nil
}

// Remove deletes a record that may be there.
func (b *Book) Remove(ctx context.Context, key string) error {
	ctx, cancel := context.WithTimeout(ctx, CallTime)
	defer cancel()
	if err := b.store.Delete(ctx, key); err != nil && !errors.Is(err, storage.ErrNotFound) {
		return err
	}
	return nil
}

// silent is a store that cannot be asked, or a client of ctx that did not wait for it.
func (b *Book) silent(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return ctx.Err()
	}
	return &problem.Error{
		Status: problem.StatusUnavailable, Text: "the store of executions does not answer",
		RetryAfter: recordRetry, Cause: fmt.Errorf("records: %w", err),
	}
}

// problem is what was stored, or, if that is no answer that HTTP has, a failure.
func (p *storedProblem) problem() *problem.Error {
	if p == nil {
		return nil
	}
	status := problem.Status(p.Status)
	if !status.Known() {
		return problem.Failed(fmt.Errorf("records: a problem of status %d", p.Status))
	}
	wait := time.Duration(min(max(p.RetryAfter, 0), maxStoredWait.Seconds()) * float64(time.Second))
	return &problem.Error{Status: status, Field: p.Field, Text: p.Text, RetryAfter: wait}
}

// Begin writes the lease of an execution. passing is whether nothing of it is kept after
// its end.
func (b *Book) Begin(ctx context.Context, owner, id string, passing bool) error {
	_, err := b.put(ctx, ExecutionKey(owner, id, recordLease), b.lease(passing))
	return err
}

// Renew writes the lease anew.
func (b *Book) Renew(ctx context.Context, owner, id string, passing bool) error {
	return b.replace(ctx, ExecutionKey(owner, id, recordLease), b.lease(passing))
}

// mark is how an execution is to be cancelled.
type mark struct {
	Gently bool `json:"gently,omitempty"` // it is interrupted first
}

// Mark says that somebody wants an execution cancelled, which another service runs. The first mark
// counts.
func (b *Book) Mark(ctx context.Context, owner, id string, gently bool) error {
	_, err := b.put(ctx, ExecutionKey(owner, id, recordCancel), mark{gently})
	return err
}

// Marked reports whether there is a mark, and how it is meant. If the store does not say, there is
// none.
func (b *Book) Marked(ctx context.Context, owner, id string) (marked, gently bool) {
	var m mark
	marked, _ = b.read(ctx, ExecutionKey(owner, id, recordCancel), &m)
	return marked, m.Gently
}

// Forget removes the records of an execution that has no result.
func (b *Book) Forget(ctx context.Context, owner, id string) error {
	return errors.Join(b.Remove(ctx, ExecutionKey(owner, id, recordLease)), b.Remove(ctx, ExecutionKey(owner, id, recordCancel)))
}

// ReplyKey is where the reply of an execution is.
func ReplyKey(owner, id string) string { return ExecutionKey(owner, id, RecordReply) }

// Conclude stores how an execution ended: with a reply, or with a problem. The reply goes
// first, so that a result that can be seen has one.
func (b *Book) Conclude(ctx context.Context, owner, id string, reply []byte, p *problem.Error) error {
	r := result{}
	if p != nil {
		r.Problem = &storedProblem{Status: int(p.Status), Field: p.Field, Text: p.Text, RetryAfter: p.RetryAfter.Seconds()}
	} else {
		ctx, cancel := context.WithTimeout(ctx, replyTime)
		defer cancel()
		key := ReplyKey(owner, id)
		if _, err := b.store.Put(ctx, key, bytes.NewReader(reply), key); err != nil {
			return err
		}
	}
	r.Expires = b.now().Add(b.ttl).UTC()
	return b.replace(ctx, ExecutionKey(owner, id, recordResult), r)
}

// Open opens a stored reply, and tells its length in bytes. It must be closed.
func (b *Book) Open(ctx context.Context, key string) (io.ReadCloser, int64, error) {
	opening, cancel := context.WithCancel(ctx)
	late := time.AfterFunc(CallTime, cancel) // bounds the opening; the reading, its client does
	content, err := b.store.Get(opening, key)
	if !late.Stop() && err == nil {
		_ = content.Close()
		err = context.DeadlineExceeded
	}
	switch {
	case err == nil:
		return &openReply{content, cancel}, content.Bytes, nil
	case errors.Is(err, storage.ErrNotFound):
		err = problem.NotFound() // it expired at this moment
	default:
		err = b.silent(ctx, err)
	}
	cancel()
	return nil, 0, err
}

// openReply is a stored reply with the context of its opening.
type openReply struct {
	*storage.Reader
	cancel context.CancelFunc
}

func (r *openReply) Close() error {
	defer r.cancel()
	return r.Reader.Close()
}

// State is how an execution stands.
type State int

// The states.
const (
	Unknown   State = iota // there is none, or it expired
	Running                // or it waits for its place
	BrokenOff              // its service ended before it did
	Ended
)
