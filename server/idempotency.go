package server

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"time"

	"notebox/storage"
)

// How an Idempotency-Key comes to stand for one execution, whichever of the
// services that share a store gets the requests.
//
// The claims on a key are a chain of records, …/<hash>.0000, .0001 and so on. Each
// is created once (PutNew decides who does) and never changed; the last counts. It
// names an execution, whose own lease and result say how it stands:
//
//  1. It goes on or has a reply: who asks joins it. Another body is 409.
//  2. It was cut off: who asks makes the next claim, for an execution of its own.
//     Of several that do, one succeeds, and the others join it.
//  3. It ended with a problem, which is no reply to keep, or expired: the same, and
//     any body will do.
//
// An execution's lease is there before a claim names it, so that whoever sees the
// claim finds its owner alive. An owner that was thought dead meets the next claim
// when it renews its lease and before it stores its result, and gives up.

const (
	// maxClaims bounds how often one key is tried within a result's life: a client
	// that failed so often should think of something else. Each try reads all before it.
	maxClaims = 100
	// claimTries bounds the rounds in which others were faster.
	claimTries = 10
	// joinEvery is how often the records of another service's execution are looked at.
	joinEvery = 250 * time.Millisecond
)

// claim is one record of the chain.
type claim struct {
	Execution   string    `json:"execution"`
	Fingerprint string    `json:"fingerprint"` // of the request
	Made        time.Time `json:"made"`
	Closed      bool      `json:"closed,omitempty"` // the chain is being removed; see sweep.go
}

// position is where in a chain an execution's claim stands.
type position struct {
	chain string // key of the chain's records, without their number
	claim int
	made  time.Time
}

func claimKey(chain string, n int) string { return fmt.Sprintf("%s.%04d", chain, n) }

// chainOf is the chain of an owner's Idempotency-Key, of which only a hash is kept.
func chainOf(owner, key string) string {
	hash := sha256.Sum256([]byte(key))
	return storage.RecordKey(idempotencyRecords, ownerFolder(owner), hex.EncodeToString(hash[:]))
}

// last returns the newest claim and its number, -1 where there is none. Chains are
// short, and their claims come and go at the end only.
func (b *book) last(ctx context.Context, chain string) (claim, int, error) {
	var newest claim
	for n := 0; ; n++ {
		var c claim
		found, err := b.read(ctx, claimKey(chain, n), &c)
		if err != nil || !found {
			return newest, n - 1, err
		}
		newest = c
	}
}

// superseded reports whether an execution's claim is not the last any more. Much
// older ones after it are what a sweep that died has left of an earlier chain.
func (b *book) superseded(ctx context.Context, e *execution) bool {
	if e.position == nil {
		return false
	}
	var c claim
	found, _ := b.read(ctx, claimKey(e.position.chain, e.position.claim+1), &c)
	return found && !c.Closed && c.Made.After(e.position.made.Add(-sweepGrace))
}

// claimOrJoin returns the id of the execution that a key stands for: e's, if it is
// the first, else that of the one to join.
func (x *Executor) claimOrJoin(ctx context.Context, e *execution, key string) (string, error) {
	// A claim that the client's leaving cut off would be nobody's.
	ctx = context.WithoutCancel(ctx)
	chain := chainOf(e.owner, key)
	for range claimTries {
		newest, n, err := x.book.last(ctx, chain)
		if err != nil {
			return "", err
		}
		if n >= 0 && newest.Execution == e.id {
			// The store did what it called a failure: its client tried it twice.
			e.position = &position{chain, n, newest.Made}
			return e.id, nil
		}
		if newest.Closed {
			if err := x.book.sweepChain(ctx, chain); err != nil {
				return "", err
			}
			continue
		}
		if n >= 0 {
			join, err := x.joinable(ctx, e, newest)
			if err != nil || join {
				return newest.Execution, err
			}
		}
		if n+1 >= maxClaims {
			return "", busyKey("was tried %d times without success", maxClaims)
		}
		first, err := x.claim(ctx, e, position{chain, n + 1, x.now().UTC()})
		if err != nil || first {
			return e.id, err
		}
	}
	return "", busyKey("is claimed by too many requests at this time")
}

// joinable reports whether the execution of the newest claim is one to join, or
// free to be run (again).
func (x *Executor) joinable(ctx context.Context, e *execution, newest claim) (bool, error) {
	stands, failure := Running, (*problem)(nil)
	if here := x.running.find(e.owner, newest.Execution); here == nil {
		var err error
		if stands, failure, err = x.book.look(ctx, e.owner, newest.Execution); err != nil {
			return false, err
		}
	} else if here.failed() {
		return false, nil
	}
	if stands == Unknown || failure != nil {
		return false, nil
	}
	if newest.Fingerprint != e.fingerprint {
		return false, &problem{status: http.StatusConflict, field: "Idempotency-Key", text: "was used for another request"}
	}
	return stands != BrokenOff, nil
}

// claim tries to make e's claim at a place; false says that another request did.
func (x *Executor) claim(ctx context.Context, e *execution, at position) (bool, error) {
	if err := x.register(ctx, e); err != nil {
		return false, err
	}
	c := claim{Execution: e.id, Fingerprint: e.fingerprint, Made: at.made}
	first, err := x.book.put(ctx, claimKey(at.chain, at.claim), c)
	if err != nil || !first {
		return false, err
	}
	if at.claim > 0 { // the chain may have been removed meanwhile, from its first claim on
		if whole, err := x.book.read(ctx, claimKey(at.chain, at.claim-1), new(claim)); err != nil || !whole {
			return false, errors.Join(err, x.book.remove(ctx, claimKey(at.chain, at.claim)))
		}
	}
	e.position = &at
	return true, nil
}

func busyKey(format string, args ...any) *problem {
	return &problem{
		status: http.StatusServiceUnavailable, field: "Idempotency-Key", text: fmt.Sprintf(format, args...),
		retryAfter: time.Second,
	}
}
