package ledger

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"notebox/storage"
)

// How a key comes to stand for one execution, whichever of the services that share a
// store gets the requests.
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

// Claim is one record of the chain.
type Claim struct {
	Execution   string    `json:"execution"`
	Fingerprint string    `json:"fingerprint"` // of the request
	Made        time.Time `json:"made"`
	Closed      bool      `json:"closed,omitempty"` // the chain is being removed; see sweep.go
}

// Position is where in a chain an execution's claim stands.
type Position struct {
	Chain string // key of the chain's records, without their number
	Claim int
	Made  time.Time
}

// ClaimKey is the key of the n-th claim of a chain.
func ClaimKey(chain string, n int) string { return fmt.Sprintf("%s.%04d", chain, n) }

// ChainOf is the chain of an owner's key, of which only a hash is kept.
func ChainOf(owner, key string) string {
	hash := sha256.Sum256([]byte(key))
	return storage.RecordKey(idempotencyRecords, OwnerFolder(owner), hex.EncodeToString(hash[:]))
}

// Last returns the newest claim and its number, -1 if there is none. Chains are
// short, and their claims come and go at the end only.
func (b *Book) Last(ctx context.Context, chain string) (Claim, int, error) {
	var newest Claim
	for n := 0; ; n++ {
		var c Claim
		found, err := b.read(ctx, ClaimKey(chain, n), &c)
		if err != nil || !found {
			return newest, n - 1, err
		}
		newest = c
	}
}

// Superseded reports whether a claim is not the last any more. Much older ones after it are
// what a sweep that died has left of an earlier chain. nil is no claim.
func (b *Book) Superseded(ctx context.Context, at *Position) bool {
	if at == nil {
		return false
	}
	var c Claim
	found, _ := b.read(ctx, ClaimKey(at.Chain, at.Claim+1), &c)
	return found && !c.Closed && c.Made.After(at.Made.Add(-SweepGrace))
}

// Claim tries to make a claim at a place; false says that another request did.
func (b *Book) Claim(ctx context.Context, at Position, execution, fingerprint string) (bool, error) {
	first, err := b.put(ctx, ClaimKey(at.Chain, at.Claim), Claim{Execution: execution, Fingerprint: fingerprint, Made: at.Made})
	if err != nil || !first {
		return false, err
	}
	if at.Claim > 0 { // the chain may have been removed meanwhile, from its first claim on
		if whole, err := b.read(ctx, ClaimKey(at.Chain, at.Claim-1), new(Claim)); err != nil || !whole {
			return false, errors.Join(err, b.Remove(ctx, ClaimKey(at.Chain, at.Claim)))
		}
	}
	return true, nil
}
