package server

import (
	"fmt"
	"sync"
	"time"

	"notebox/executor/problem"
)

// places bound one kind of work. With several owners, one takes at most as many places as
// it leaves free: half of them if one owner crowds in, a third each if two do, and so on.
// Without keys all callers are one owner.
type places struct {
	most       int
	share      func() bool   // there are several owners
	what, are  string        // "questions", "are being answered": for who is refused
	retryAfter time.Duration // when to come back

	mu      sync.Mutex
	all     int
	byOwner map[string]int // an owner without any is not in it
}

// enter takes a place. leave gives it back, and may be called again.
func (p *places) enter(owner string) (leave func(), err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.all >= p.most:
		return nil, &problem.Error{Status: problem.StatusUnavailable, RetryAfter: p.retryAfter, Text: fmt.Sprintf("too many %s %s at this time", p.what, p.are)}
	case p.share() && p.byOwner[owner] >= p.most-p.all:
		return nil, &problem.Error{Status: problem.StatusTooMany, RetryAfter: p.retryAfter,
			Text: fmt.Sprintf("too many %s of this caller %s: the rest of the places is for others", p.what, p.are)}
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

// taken is how many places are taken.
func (p *places) taken() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.all
}
