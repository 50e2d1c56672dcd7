package server

import (
	"context"
	"errors"
	"net/http"
	"time"
)

// How a service shows that it still runs an execution.
//
// The lease is a record with an expiry that its owner moves on. Whoever finds it
// expired may take the execution's idempotency key over (idempotency.go), so what
// matters is that an owner that lives is never thought dead: it has four tries to
// renew before the lease ends, and clocks may differ by clockSkew on top. One that
// stood still for longer (a paused machine) is thought dead, and finds out with its
// next renewal.
const (
	// leaseTime is how long the key of a run whose service died waits for another
	// service, plus clockSkew. A service that starts again needs no wait.
	leaseTime  = 15 * time.Second
	renewEvery = 3 * time.Second
	clockSkew  = 5 * time.Second
	// markEvery is how soon an owner sees a DELETE that another service got: a
	// second is promised, half of it is for the store.
	markEvery = 500 * time.Millisecond
	// beatTime bounds one call of the store in between: a renewal must not wait
	// for a look at a mark until the lease is over.
	beatTime = 2 * time.Second
)

// The causes for which an execution's context ends, beside that of the service.
var (
	errClientGone = errors.New("the client is gone")
	errCancelled  = errors.New("cancelled by DELETE")
	errNotBegun   = errors.New("the service ended before the run began")
	errOvertaken  = errors.New("another service has taken the run over")
)

// overtaken is what the client of an execution is told that was thought dead.
func overtaken() *problem {
	return &problem{
		status: http.StatusServiceUnavailable, retryAfter: time.Second,
		text: "this service stood still for too long, and another one runs the request with this Idempotency-Key; send it again to get its reply",
	}
}

// alive reports whether the owner of a lease may still run its execution, which this
// process does not. A service's id is held by one process at a time (the lock of its
// state folder), so a lease of this service's own id is one of an earlier start, or
// of an execution whose end could not be stored. One that ends later than any that is
// written now was written before the clock was set back: its owner, if it lives, writes
// it anew within moments, and if not, nobody waits until the clock is there again.
func (b *book) alive(l lease) bool {
	left := l.Expires.Sub(b.now())
	return l.Service != b.service && -clockSkew < left && left <= leaseTime+clockSkew
}

func (b *book) lease(e *execution) lease {
	return lease{Service: b.service, Instance: b.instance, Expires: b.now().Add(leaseTime).UTC(), Passing: !e.detached}
}

// hold renews an execution's lease and watches for what others say of it, until
// stop is closed.
func (x *Executor) hold(e *execution, stop <-chan struct{}) {
	tick := time.NewTicker(markEvery)
	defer tick.Stop()
	for next := time.Now().Add(renewEvery); ; {
		if !e.leased {
			_, err := x.book.put(context.Background(), executionKey(e.owner, e.id, recordLease), x.book.lease(e))
			e.leased = err == nil
		}
		select {
		case <-stop:
			return
		case <-tick.C:
		}
		if x.marked(e) {
			e.cancel(errCancelled)
		}
		if e.leased && time.Now().After(next) {
			next = time.Now().Add(renewEvery)
			x.renew(e)
		}
	}
}

// marked reports whether another service got a DELETE.
func (x *Executor) marked(e *execution) bool {
	ctx, cancel := context.WithTimeout(context.Background(), beatTime)
	defer cancel()
	var mark struct{}
	found, _ := x.book.read(ctx, executionKey(e.owner, e.id, recordCancel), &mark)
	return found
}

func (x *Executor) renew(e *execution) {
	ctx, cancel := context.WithTimeout(context.Background(), beatTime)
	defer cancel()
	if x.book.superseded(ctx, e) {
		e.cancel(errOvertaken)
		return
	}
	if !e.leased {
		return
	}
	if err := x.book.replace(ctx, executionKey(e.owner, e.id, recordLease), x.book.lease(e)); err != nil {
		x.log.WarnContext(e.ctx, "the lease of a run is not renewed", "run", e.id, "error", err)
	}
}
