package runner

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
)

// AdmissionLimits bound what goes on at one time.
type AdmissionLimits struct {
	MaxRunning int           // runs that have a sandbox, from its start to its end
	MaxWaiting int           // runs that wait for that, first come first served
	MaxWait    time.Duration // how long one waits before it is turned away
}

// Admission is a Runner that passes no more to another than that can carry.
type Admission struct {
	next    Runner
	limits  AdmissionLimits
	running *semaphore.Weighted
	waiting atomic.Int64
}

// NewAdmission returns a Runner in front of next.
func NewAdmission(next Runner, l AdmissionLimits) *Admission {
	return &Admission{next: next, limits: l, running: semaphore.NewWeighted(int64(l.MaxRunning))}
}

// Run implements Runner. It returns an *Error of CodeFull where there is no
// place to run or to wait.
func (a *Admission) Run(ctx context.Context, spec Spec, events Sink) (*Outcome, error) {
	asked := time.Now()
	if err := a.enter(ctx); err != nil {
		if ctx.Err() != nil {
			return &Outcome{Status: StatusCancelled, Usage: Usage{Queue: time.Since(asked)}}, nil
		}
		return nil, err
	}
	defer a.running.Release(1)
	waited := time.Since(asked)
	out, err := a.next.Run(ctx, spec, events)
	if out != nil {
		out.Usage.Queue += waited
	}
	return out, err
}

func (a *Admission) enter(ctx context.Context) error {
	if a.running.TryAcquire(1) {
		return nil
	}
	defer a.waiting.Add(-1)
	if a.waiting.Add(1) > int64(a.limits.MaxWaiting) {
		return a.full("too many runs are waiting", nil)
	}
	ctx, cancel := context.WithTimeout(ctx, a.limits.MaxWait)
	defer cancel()
	if err := a.running.Acquire(ctx, 1); err != nil {
		return a.full(fmt.Sprintf("no place to run within %s", a.limits.MaxWait), err)
	}
	return nil
}

// full says to come back when about one of those that run must have ended.
func (a *Admission) full(message string, cause error) *Error {
	return &Error{Code: CodeFull, Message: message, RetryAfter: min(a.limits.MaxWait, 10*time.Second), Err: cause}
}
