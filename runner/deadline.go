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
		timer = time.AfterFunc(d, func() {
			mu.Lock()
			over = !stopped
			mu.Unlock()
			if expired() {
				expire()
			}
		})
	}
	return expired, set
}
