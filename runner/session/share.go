package session

import (
	"fmt"
	"maps"
	"time"

	"notebox/runner"
)

// share is who has how many sessions. With several owners:
//
//  1. An owner has at most as many sessions as it leaves room for: half of all if one owner
//     crowds in, a third each if two do, and so on. The first one is always allowed.
//  2. An owner that is refused by that, and has less than its equal part, gets the room of
//     an owner that has more than its equal part. So sessions from a time when there was
//     one owner, or when the limit was higher, keep nobody out.
//  3. If room for a sandbox is short, a session ends that has been idle for evictAfter: of
//     an owner that has at least as many as the one that needs room.
//
// The session that ends is of the owner that has most, and of these the one that is idle for
// longest. One that is in use never ends.
type share struct {
	owned map[string]int // sessions that are open, or are being opened, by owner
	all   int            // of owned
	most  int            // that there is room for
}

// share counts. The lock is held.
func (l *Sessions) share() share {
	s := share{owned: maps.Clone(l.opening), most: l.options.MaxSessions}
	if sandboxes := l.pool.MaxSandboxes(); sandboxes > 0 {
		s.most = min(s.most, sandboxes)
	}
	for key, session := range l.open {
		if session.use.end() == nil {
			s.owned[key.owner]++
		}
	}
	for _, n := range s.owned {
		s.all += n
	}
	return s
}

// makeRoom refuses an owner one more session, or makes room for it if need be. The lock is
// held.
func (l *Sessions) makeRoom(owner string, s share) error {
	owned, owners, room := s.owned[owner], len(s.owned), s.most-s.all
	if owned == 0 {
		owners++
	}
	part := max(1, s.most/owners)
	crowds := l.options.Shared() && owned >= room && (owned > 0 || room <= 0)
	switch {
	case crowds && owned < part && l.evict(s, part+1, 0):
		return nil
	case s.all >= l.options.MaxSessions:
		return &runner.Error{
			Code:       runner.CodeFull,
			Message:    fmt.Sprintf("as many sessions are open as this service has room for, which is %d", l.options.MaxSessions),
			RetryAfter: l.nextExpiry(""),
		}
	case crowds && owned > 0:
		return &runner.Error{
			Code:       runner.CodeShare,
			Message:    fmt.Sprintf("this caller has %d sessions open, and the rest of the room is for others: close one", owned),
			RetryAfter: l.nextExpiry(owner),
		}
	}
	return nil
}

// evictFor ends a session, if there is one to spare, so that an owner gets room for a sandbox.
func (l *Sessions) evictFor(owner string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.share()
	l.evict(s, s.owned[owner], evictAfter)
}

// evict ends a session, idle for so long, of an owner that has so many at least. The lock is
// held.
func (l *Sessions) evict(s share, least int, idle time.Duration) bool {
	var chosen *Session
	var since time.Time
	most := 0
	for key, session := range l.open {
		unused, ok := session.use.idleSince()
		n := s.owned[key.owner]
		if !ok || n < least || time.Since(unused) < idle {
			continue
		}
		if n > most || n == most && unused.Before(since) {
			chosen, since, most = session, unused, n
		}
	}
	return chosen != nil && chosen.endIdleLocked(since, &runner.GoneError{Reason: runner.GoneEvicted, At: time.Now()})
}
