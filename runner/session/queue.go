package session

import (
	"context"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"notebox/runner"
)

// queue hands one turn from run to run, in the order in which they came.
type queue struct {
	turn   *semaphore.Weighted // of one
	inside atomic.Int32        // runs that have the turn or wait for it
}

// join returns when it is the caller's turn, who has to give that back; else it is
// an *Error of CodeFull, or how ctx ended.
func (q *queue) join(ctx context.Context) error {
	for {
		inside := q.inside.Load()
		if inside > runner.MaxSessionWaiting {
			return &runner.Error{Code: runner.CodeFull, Message: "too many runs are waiting in this session", RetryAfter: minSessionRetry}
		}
		if q.inside.CompareAndSwap(inside, inside+1) {
			break
		}
	}
	if q.turn.Acquire(ctx, 1) != nil {
		q.inside.Add(-1)
		return context.Cause(ctx)
	}
	return nil
}

// leave gives the turn to the next.
func (q *queue) leave() {
	q.inside.Add(-1)
	q.turn.Release(1)
}

// drained waits until nobody has the turn, and no longer than atMost.
func (q *queue) drained(atMost time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), atMost)
	defer cancel()
	if q.turn.Acquire(ctx, 1) == nil {
		q.turn.Release(1)
	}
}

// numbers returns whether somebody has a turn, and how many wait for it.
func (q *queue) numbers() (running bool, waiting int) {
	inside := int(q.inside.Load())
	return inside > 0, max(0, inside-1)
}
