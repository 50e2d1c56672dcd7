package ledger

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestG10ClockOfLeases: what a clock that jumps makes of the lease of another service.
func TestG10ClockOfLeases(t *testing.T) {
	var now atomic.Int64
	clock := func() time.Time { return time.Unix(1_800_000_000, now.Load()) }
	other := &Book{service: "other", now: clock}
	b := &Book{service: "this", now: clock}
	for _, c := range []struct {
		desc  string
		jump  time.Duration
		alive bool // before the other service, if it lives, writes its lease anew
	}{
		{"no jump", 0, true},
		{"as much as clocks may differ", ClockSkew, true},
		{"the same, back", -ClockSkew, true},
		{"the last moment", LeaseTime + ClockSkew - 1, true},
		{"an hour on", time.Hour, false},
		{"an hour back", -time.Hour, false},
	} {
		t.Run(c.desc, func(t *testing.T) {
			l := other.lease(true)
			now.Add(int64(c.jump))
			require.Equal(t, c.alive, b.alive(l))
			require.True(t, b.alive(other.lease(true)), "written anew, it is alive")
		})
	}
}
