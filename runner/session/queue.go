package session

import (
	"context"
	"sync"
	"time"

	"notebox/runner"
)

// queue hands one turn from run to run, in the order in which they came.
type queue struct {
	mu      sync.Mutex
	running bool
	waiting []chan struct{} // closed when it has its turn
	idle    chan struct{}   // closed when nothing runs; nil where nobody asked
}

func newQueue() *queue { return &queue{} }

// join returns when it is the caller's turn, who has to give that back; else it is
// an *Error of CodeFull, or how ctx ended.
func (q *queue) join(ctx context.Context) error {
	q.mu.Lock()
	switch {
	case ctx.Err() != nil:
		q.mu.Unlock()
		return context.Cause(ctx)
	case !q.running:
		q.running = true
		q.mu.Unlock()
		return nil
	case len(q.waiting) >= runner.MaxSessionWaiting:
		q.mu.Unlock()
		return &runner.Error{Code: runner.CodeFull, Message: "too many runs are waiting in this session", RetryAfter: minSessionRetry}
	}
	mine := make(chan struct{})
	q.waiting = append(q.waiting, mine)
	q.mu.Unlock()
	select {
	case <-mine:
		return nil
	case <-ctx.Done():
	}
	q.mu.Lock()
	for i, w := range q.waiting {
		if w == mine {
			q.waiting = append(q.waiting[:i:i], q.waiting[i+1:]...)
			q.mu.Unlock()
			return context.Cause(ctx)
		}
	}
	q.mu.Unlock()
	q.leave() // it had just come
	return context.Cause(ctx)
}

// leave gives the turn to the next.
func (q *queue) leave() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) > 0 {
		close(q.waiting[0])
		q.waiting = q.waiting[1:]
		return
	}
	q.running = false
	if q.idle != nil {
		close(q.idle)
		q.idle = nil
	}
}

// drained waits until nobody has a turn, but not for longer than that.
func (q *queue) drained(atMost time.Duration) {
	q.mu.Lock()
	if !q.running {
		q.mu.Unlock()
		return
	}
	if q.idle == nil {
		q.idle = make(chan struct{})
	}
	idle := q.idle
	q.mu.Unlock()
	select {
	case <-idle:
	case <-time.After(atMost):
	}
}

// numbers returns whether somebody has a turn, and how many wait for it.
func (q *queue) numbers() (running bool, waiting int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.running, len(q.waiting)
}
