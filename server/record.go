package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"time"

	"notebox/storage"
)

// Records are what services that share a store tell each other, and themselves
// after a restart, about executions; *storage.Store keeps them.
type Records interface {
	// PutNew creates a record. Of several callers at once, in whatever process,
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
	// recordTime bounds one call of the store for a record: what takes longer
	// for a few hundred bytes does not work.
	recordTime = 10 * time.Second
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
	recordReply  = "reply.json" // the reply, as it was sent; there before recordResult
)

// lease says who runs an execution.
type lease struct {
	Service  string    `json:"service"`           // Config.ServiceID
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

// book reads and writes the records.
type book struct {
	store    Store
	service  string
	instance string
	ttl      time.Duration // of results
	now      func() time.Time
}

// executionKey is the key of one record of an execution.
func executionKey(owner, id, record string) string {
	return storage.RecordKey(executionRecords, ownerFolder(owner), id+"."+record)
}

// ownerFolder is "-" on a service without API keys; owners are hex digits.
func ownerFolder(owner string) string {
	if owner == "" {
		return "-"
	}
	return owner
}

// look returns what is known of an execution that this process does not run; its
// problem is that of one that ended with one.
func (b *book) look(ctx context.Context, owner, id string) (State, *problem, error) {
	var r result
	switch found, err := b.read(ctx, executionKey(owner, id, recordResult), &r); {
	case err != nil:
		return Unknown, nil, err
	case found && !b.now().Before(r.Expires):
		return Unknown, nil, nil
	case found:
		return Ended, r.Problem.problem(), nil
	}
	var l lease
	switch found, err := b.read(ctx, executionKey(owner, id, recordLease), &l); {
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
func (b *book) read(ctx context.Context, key string, v any) (found bool, err error) {
	timed, cancel := context.WithTimeout(ctx, recordTime)
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
func (b *book) put(ctx context.Context, key string, v any) (bool, error) {
	timed, cancel := context.WithTimeout(ctx, recordTime)
	defer cancel()
	err := b.store.PutNew(timed, key, mustJSON(v))
	if errors.Is(err, storage.ErrExists) {
		return false, nil
	}
	if err != nil {
		return false, b.silent(ctx, err)
	}
	return true, nil
}

// replace writes a record anew.
func (b *book) replace(ctx context.Context, key string, v any) error {
	timed, cancel := context.WithTimeout(ctx, recordTime)
	defer cancel()
	if err := b.store.Replace(timed, key, mustJSON(v)); err != nil {
		return b.silent(ctx, err)
	}
	return nil
}

// remove deletes a record that may be there.
func (b *book) remove(ctx context.Context, key string) error {
	ctx, cancel := context.WithTimeout(ctx, recordTime)
	defer cancel()
	if err := b.store.Delete(ctx, key); err != nil && !errors.Is(err, storage.ErrNotFound) {
		return err
	}
	return nil
}

// silent is a store that cannot be asked, or a client of ctx that did not wait for it.
func (b *book) silent(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return ctx.Err()
	}
	return &problem{
		status: http.StatusServiceUnavailable, text: "the store of executions does not answer",
		retryAfter: storeRetry, cause: fmt.Errorf("records: %w", err),
	}
}

func storedOf(p *problem) *storedProblem {
	return &storedProblem{Status: p.status, Field: p.field, Text: p.text, RetryAfter: p.retryAfter.Seconds()}
}

// problem is what was stored, or, where that is no answer that HTTP has, a failure.
func (p *storedProblem) problem() *problem {
	if p == nil {
		return nil
	}
	if p.Status < 400 || http.StatusText(p.Status) == "" {
		return runProblemOf(fmt.Errorf("records: a problem of status %d", p.Status))
	}
	wait := time.Duration(min(max(p.RetryAfter, 0), maxStoredWait.Seconds()) * float64(time.Second))
	return &problem{status: p.Status, field: p.Field, text: p.Text, retryAfter: wait}
}
