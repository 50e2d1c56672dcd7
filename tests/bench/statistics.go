package main

import (
	"math"
	"slices"
	"time"
)

// percentile is exact, by nearest rank: the smallest sample that p percent of all
// samples do not exceed. It is one of the samples; with fewer than 100 of them the
// 99th is the largest.
func percentile(samples []time.Duration, p float64) time.Duration {
	sorted := slices.Sorted(slices.Values(samples))
	rank := int(math.Ceil(p / 100 * float64(len(sorted))))
	return sorted[max(rank, 1)-1]
}

func milliseconds(d time.Duration) float64 { return round(float64(d)/float64(time.Millisecond), 2) }

// round to that many decimals, which JSON then shows.
func round(x float64, decimals int) float64 {
	scale := math.Pow10(decimals)
	return math.Round(x*scale) / scale
}

// ratio is 0 if there is nothing to compare with.
func ratio(a, b float64) float64 {
	if b <= 0 {
		return 0
	}
	return round(a/b, 3)
}
