package server

import (
	"context"
	"time"
)

// sweepParts is how often within the retention the store is swept, so that nothing
// stays longer than a quarter of it beyond its time, nor than sweepEvery.
const sweepParts = 4

// sweepRuns removes runs and inputs whose time is over, until the service ends. Where
// the retention is 0 there is nothing to do: they stay, or the store's own rules remove
// them.
func (x *Executor) sweepRuns() {
	if x.retention <= 0 {
		return
	}
	// A request may have seen an input just before its time was over.
	grace := min(sweepGrace, x.retention/sweepParts)
	every := min(sweepEvery, max(x.retention/sweepParts, time.Second))
	x.repeat(min(sweepFirst, every), every, "old runs", func(ctx context.Context) error {
		removed, err := x.store.Sweep(ctx, x.now().Add(-x.retention-grace))
		if removed > 0 {
			x.log.InfoContext(ctx, "removed what old runs have left", "objects", removed)
		}
		return err
	})
}
