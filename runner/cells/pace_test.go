package cells

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// TestPace: a large transfer takes its time while others move little, and only then.
func TestPace(t *testing.T) {
	const size, part = 48 << 20, 32 << 10
	transfer := func(o *others) time.Duration {
		var p pace
		begun := time.Now()
		for range size / part {
			p.moved(part, o)
		}
		return time.Since(begun)
	}
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Hour) // so that nobody has been there lately
		require.Zero(t, transfer(new(others)), "it is alone")

		o, done := new(others), make(chan struct{})
		go func() {
			for p := new(pace); ; {
				select {
				case <-done:
					return
				case <-time.After(20 * time.Millisecond):
					p.moved(1000, o)
				}
			}
		}()
		time.Sleep(time.Second)
		beside := transfer(o)
		close(done)
		require.InDelta(t, 2.0, beside.Seconds(), 0.1, "beside small runs: 24 MiB a second")
		time.Sleep(time.Second)
		require.Zero(t, transfer(o), "they are gone")

		time.Sleep(time.Second)
		begun, other := time.Now(), make(chan struct{})
		large := func(p *pace) {
			for i := range size / part {
				p.moved(part, o)
				if i%8 == 0 {
					time.Sleep(5 * time.Millisecond) // it is late, as on a busy machine
				}
			}
		}
		go func() { defer close(other); large(new(pace)) }()
		large(new(pace))
		<-other
		require.Less(t, time.Since(begun).Seconds(), 1.5, "two large ones do not wait for each other: only at their start both are small")
	})
}
