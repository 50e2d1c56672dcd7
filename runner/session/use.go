package session

import (
	"context"
	"sync"
	"time"

	"notebox/runner"
)

// use counts who uses a session, and ends the session when its time is over.
//
//  1. A call uses the session from begin until leave.
//  2. If none does, the session ends Idle after the end of the last one.
//  3. It ends at its expiry in any case.
type use struct {
	idle    time.Duration // 0: it does not end by that
	expires time.Time

	mu       sync.Mutex
	users    int
	lastUsed time.Time // the end of the last use
	gone     *runner.GoneError
	timer    *time.Timer
	over     context.Context // ends with the session, its cause is gone
	finish   context.CancelCauseFunc
}

func newUse(expires time.Time, idle time.Duration) *use {
	u := &use{idle: idle, expires: expires, lastUsed: time.Now()}
	u.over, u.finish = context.WithCancelCause(context.Background())
	return u
}

// watch calls expired when the session's time is over; unused is as for stop. If
// that reports false, the session was used just then, and goes on.
func (u *use) watch(expired func(reason runner.GoneReason, unused time.Time) bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.gone == nil {
		u.timer = time.AfterFunc(time.Until(u.expiryLocked()), func() {
			if reason, unused := u.due(); reason == "" || !expired(reason, unused) {
				u.watch(expired)
			}
		})
	}
}

// due says why a session is to end now, or "".
func (u *use) due() (reason runner.GoneReason, unused time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	now := time.Now()
	switch {
	case !now.Before(u.expires):
		return runner.GoneExpired, time.Time{}
	case u.users == 0 && u.idle > 0 && !now.Before(u.lastUsed.Add(u.idle)):
		return runner.GoneIdle, u.lastUsed
	}
	return "", time.Time{}
}

// expiry is when the session ends if nobody uses it from now on.
func (u *use) expiry() time.Time {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.expiryLocked()
}

func (u *use) expiryLocked() time.Time {
	if u.idle <= 0 {
		return u.expires
	}
	if idle := u.usedLocked().Add(u.idle); idle.Before(u.expires) {
		return idle
	}
	return u.expires
}

// begin marks the session as used until leave is called. More calls of leave do nothing.
func (u *use) begin() (leave func(), err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.gone != nil {
		return nil, u.gone
	}
	u.users++
	return sync.OnceFunc(func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		u.users--
		u.lastUsed = time.Now()
	}), nil
}

// idleSince returns since when nobody uses the session; ok is false if somebody does,
// or it is over.
func (u *use) idleSince() (since time.Time, ok bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.lastUsed, u.users == 0 && u.gone == nil
}

// used returns the end of the last use: now if one goes on.
func (u *use) used() time.Time {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.usedLocked()
}

func (u *use) usedLocked() time.Time {
	if u.users > 0 {
		return time.Now()
	}
	return u.lastUsed
}

// stop marks the session as over, and reports whether it was open. If unused is not zero, a
// session that was used since then stays open.
func (u *use) stop(end *runner.GoneError, unused time.Time) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.gone != nil || !unused.IsZero() && (u.users > 0 || !u.lastUsed.Equal(unused)) {
		return false
	}
	u.gone = end
	if u.timer != nil {
		u.timer.Stop()
	}
	u.finish(end)
	return true
}

// end returns how the session came to its end; nil if it is open.
func (u *use) end() *runner.GoneError {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.gone
}
