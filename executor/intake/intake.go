package intake

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"notebox/executor/problem"
	"notebox/runner"
	"notebox/runner/admission"
)

// Intake takes requests in: it bounds how many are read at one time, and for whom, and has
// a folder for what they send until it is run.
type Intake struct {
	dir    string
	places Places               // large requests that are taken in at one time
	turns  *admission.Admission // large texts that are decoded at one time
	probe  *diskProbe
	log    *slog.Logger
}

// intakeRetry is when to come back to a service that takes in no more: most bodies are there
// within it.
const intakeRetry = 2 * time.Second

// New returns one for so many large requests at one time. share reports whether there
// are several owners, none of whom takes all places. dir is a folder of its own; what an
// earlier process left there is removed.
func New(dir string, most int, share func() bool, log *slog.Logger) (*Intake, error) {
	if err := sweepWorkspaces(dir); err != nil {
		return nil, fmt.Errorf("temporary folder: %w", err)
	}
	return &Intake{
		dir: dir, log: log, probe: &diskProbe{folder: dir, place: make(chan struct{}, 1)},
		places: Places{Most: most, Share: share, What: "large requests", Are: "are being read", RetryAfter: intakeRetry},
		turns:  admission.New(nil, admission.Limits{MaxRunning: maxDecoding, MaxWaiting: maxDecodingWaiting, MaxWait: decodingWait, ShareWaiting: true}),
	}, nil
}

// Workspace returns one for a request of an owner. It must be cleared.
func (i *Intake) Workspace(owner string) *Workspace {
	return &Workspace{parent: i.dir, Owner: owner, log: i.log, enter: func() (func(), error) { return i.Enter(owner) }}
}

// Enter takes a place for a large request that is read without a workspace. leave gives it
// back, and may be called again.
func (i *Intake) Enter(owner string) (leave func(), err error) { return i.places.Enter(owner) }

// Transfers returns as many places, shared in the same way, for files of sessions under way.
func (i *Intake) Transfers() *Places {
	return &Places{Most: i.places.Most, Share: i.places.Share, What: "files of sessions", Are: "are under way", RetryAfter: transferRetry}
}

// transferRetry is when to come back to a service that has too many files under way.
const transferRetry = 2 * time.Second

// Taken is how many places are taken.
func (i *Intake) Taken() int { return i.places.Taken() }

// Waiting is how many large texts wait to be decoded.
func (i *Intake) Waiting() int { return i.turns.Waiting() }

// Aside returns a workspace for what is put aside of an answer, which needs no place.
func (i *Intake) Aside() *Workspace { return &Workspace{parent: i.dir, log: i.log} }

// Dir is the folder.
func (i *Intake) Dir() string { return i.dir }

// DiskReady returns nil if a file could be written, within ctx.
func (i *Intake) DiskReady(ctx context.Context) error { return i.probe.ready(ctx) }

// maxDecoding is how many large texts (above SpoolMemory) are decoded at one
// time: it is work for the CPU, and each takes a few times its size of memory.
const maxDecoding = 4

// maxDecodingWaiting texts wait for that, on disk; decodingWait is far longer than it takes.
const (
	maxDecodingWaiting = 1000
	decodingWait       = time.Minute
)

// InTurn calls fn, which decodes a text of so many bytes. Only maxDecoding large ones are
// decoded at one time, and owners have turns: many of one do not hold up another's.
func (i *Intake) InTurn(ctx context.Context, owner string, size int64, fn func() error) error {
	if size < SpoolMemory {
		return fn()
	}
	leave, err := i.turns.Enter(ctx, owner)
	if full := (*runner.Error)(nil); errors.As(err, &full) {
		p := &problem.Error{Status: problem.StatusUnavailable, Text: "too many large requests are being decoded at this time", RetryAfter: intakeRetry, Cause: err}
		if full.Code == runner.CodeShare {
			p.Status, p.Text = problem.StatusTooMany, "too many large requests of this caller wait to be decoded: the rest of the places is for others"
		}
		return p
	}
	if err != nil {
		return err
	}
	defer leave()
	return fn()
}
