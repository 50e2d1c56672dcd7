package main

import (
	"context"
	"fmt"
	"log"
	"time"
)

// warmUpShare of a load is not counted for runs a second: until then runs come
// out of sandboxes that were there before.
const warmUpShare = 6

// step is one load: a number of callers, by one way.
type step struct {
	way     way
	callers int
}

// steps takes turns between the ways, so that drift hits both.
func steps(seed, warm []int) []step {
	var out []step
	for i := range max(len(seed), len(warm)) {
		if i < len(seed) {
			out = append(out, step{waySeed, seed[i]})
		}
		if i < len(warm) {
			out = append(out, step{wayWarm, warm[i]}, step{wayCell, warm[i]})
		}
	}
	return out
}

func (b *bench) measureSustained(ctx context.Context) error {
	for _, c := range b.loadCases {
		r := b.report.caseNamed(c.name)
		for _, s := range steps(b.seedCallers, b.warmCallers) {
			load, err := b.sustain(ctx, c, s)
			if err != nil {
				return fmt.Errorf("load of %d callers: %s: %w", s.callers, s.way, err)
			}
			log.Printf("load: %s, %s, %d callers: %.2f runs a second, %.2f CPU-seconds each, %d refused",
				c.name, s.way, s.callers, load.PerSecond, load.CPUPerRun, load.Refused)
			r.Sustained[s.way] = append(r.Sustained[s.way], *load)
		}
	}
	return nil
}

// sustain measures from idle to idle.
func (b *bench) sustain(ctx context.Context, c benchCase, s step) (*Load, error) {
	if err := b.awaitQuiet(ctx); err != nil {
		return nil, err
	}
	if err := b.awaitIdle(ctx); err != nil {
		return nil, err
	}
	before, err := readCPU()
	if err != nil {
		return nil, err
	}
	begun := time.Now()
	var hits []hit
	if s.way == waySeed {
		hits, err = b.seed.attack(ctx, c, s.callers, b.load)
	} else {
		hits, err = b.callers[s.way][c.name].attack(ctx, s.callers, b.load)
	}
	if err != nil {
		return nil, err
	}
	if err := b.awaitIdle(ctx); err != nil {
		return nil, err
	}
	after, err := readCPU()
	if err != nil {
		return nil, err
	}
	l := newLoad(s.callers, hits, b.load)
	l.charge(after.since(before), time.Since(begun))
	return l, b.dropStored()
}

// newLoad counts hits of a load that went on for d.
func newLoad(callers int, hits []hit, d time.Duration) *Load {
	l := &Load{Callers: callers, Seconds: d.Seconds()}
	from, within := d/warmUpShare, 0
	var latencies []time.Duration
	for _, h := range hits {
		if h.refused {
			l.Refused++
			continue
		}
		l.Runs++
		latencies = append(latencies, h.latency)
		if h.end >= from && h.end < d {
			within++
		}
	}
	l.PerSecond = round(float64(within)/(d-from).Seconds(), 3)
	if len(latencies) > 0 {
		l.P50, l.P95, l.P99 = milliseconds(percentile(latencies, 50)), milliseconds(percentile(latencies, 95)), milliseconds(percentile(latencies, 99))
	}
	return l
}

// charge adds what the machine spent in the time from idle to idle. What it spends
// idle is in it: taken off, an error of that small figure, or somebody else's work
// while it was taken, would come out as work that notebox does for nothing.
func (l *Load) charge(spent cpuTime, took time.Duration) {
	l.SecondsUntilIdle = round(took.Seconds(), 2)
	l.CPUSeconds = round(spent.busy, 2)
	l.StolenSeconds = round(spent.stolen, 2)
	if l.Runs > 0 {
		l.CPUPerRun = round(l.CPUSeconds/float64(l.Runs), 4)
	}
}
