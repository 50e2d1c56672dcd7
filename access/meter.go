package access

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	// firstRetry is when to come back where no run of the owner has ended yet.
	firstRetry = 10 * time.Second
	// minRetry is the least that Retry-After can say but for "at once".
	minRetry = time.Second
	// maxRetry keeps an estimate from sending a caller away for good.
	maxRetry = time.Minute
	// holdWeight is what the newest run's time counts in the mean: 1/8 follows a change
	// within some ten runs and not every single one (RFC 6298 takes the same).
	holdWeight = 8
)

// meter is what one owner does at this time, with the limits that its newest entry
// gives it.
type meter struct {
	mu       sync.Mutex
	requests *rate.Limiter // nil: no limit
	limits   Limits
	running  map[*Run]bool
	held     time.Duration // mean time of a run; 0: none has ended
}

func newMeter() *meter { return &meter{running: map[*Run]bool{}} }

// limit sets new limits. What an unchanged number of requests a minute has left, stays.
func (m *meter) limit(now time.Time, l Limits) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := l.RequestsPerMinute
	switch {
	case n == 0:
		m.requests = nil
	case m.requests == nil:
		m.requests = rate.NewLimiter(perMinute(n), n)
	case n != m.limits.RequestsPerMinute:
		m.requests.SetLimitAt(now, perMinute(n))
		m.requests.SetBurstAt(now, n)
	}
	m.limits = l
}

func perMinute(n int) rate.Limit { return rate.Limit(float64(n) / time.Minute.Seconds()) }

// request counts one, or returns when there is room for it, and the limit.
func (m *meter) request(now time.Time) (wait time.Duration, most int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.requests == nil || m.requests.AllowN(now, 1) {
		return 0, 0
	}
	// Not by a Reservation: one that is cancelled does not give all of it back.
	missing := 1 - m.requests.TokensAt(now)
	wait = time.Duration(missing / float64(m.requests.Limit()) * float64(time.Second))
	return max(wait, time.Millisecond), m.limits.RequestsPerMinute
}

// left is how many requests there would be of a whole, if all had as much of it left.
func (m *meter) left(now time.Time, whole int) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.requests == nil {
		return whole
	}
	return int(float64(whole) * max(m.requests.TokensAt(now), 0) / float64(m.requests.Burst()))
}

// begin takes a place, or returns when there may be one, and the limit.
func (m *meter) begin(r *Run, now time.Time) (wait time.Duration, most int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if wait, most = m.wait(now); wait == 0 {
		m.running[r] = true
	}
	return wait, most
}

// room is begin, and takes none.
func (m *meter) room(now time.Time) (wait time.Duration, most int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.wait(now)
}

// hold is begin, whatever the limit is.
func (m *meter) hold(r *Run) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.running[r] = true
}

// wait is 0 if there is a place; else untilEnd.
func (m *meter) wait(now time.Time) (wait time.Duration, most int) {
	most = m.limits.RunsAtOnce
	if most == 0 || len(m.running) < most {
		return 0, most
	}
	return m.untilEnd(now), most
}

// retry is wait for who was refused a place by others.
func (m *meter) retry(now time.Time) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.untilEnd(now)
}

// untilEnd is until the oldest run has taken as long as runs of this owner do.
func (m *meter) untilEnd(now time.Time) time.Duration {
	if m.held == 0 {
		return firstRetry
	}
	oldest := now
	for other := range m.running {
		if other.begun.Before(oldest) {
			oldest = other.begun
		}
	}
	return min(max(m.held-now.Sub(oldest), minRetry), maxRetry)
}

func (m *meter) end(r *Run, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.running[r] {
		return
	}
	delete(m.running, r)
	took := max(now.Sub(r.begun), 0)
	if m.held == 0 {
		m.held = took
		return
	}
	m.held += (took - m.held) / holdWeight
}
