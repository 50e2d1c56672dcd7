package intake

import (
	"fmt"
	"sync"
	"time"

	"notebox/executor/problem"
)

// Places bound one kind of work. With several owners, one takes at most as many places as
// it leaves free: half of them if one owner crowds in, a third each if two do, and so on.
// Without keys all callers are one owner.
type Places struct {
	Most       int
	Share      func() bool   // there are several owners
	What, Are  string        // "questions", "are being answered": for who is refused
	RetryAfter time.Duration // when to come back

	mu      sync.Mutex
	all     int
	byOwner map[string]int // an owner without any is not in it
}

// Enter takes a place. leave gives it back, and may be called again.
func (p *Places) Enter(owner string) (leave func(), err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.all >= p.Most:
		return nil, &problem.Error{Status: problem.StatusUnavailable, RetryAfter: p.RetryAfter, Text: fmt.Sprintf("too many %s %s at this time", p.What, p.Are)}
	case p.Share() && p.byOwner[owner] >= p.Most-p.all:
		return nil, &problem.Error{Status: problem.StatusTooMany, RetryAfter: p.RetryAfter,
			Text: fmt.Sprintf("too many %s of this caller %s: the rest of the places is for others", p.What, p.Are)}
	}
	p.all++
	if p.byOwner == nil {
		p.byOwner = map[string]int{}
	}
	p.byOwner[owner]++
	return sync.OnceFunc(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.all--
		if p.byOwner[owner]--; p.byOwner[owner] == 0 {
			delete(p.byOwner, owner)
		}
	}), nil
}

// Taken is how many places are taken.
func (p *Places) Taken() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.all
}
