package admission

import (
	"context"
	"errors"
	"fmt"
	"time"

	"notebox/runner"
)

// Limits bound what goes on at one time.
type Limits struct {
	MaxRunning int           // runs that have a sandbox, from its start to its end; at least 1
	MaxWaiting int           // runs that wait for that; 0: nobody waits
	MaxWait    time.Duration // how long one waits before it is turned away
	// ShareWaiting lets an owner wait in no more places than are left free for
	// others: in half of MaxWaiting if one owner crowds in, a third each if
	// two do, and so on. It is for a service with several owners.
	ShareWaiting bool
}

// Admission is a Runner that bounds how many runs another has at one time. Those who wait
// are served in fair turns between the owners, see fairQueue.
type Admission struct {
	next   runner.Runner
	limits Limits
	queue  *fairQueue
	held   *holdTime
}

// New returns a Runner in front of next.
func New(next runner.Runner, l Limits) *Admission {
	return &Admission{next: next, limits: l, queue: newFairQueue(l), held: &holdTime{}}
}

// With returns a Runner in front of another, which shares all places with a.
func (a *Admission) With(next runner.Runner) *Admission {
	return &Admission{next: next, limits: a.limits, queue: a.queue, held: a.held}
}

// Run implements Runner. It returns an *Error of CodeFull if there is no
// place to run or to wait, and of CodeShare if only the owner has none left;
// both say when to come back. The end of ctx frees the place at once.
func (a *Admission) Run(ctx context.Context, spec runner.Spec, events runner.Sink) (*runner.Outcome, error) {
	asked := time.Now()
	leave, err := a.Enter(ctx, spec.Owner)
	spec.Observe.Tell(runner.PhaseQueue, asked)
	if err != nil {
		if ctx.Err() != nil {
			return &runner.Outcome{Status: runner.StatusCancelled, Usage: runner.Usage{Queue: time.Since(asked)}}, nil
		}
		return nil, err
	}
	spec.WaitUntil = asked.Add(a.limits.MaxWait) // for a sandbox, too
	entered := time.Now()
	defer leave()
	out, err := a.next.Run(ctx, spec, events)
	if out != nil {
		out.Usage.Queue += entered.Sub(asked)
	}
	return out, err
}

// Enter takes a place for something else than a run, in the same turns, and fails as Run
// does, or with ctx's error. leave gives the place back, and must be called.
func (a *Admission) Enter(ctx context.Context, owner string) (leave func(), err error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	w, err := a.queue.join(owner)
	switch {
	case errors.Is(err, errShareTaken):
		return nil, a.turnAway(runner.CodeShare, "too many runs of this caller are waiting: the rest of the queue is for others")
	case err != nil:
		return nil, a.turnAway(runner.CodeFull, "too many runs are waiting")
	}
	patience := time.NewTimer(a.limits.MaxWait)
	defer patience.Stop()
	select {
	case <-w.handed:
	case <-ctx.Done():
	case <-patience.C:
	}
	// The place may have come at the same moment: what counts is the line.
	switch waited := a.queue.leave(w); {
	case waited && ctx.Err() != nil:
		return nil, ctx.Err()
	case waited:
		return nil, a.turnAway(runner.CodeFull, fmt.Sprintf("no place to run within %s", a.limits.MaxWait))
	case ctx.Err() != nil:
		a.queue.release(w)
		return nil, ctx.Err()
	}
	entered := time.Now()
	return func() {
		a.held.add(time.Since(entered))
		a.queue.release(w)
	}, nil
}

// ShareWaiting changes Limits.ShareWaiting, for those that come from then on.
func (a *Admission) ShareWaiting(on bool) { a.queue.share(on) }

// Running is how many runs have a place.
func (a *Admission) Running() int {
	running, _ := a.queue.numbers()
	return running
}

// Waiting is how many runs wait for one.
func (a *Admission) Waiting() int {
	_, waiting := a.queue.numbers()
	return waiting
}

func (a *Admission) turnAway(code runner.Code, message string) *runner.Error {
	return &runner.Error{Code: code, Message: message, RetryAfter: a.held.retryAfter(a.Waiting(), a.limits.MaxRunning)}
}
