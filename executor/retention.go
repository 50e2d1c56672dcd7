package executor

import (
	"context"
	"time"

	"notebox/executor/ledger"
)

// sweepParts is how often within the retention the store is swept, so that nothing
// stays longer than a quarter of it beyond its time, nor than sweepEvery.
const sweepParts = 4

const (
	// sweepFirst is when records are swept first: a start has better things to do.
	sweepFirst = time.Minute
	// sweepEvery is how long expired records may take up room, and sweepTime what
	// one sweep may take.
	sweepEvery = 30 * time.Minute
	sweepTime  = 10 * time.Minute
)

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

// sweepRuns removes runs and inputs whose time is over, until the service ends. Where
// the retention is 0 there is nothing to do: they stay, or the store's own rules remove
// them.
func (x *Executor) sweepRuns() {
	if x.retention <= 0 {
		return
	}
	// A request may have seen an input just before its time was over.
	grace := min(ledger.SweepGrace, x.retention/sweepParts)
	every := min(sweepEvery, max(x.retention/sweepParts, time.Second))
	x.repeat(min(sweepFirst, every), every, "old runs", func(ctx context.Context) error {
		removed, err := x.store.Sweep(ctx, x.now().Add(-x.retention-grace))
		if removed > 0 {
			x.log.InfoContext(ctx, "removed what old runs have left", "objects", removed)
		}
		return err
	})
}
