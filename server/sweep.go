package server

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
	// sweepFirst is when records are swept first: a start has better things to do.
	sweepFirst = time.Minute
	// sweepEvery is how long expired records may take up room, and sweepTime what
	// one sweep may take.
	sweepEvery = 30 * time.Minute
	sweepTime  = 10 * time.Minute
	// sweepGrace is how long expired records stay for requests that saw them while
	// they were there.
	sweepGrace = time.Hour
	// maxSweepErrors are told of, and the last one.
	maxSweepErrors = 10
)

// sweepRecords removes expired records until the service ends. Any number of services
// may do it at once: each removal is by itself, and one that finds nothing is well.
func (x *Executor) sweepRecords() {
	x.repeat(sweepFirst, sweepEvery, "expired records", x.sweepOnce)
}

// repeat sweeps until the service ends.
func (x *Executor) repeat(first, every time.Duration, what string, sweep func(context.Context) error) {
	timer := time.NewTimer(first)
	defer timer.Stop()
	for {
		select {
		case <-x.runs.Done():
			return
		case <-timer.C:
		}
		ctx, cancel := context.WithTimeout(x.runs, sweepTime)
		if err := sweep(ctx); err != nil && x.runs.Err() == nil {
			x.log.Warn(what+" are left for the next sweep", "error", err)
		}
		cancel()
		timer.Reset(every)
	}
}

func (x *Executor) sweepOnce(ctx context.Context) error {
	return errors.Join(
		x.sweepFolder(ctx, executionRecords, x.book.sweepExecution),
		x.sweepFolder(ctx, idempotencyRecords, x.book.sweepChain),
	)
}

// sweepFolder calls sweep for each execution or chain, with what its records' keys
// have in common.
func (x *Executor) sweepFolder(ctx context.Context, folder string, sweep func(ctx context.Context, key string) error) error {
	previous, failed := "", []error(nil)
	for key, err := range x.store.List(ctx, storage.RecordKey(folder)) {
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
func (b *book) sweepExecution(ctx context.Context, key string) error {
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
	for _, record := range []string{recordResult, recordReply, recordCancel, recordLease} {
		if err := b.remove(ctx, key+"."+record); err != nil {
			return err
		}
	}
	return nil
}

// sweepChain removes the claims on an idempotency key when the execution of the last
// one is swept. It closes the chain first, with one more claim: a request that is
// about to add one learns of it. It removes the oldest first, so that one that adds
// to what is half removed finds that the claim before its own is gone. Claims that
// were made since the chain was closed are not its own: they begin the next chain.
func (b *book) sweepChain(ctx context.Context, chain string) error {
	last, n, err := b.last(ctx, chain)
	if err != nil || n < 0 {
		return err
	}
	if !last.Closed {
		swept, err := b.swept(ctx, path.Base(path.Dir(chain)), last)
		if err != nil || !swept {
			return err
		}
		last, n = claim{Closed: true, Made: b.now().UTC()}, n+1
		if first, err := b.put(ctx, claimKey(chain, n), last); err != nil || !first {
			return err
		}
	}
	for i := range n + 1 {
		var c claim
		found, err := b.read(ctx, claimKey(chain, i), &c)
		if err != nil {
			return err
		}
		if !found {
			continue
		}
		if c.Closed || c.Made.Before(last.Made.Add(-sweepGrace)) {
			if err := b.remove(ctx, claimKey(chain, i)); err != nil {
				return err
			}
		}
	}
	return nil
}

// swept reports whether nothing is left of the execution that a claim names.
func (b *book) swept(ctx context.Context, folder string, c claim) (bool, error) {
	if !b.expired(c.Made.Add(b.ttl)) {
		return false, nil
	}
	key := storage.RecordKey(executionRecords, folder, c.Execution+"."+recordLease)
	there, err := b.read(ctx, key, new(lease))
	return !there, err
}

// expired reports whether something may be removed.
func (b *book) expired(at time.Time) bool { return b.now().After(at.Add(sweepGrace)) }
