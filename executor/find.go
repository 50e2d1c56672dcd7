package executor

import (
	"context"
	"regexp"
	"time"

	"notebox/executor/ledger"
	"notebox/executor/problem"
)

// settleTime is how long an asynchronous request waits for its run to be refused:
// if there is no place for it, the runner says so at once, and the client learns
// it from its request and not by asking later.
const settleTime = 50 * time.Millisecond

// runIDs are what NewID makes; another text is no part of a record's key.
var runIDs = regexp.MustCompile(`^run_[0-9A-HJKMNP-TV-Z]{26}$`)

// IsRunID reports whether a text can be the id of a run.
func IsRunID(text string) bool { return runIDs.MatchString(text) }

// Here reports whether this process runs an owner's execution.
func (x *Executor) Here(owner, id string) bool { return x.running.find(owner, id) != nil }

// Find tells how an owner's execution stands, whichever service runs it, and returns the
// reply of one that has Ended. The error is a *problem.Error where it ended with one.
func (x *Executor) Find(ctx context.Context, owner, id string) (ledger.State, *Reply, error) {
	if x.Here(owner, id) {
		return ledger.Running, nil, nil
	}
	stands, failure, err := x.book.Look(ctx, owner, id)
	switch {
	case err != nil:
		return ledger.Unknown, nil, err
	case failure != nil:
		return ledger.Unknown, nil, final(failure)
	case stands == ledger.Ended:
		return ledger.Ended, &Reply{&ending{key: ledger.ReplyKey(owner, id)}, x.book}, nil
	}
	return stands, nil, nil
}

// Cancel cancels an owner's execution: one of this process at once, that of another service
// by a mark, which that one sees within a second. gently interrupts it first, and gives its code a
// second. It returns how the execution stood.
func (x *Executor) Cancel(ctx context.Context, owner, id string, gently bool) (ledger.State, error) {
	if e := x.running.find(owner, id); e != nil {
		e.cancel(cancelled(gently))
		return ledger.Running, nil
	}
	stands, _, err := x.book.Look(ctx, owner, id)
	if err == nil && stands == ledger.Running {
		err = x.book.Mark(ctx, owner, id, gently)
	}
	return stands, err
}

// settle returns when e was accepted and was not refused at once. The error is why
// it was not, or ctx's.
func (e *execution) settle(ctx context.Context) error {
	select {
	case <-e.accepted:
	case <-e.known:
	case <-ctx.Done():
		return ctx.Err()
	}
	timer := time.NewTimer(settleTime)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return ctx.Err()
	case <-e.known:
	}
	e.settling.Lock()
	defer e.settling.Unlock()
	if e.refusal != nil {
		return e.refusal
	}
	e.answered = true
	return nil
}

// final is a problem of a run as the answer to a later request. "Come back later" was
// said of the run: clients and proxies that ask again for it would never learn
// that this is the end.
func final(p *problem.Error) *problem.Error {
	told := *p
	if told.Status == problem.StatusUnavailable || told.Status == problem.StatusTooMany {
		told.Status, told.RetryAfter = problem.StatusFailed, 0
	}
	return &told
}
