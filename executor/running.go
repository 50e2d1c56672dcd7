package executor

import (
	"context"
	"sync"

	"notebox/executor/intake"
)

// running are the executions of this process, from before anybody can know of them
// until nothing of them is left.
type running struct {
	detached *intake.Places

	mu   sync.Mutex
	byID map[string]*execution
}

func (r *running) add(e *execution) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e.detached {
		leave, err := r.detached.Enter(e.owner)
		if err != nil {
			return err
		}
		e.leave = leave
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
	if e.leave != nil {
		e.leave()
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

// gone is closed when nothing of an owner's execution is left; nil if it is not known here.
func (r *running) gone(owner, id string) <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e := r.byID[id]; e != nil && e.owner == owner {
		return e.gone
	}
	return nil
}
