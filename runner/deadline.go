package runner

import (
	"sync"
	"time"
)

// newDeadline returns a clock that calls expire once when its time is over, a
// function that reports whether it did, and one that sets the time anew from
// now; 0 stops it for good.
func newDeadline(expire func()) (expired func() bool, set func(time.Duration)) {
	var mu sync.Mutex
	var timer *time.Timer
	over, stopped := false, false
	times := 0 // that set was called: a timer that fires late must not count
	expired = func() bool {
		mu.Lock()
		defer mu.Unlock()
		return over
	}
	set = func(d time.Duration) {
		mu.Lock()
		defer mu.Unlock()
		if timer != nil {
			timer.Stop()
		}
		if stopped = stopped || d == 0; stopped || over {
			return
		}
		times++
		mine := times
		timer = time.AfterFunc(d, func() {
			mu.Lock()
			now := !stopped && mine == times
			over = over || now
			mu.Unlock()
			if now {
				expire()
			}
		})
	}
	return expired, set
}
