package main

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestPercentile(t *testing.T) {
	upTo := func(n int) []time.Duration {
		var out []time.Duration
		for _, i := range rand.Perm(n) {
			out = append(out, time.Duration(i+1))
		}
		return out
	}
	for _, c := range []struct {
		desc    string
		samples []time.Duration
		p       float64
		want    time.Duration
	}{
		{"one sample", []time.Duration{7}, 50, 7},
		{"one sample, p99", []time.Duration{7}, 99, 7},
		{"the lower of two", []time.Duration{9, 3}, 50, 3},
		{"the middle of three", []time.Duration{9, 3, 5}, 50, 5},
		{"p50 of 100", upTo(100), 50, 50},
		{"p95 of 100", upTo(100), 95, 95},
		{"p99 of 100", upTo(100), 99, 99},
		{"p99 of fewer is the largest", upTo(25), 99, 25},
		{"p99 of 200 leaves two out", upTo(200), 99, 198},
		{"p100", upTo(10), 100, 10},
		{"p0", upTo(10), 0, 1},
	} {
		t.Run(c.desc, func(t *testing.T) { require.Equal(t, c.want, percentile(c.samples, c.p)) })
	}
}

func TestPercentileLeavesTheOrder(t *testing.T) {
	samples := []time.Duration{3, 1, 2}
	percentile(samples, 50)
	require.Equal(t, []time.Duration{3, 1, 2}, samples)
}

func TestDue(t *testing.T) {
	for _, c := range []struct{ n, all int }{{1, 1}, {1, 2}, {25, 200}, {7, 30}, {200, 200}} {
		var rounds []int
		for i := range c.all {
			if due(i, c.n, c.all) {
				rounds = append(rounds, i)
			}
		}
		require.Len(t, rounds, c.n, "%d of %d", c.n, c.all)
		for i := 1; i < len(rounds); i++ {
			gap := rounds[i] - rounds[i-1]
			require.InDelta(t, float64(c.all)/float64(c.n), gap, 1, "evenly spread: %v", rounds)
		}
	}
}
