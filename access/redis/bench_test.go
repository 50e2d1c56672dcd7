package redis_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/access"
	"notebox/storage/storagetest"
)

// BenchmarkRun is what limits add to a run at a server on this machine.
func BenchmarkRun(b *testing.B) {
	const many = 1 << 30
	url := storagetest.Redis(b).URL(b)
	for _, c := range []struct {
		desc   string
		limits access.Limits
	}{
		{"none", access.Limits{}},
		{"requests", access.Limits{RequestsPerMinute: many}},
		{"runs", access.Limits{RunsAtOnce: many}},
		{"cpu", access.Limits{CPUPerDay: many * time.Second}},
		{"all", access.Limits{RequestsPerMinute: many, RunsAtOnce: many, CPUPerDay: many * time.Second}},
	} {
		b.Run(c.desc, func(b *testing.B) {
			alice := open(b, url, c.limits).alice(b)
			for b.Loop() {
				require.NoError(b, alice.Request())
				r, err := alice.BeginRun()
				require.NoError(b, err)
				r.Charge(time.Millisecond)
				r.End()
			}
		})
	}
}
