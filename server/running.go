package server

import (
	"context"
	"net/http"
	"sync"
	"time"
)

// maxDetached bounds the executions that go on without a client, from their
// acceptance until their result is stored. The runner admits far fewer; this is for
// a store that hangs, while replies wait for it in memory.
const maxDetached = 1000

// running are the executions of this process, from before anybody can know of them
// until nothing of them is left.
type running struct {
	mu       sync.Mutex
	byID     map[string]*execution
	detached int
	share    func() bool    // there are several owners: none takes all places
	byOwner  map[string]int // detached ones; an owner without any is not in it
}

func (r *running) add(e *execution) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e.detached {
		if r.detached == maxDetached {
			return &problem{status: http.StatusServiceUnavailable, text: "too many runs go on without a client", retryAfter: 10 * time.Second}
		}
		if r.share() && r.byOwner[e.owner] >= maxDetached-r.detached {
			return &problem{status: http.StatusTooManyRequests, text: "too many runs of this caller go on without a client: the rest of the places is for others", retryAfter: 10 * time.Second}
		}
		r.detached++
		r.byOwner[e.owner]++
	}
	r.byID[e.id] = e
	return nil
}

func (r *running) remove(e *execution) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byID[e.id] == nil {
		return
	}
	if e.detached {
		r.detached--
		if r.byOwner[e.owner]--; r.byOwner[e.owner] == 0 {
			delete(r.byOwner, e.owner)
		}
	}
	delete(r.byID, e.id)
}

// find returns an owner's execution that has not ended, or nil.
func (r *running) find(owner, id string) *execution {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e := r.byID[id]; e != nil && e.owner == owner && !e.over() {
		return e
	}
	return nil
}

// wait returns when there is none left, or with ctx's error.
func (r *running) wait(ctx context.Context) error {
	for {
		e := r.any()
		if e == nil {
			return nil
		}
		select {
		case <-e.gone:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (r *running) any() *execution {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.byID {
		return e
	}
	return nil
}
