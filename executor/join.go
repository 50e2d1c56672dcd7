package executor

import (
	"context"
	"fmt"
	"time"

	"notebox/executor/ledger"
	"notebox/executor/problem"
)

const (
	// maxClaims bounds how often one key is tried within a result's life: a client
	// that failed so often should think of something else. Each try reads all before it.
	maxClaims = 100
	// claimTries bounds the rounds in which others were faster.
	claimTries = 10
	// joinEvery is how often the records of another service's execution are looked at.
	joinEvery = 250 * time.Millisecond
)

// claimOrJoin returns the id of the execution that a key stands for: e's, if it is
// the first, else that of the one to join.
func (x *Executor) claimOrJoin(ctx context.Context, e *execution, o *Order) (id string, err error) {
	err = x.intake.InTurn(ctx, e.owner, o.size(), func() error {
		e.fingerprint, err = fingerprint(o, e.plan)
		return err
	})
	if err != nil {
		return "", err
	}
	// A claim that the client's leaving cut off would be nobody's.
	ctx = context.WithoutCancel(ctx)
	chain := ledger.ChainOf(e.owner, o.Key)
	for range claimTries {
		newest, n, err := x.book.Last(ctx, chain)
		if err != nil {
			return "", err
		}
		if n >= 0 && newest.Execution == e.id {
			// The store did what it called a failure: its client tried it twice.
			e.position = &ledger.Position{Chain: chain, Claim: n, Made: newest.Made}
			return e.id, nil
		}
		if newest.Closed {
			if err := x.book.SweepChain(ctx, chain); err != nil {
				return "", err
			}
			continue
		}
		if n >= 0 {
			join, err := x.joinable(ctx, e, newest)
			if err != nil || join {
				return newest.Execution, err
			}
		}
		if n+1 >= maxClaims {
			return "", busyKey("was tried %d times without success", maxClaims)
		}
		first, err := x.claim(ctx, e, ledger.Position{Chain: chain, Claim: n + 1, Made: x.now().UTC()})
		if err != nil || first {
			return e.id, err
		}
	}
	return "", busyKey("is claimed by too many requests at this time")
}

// joinable reports whether the execution of the newest claim is one to join, or
// free to be run (again).
func (x *Executor) joinable(ctx context.Context, e *execution, newest ledger.Claim) (bool, error) {
	stands, failure := ledger.Running, (*problem.Error)(nil)
	if here := x.running.find(e.owner, newest.Execution); here == nil {
		var err error
		if stands, failure, err = x.book.Look(ctx, e.owner, newest.Execution); err != nil {
			return false, err
		}
	} else if here.failed() {
		return false, nil
	}
	if stands == ledger.Unknown || failure != nil {
		return false, nil
	}
	if newest.Fingerprint != e.fingerprint {
		return false, &problem.Error{Status: problem.StatusConflict, Field: "Idempotency-Key", Text: "was used for another request"}
	}
	return stands != ledger.BrokenOff, nil
}

// claim tries to make e's claim at a place; false says that another request did.
func (x *Executor) claim(ctx context.Context, e *execution, at ledger.Position) (bool, error) {
	if err := x.register(ctx, e); err != nil {
		return false, err
	}
	first, err := x.book.Claim(ctx, at, e.id, e.fingerprint)
	if err != nil || !first {
		return false, err
	}
	e.position = &at
	return true, nil
}

func busyKey(format string, args ...any) *problem.Error {
	return &problem.Error{
		Status: problem.StatusUnavailable, Field: "Idempotency-Key", Text: fmt.Sprintf(format, args...),
		RetryAfter: time.Second,
	}
}
