package admission

import (
	"sync"
	"time"
)

const (
	// holdWeight is what the newest of the times counts: 1/8 follows a change of
	// load within some ten runs and not every single one (RFC 6298 takes the same
	// for round trips).
	holdWeight = 8
	// minRetry is the least that Retry-After can say but for "at once".
	minRetry = time.Second
	// maxRetry keeps an estimate from sending callers away for good.
	maxRetry = time.Minute
	// firstRetry is for a service in which no run has ended yet.
	firstRetry = 10 * time.Second
)

// holdTime is a moving average of how long runs keep their places.
type holdTime struct {
	mu   sync.Mutex
	mean time.Duration // 0: not known
}

func (h *holdTime) add(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.mean == 0 {
		h.mean = d
		return
	}
	h.mean += (d - h.mean) / holdWeight
}

// retryAfter estimates when those who wait now, and one more, have had one of
// the places.
func (h *holdTime) retryAfter(waiting, places int) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.mean == 0 {
		return firstRetry
	}
	estimate := h.mean * time.Duration(waiting+1) / time.Duration(places)
	return min(max(estimate, minRetry), maxRetry)
}
