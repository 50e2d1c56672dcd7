package conversation

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestDeadline(t *testing.T) {
	type step struct{ at, set time.Duration }
	for _, c := range []struct {
		desc  string
		steps []step
		ends  time.Duration // 0 for never
	}{
		{"goes by", []step{{0, time.Second}}, time.Second},
		{"is never set", nil, 0},
		{"is extended", []step{{0, time.Second}, {500 * time.Millisecond, time.Second}}, 1500 * time.Millisecond},
		{"is shortened", []step{{0, time.Hour}, {time.Second, time.Second}}, 2 * time.Second},
		{"is stopped", []step{{0, time.Second}, {500 * time.Millisecond, 0}}, 0},
		{"is stopped for good", []step{{0, time.Second}, {500 * time.Millisecond, 0}, {600 * time.Millisecond, time.Second}}, 0},
		{"is extended too late", []step{{0, time.Second}, {2 * time.Second, time.Second}}, time.Second},
		{"is stopped too late", []step{{0, time.Second}, {2 * time.Second, 0}}, time.Second},
	} {
		t.Run(c.desc, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begun := time.Now()
				var ends []time.Duration
				expired, set := newDeadline(func() { ends = append(ends, time.Since(begun)) })
				for _, s := range c.steps {
					time.Sleep(s.at - time.Since(begun))
					set(s.set)
				}
				time.Sleep(time.Hour)
				synctest.Wait()
				require.Equal(t, c.ends != 0, expired())
				if c.ends == 0 {
					require.Empty(t, ends)
				} else {
					require.Equal(t, []time.Duration{c.ends}, ends, "once")
				}
			})
		})
	}
}

// TestDeadlineExtendedAtTheLastMoment has time that is over and an extension
// meet: whatever comes first holds, and nobody sees anything in between.
func TestDeadlineExtendedAtTheLastMoment(t *testing.T) {
	for range 200 {
		fired := make(chan struct{}, 2)
		expired, set := newDeadline(func() { fired <- struct{}{} })
		set(time.Microsecond)
		time.Sleep(time.Microsecond)
		set(time.Hour)
		before := expired()
		time.Sleep(20 * time.Microsecond)
		require.Equal(t, before, expired(), "an extension that was in time holds")
		set(0)
		if before {
			<-fired
		}
		require.Empty(t, fired)
	}
}
