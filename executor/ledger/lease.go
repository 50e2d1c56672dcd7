package ledger

import (
	"time"
)

// How a service shows that it still runs an execution.
//
// The lease is a record with an expiry that its owner moves on. Whoever finds it
// expired may take the execution's idempotency key over (claims.go), so what
// matters is that an owner that lives is never thought dead: it has four tries to
// renew before the lease ends, and clocks may differ by ClockSkew on top. One that
// stood still for longer (a paused machine) is thought dead, and finds out with its
// next renewal.
const (
	// LeaseTime is how long the key of a run whose service died waits for another
	// service, plus ClockSkew. A service that starts again needs no wait.
	LeaseTime  = 15 * time.Second
	RenewEvery = 3 * time.Second
	ClockSkew  = 5 * time.Second
)

// alive reports whether the owner of a lease may still run its execution, which this
// process does not. A service's id is held by one process at a time (the lock of its
// state folder), so a lease of this service's own id is one of an earlier start, or
// of an execution whose end could not be stored. One that ends later than any that is
// written now was written before the clock was set back: its owner, if it lives, writes
// it anew within moments, and if not, nobody waits until the clock is there again.
func (b *Book) alive(l lease) bool {
	left := l.Expires.Sub(b.now())
	return l.Service != b.service && -ClockSkew < left && left <= LeaseTime+ClockSkew
}

// lease is one that is written now, of an execution whose end is kept or not.
func (b *Book) lease(passing bool) lease {
	return lease{Service: b.service, Instance: b.instance, Expires: b.now().Add(LeaseTime).UTC(), Passing: passing}
}
