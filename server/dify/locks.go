package dify

import (
	"context"
	"sync"
)

// locks are locks by name, which last as long as somebody wants them.
type locks struct {
	mu   sync.Mutex
	held map[string]*lock
}

type lock struct {
	place chan struct{} // holds an element while somebody has the lock
	users int           // who has it or waits for it
}

// take returns when the caller has the lock, or ctx's cause.
func (l *locks) take(ctx context.Context, name string) (release func(), err error) {
	l.mu.Lock()
	if l.held == nil {
		l.held = map[string]*lock{}
	}
	own := l.held[name]
	if own == nil {
		own = &lock{place: make(chan struct{}, 1)}
		l.held[name] = own
	}
	own.users++
	l.mu.Unlock()
	leave := func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if own.users--; own.users == 0 {
			delete(l.held, name)
		}
	}
	select {
	case own.place <- struct{}{}:
		return func() { <-own.place; leave() }, nil
	case <-ctx.Done():
		leave()
		return nil, context.Cause(ctx)
	}
}
