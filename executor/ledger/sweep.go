package ledger

import (
	"context"
	"errors"
	"path"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"notebox/storage"
)

const (
	// SweepGrace is how long expired records stay for requests that saw them while
	// they were there.
	SweepGrace = time.Hour
	// maxSweepErrors are told of, and the last one.
	maxSweepErrors = 10
)

// Sweep removes the records that expired. Any number of services may do it at once: each
// removal is by itself, and one that finds nothing is well.
func (b *Book) Sweep(ctx context.Context) error {
	return errors.Join(
		b.sweepFolder(ctx, executionRecords, b.sweepExecution),
		b.sweepFolder(ctx, idempotencyRecords, b.SweepChain),
	)
}

// sweepFolder calls sweep for each execution or chain, with what its records' keys
// have in common.
func (b *Book) sweepFolder(ctx context.Context, folder string, sweep func(ctx context.Context, key string) error) error {
	previous, failed := "", []error(nil)
	for key, err := range b.store.List(ctx, storage.RecordKey(folder)) {
		if err != nil {
			return err
		}
		parent, record := path.Split(key)
		name, _, _ := strings.Cut(record, ".")
		if key = parent + name; key == previous { // most stores list in order
			continue
		}
		previous = key
		if err := sweep(ctx, key); err != nil {
			if ctx.Err() != nil {
				return err
			}
			failed = append(failed[:min(len(failed), maxSweepErrors)], err) // and the rest is swept
		}
	}
	return errors.Join(failed...)
}

// sweepExecution removes the records of an execution that expired. Its id says when
// it began, so that of most nothing has to be read.
func (b *Book) sweepExecution(ctx context.Context, key string) error {
	id, err := ulid.ParseStrict(strings.TrimPrefix(path.Base(key), "run_"))
	if err != nil || !b.expired(ulid.Time(id.Time()).Add(b.ttl)) {
		return nil // not ours, or young
	}
	var r result
	var l lease
	ended, err := b.read(ctx, key+"."+recordResult, &r)
	if err != nil {
		return err
	}
	if ended && !b.expired(r.Expires) {
		return nil
	}
	if leased, err := b.read(ctx, key+"."+recordLease, &l); err != nil || !ended && leased && !b.expired(l.Expires.Add(b.ttl)) {
		return err
	}
	// The lease goes last: as long as anything is left, the next sweep finds it.
	for _, record := range []string{recordResult, RecordReply, recordCancel, recordLease} {
		if err := b.Remove(ctx, key+"."+record); err != nil {
			return err
		}
	}
	return nil
}

// SweepChain removes the claims on an idempotency key when the execution of the last
// one is swept. It closes the chain first, with one more claim: a request that is
// about to add one learns of it. It removes the oldest first, so that one that adds
// to what is half removed finds that the claim before its own is gone. Claims that
// were made since the chain was closed are not its own: they begin the next chain.
func (b *Book) SweepChain(ctx context.Context, chain string) error {
	last, n, err := b.Last(ctx, chain)
	if err != nil || n < 0 {
		return err
	}
	if !last.Closed {
		swept, err := b.swept(ctx, path.Base(path.Dir(chain)), last)
		if err != nil || !swept {
			return err
		}
		last, n = Claim{Closed: true, Made: b.now().UTC()}, n+1
		if first, err := b.put(ctx, ClaimKey(chain, n), last); err != nil || !first {
			return err
		}
	}
	for i := range n + 1 {
		var c Claim
		found, err := b.read(ctx, ClaimKey(chain, i), &c)
		if err != nil {
			return err
		}
		if !found {
			continue
		}
		if c.Closed || c.Made.Before(last.Made.Add(-SweepGrace)) {
			if err := b.Remove(ctx, ClaimKey(chain, i)); err != nil {
				return err
			}
		}
	}
	return nil
}

// swept reports whether nothing is left of the execution that a claim names.
func (b *Book) swept(ctx context.Context, folder string, c Claim) (bool, error) {
	if !b.expired(c.Made.Add(b.ttl)) {
		return false, nil
	}
	key := storage.RecordKey(executionRecords, folder, c.Execution+"."+recordLease)
	there, err := b.read(ctx, key, new(lease))
	return !there, err
}

// expired reports whether something may be removed.
func (b *Book) expired(at time.Time) bool { return b.now().After(at.Add(SweepGrace)) }
