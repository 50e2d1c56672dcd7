package main

import (
	"context"
	"fmt"
	"log"
	"time"
)

// measureLatency fills in each case's latencies, round by round.
func (b *bench) measureLatency(ctx context.Context) error {
	if b.warmUp {
		log.Print("one run of each that is not counted")
		for _, c := range b.cases {
			if err := b.eachWay(ctx, c, func(way, time.Duration) {}); err != nil {
				return err
			}
		}
	}
	samples := make([]map[way][]time.Duration, len(b.cases))
	for i := range samples {
		samples[i] = map[way][]time.Duration{}
	}
	for round := range b.warmRuns {
		all := due(round, b.otherRuns, b.warmRuns)
		for i, c := range b.cases {
			keep := func(w way, took time.Duration) { samples[i][w] = append(samples[i][w], took) }
			var err error
			if all {
				err = b.eachWay(ctx, c, keep)
			} else {
				err = b.someWays(ctx, c, keep, wayWarm, wayStep, wayCell)
			}
			if err != nil {
				return err
			}
		}
		if due(round, 10, b.warmRuns) {
			log.Printf("latency: %d of %d rounds", round+1, b.warmRuns)
		}
	}
	for i, c := range b.cases {
		r := b.report.caseNamed(c.name)
		for w, list := range samples[i] {
			r.Latency[w] = newLatency(list)
		}
	}
	return nil
}

// due spreads n rounds evenly over all, and says whether this is one of them.
func due(round, n, all int) bool { return (round+1)*n/all > round*n/all }

func (b *bench) eachWay(ctx context.Context, c benchCase, keep func(way, time.Duration)) error {
	return b.someWays(ctx, c, keep, waySeed, wayWarm, wayStep, wayCell, wayEmpty)
}

func (b *bench) someWays(ctx context.Context, c benchCase, keep func(way, time.Duration), ways ...way) error {
	for _, w := range ways {
		if err := b.oneWay(ctx, w, c, keep); err != nil {
			return err
		}
	}
	return nil
}

// oneWay runs c once, on a machine that has nothing else to do.
func (b *bench) oneWay(ctx context.Context, w way, c benchCase, keep func(way, time.Duration)) error {
	if err := b.awaitIdle(ctx); err != nil {
		return err
	}
	took, err := b.runOnce(ctx, w, c)
	if err != nil {
		return fmt.Errorf("%s: %w", w, err)
	}
	keep(w, took)
	if c.file == nil {
		return nil
	}
	if err := b.awaitIdle(ctx); err != nil {
		return err
	}
	return b.dropStored()
}

func (b *bench) runOnce(ctx context.Context, w way, c benchCase) (time.Duration, error) {
	if w == waySeed {
		return b.seed.once(ctx, c)
	}
	return b.callers[w][c.name].once(ctx)
}
