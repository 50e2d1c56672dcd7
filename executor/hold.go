package executor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"notebox/executor/ledger"
	"notebox/executor/problem"
	"notebox/runner"
)

const (
	// markEvery is how soon an owner sees that another service was told to cancel: a
	// second is promised, half of it is for the store.
	markEvery = 500 * time.Millisecond
	// beatTime bounds one call of the store in between: a renewal must not wait
	// for a look at a mark until the lease is over.
	beatTime = 2 * time.Second
)

// The causes for which an execution's context ends, beside that of the service.
var (
	ErrClientGone  = errors.New("the client is gone")
	errCancelled   = errors.New("cancelled by its caller")
	errInterrupted = fmt.Errorf("%w: %w", errCancelled, runner.ErrInterrupted)
	errNotBegun    = errors.New("the service ended before the run began")
	errOvertaken   = errors.New("another service has taken the run over")
)

// cancelled is the cause of a cancelled execution.
func cancelled(gently bool) error {
	if gently {
		return errInterrupted
	}
	return errCancelled
}

// overtaken is what the client of an execution is told that was thought dead.
func overtaken() *problem.Error {
	return &problem.Error{
		Status: problem.StatusUnavailable, RetryAfter: time.Second,
		Text: "this service stood still for too long, and another one runs the request with this Idempotency-Key; send it again to get its reply",
	}
}

// hold renews an execution's lease and watches for what others say of it, until
// stop is closed.
func (x *Executor) hold(e *execution, stop <-chan struct{}) {
	tick := time.NewTicker(markEvery)
	defer tick.Stop()
	for next := time.Now().Add(ledger.RenewEvery); ; {
		if !e.leased {
			err := x.book.Begin(context.Background(), e.owner, e.id, !e.detached)
			e.leased = err == nil
		}
		select {
		case <-stop:
			return
		case <-tick.C:
		}
		timed, cancel := context.WithTimeout(context.Background(), beatTime)
		if marked, gently := x.book.Marked(timed, e.owner, e.id); marked { // another service was told to cancel
			e.cancel(cancelled(gently))
		}
		cancel()
		if e.leased && time.Now().After(next) {
			next = time.Now().Add(ledger.RenewEvery)
			x.renew(e)
		}
	}
}

func (x *Executor) renew(e *execution) {
	ctx, cancel := context.WithTimeout(context.Background(), beatTime)
	defer cancel()
	if x.book.Superseded(ctx, e.position) {
		e.cancel(errOvertaken)
		return
	}
	if err := x.book.Renew(ctx, e.owner, e.id, !e.detached); err != nil {
		x.log.WarnContext(e.ctx, "the lease of a run is not renewed", "run", e.id, "error", err)
	}
}
