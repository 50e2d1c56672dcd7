package pool

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"notebox/runner"
	"notebox/runner/internal/conversation"
)

// take returns a sandbox that is ready and that nobody else has had, for a run of the
// owner. until bounds the wait for room, unless it is zero. The caller gives the sandbox to
// Done.
func (p *Pool) take(ctx context.Context, owner string, env runner.Environment, l runner.Limits, until time.Time) (*conversation.Conversation, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if p.options.PerOwner {
		env.Owner = owner
	}
	p.mu.Lock()
	s := p.stockFor(env, l)
	c := s.take()
	if c != nil {
		p.running++
		p.fillAfter(fillDelay)
		p.mu.Unlock()
		return c, nil
	}
	s.missed = true
	if s.proven || !s.byUse {
		p.grow(s)
	}
	claim := s.claim()
	if claim == nil {
		p.demand++
	}
	p.mu.Unlock()
	if claim != nil {
		select {
		case got := <-claim:
			if got.err == nil {
				return got.c, nil
			}
		case <-ctx.Done():
			p.offer(s, claim)
			return nil, ctx.Err()
		}
		p.mu.Lock()
		p.demand++
		p.mu.Unlock()
	}
	return p.startFor(ctx, s, owner, env, l, until)
}

// offer gives a sandbox that is being started to the next run that finds none warm, as the
// run that wanted it has gone. Otherwise callers who come and leave would each have one
// started, far more than may run at one time. If no run wants the sandbox, offer ends it.
func (p *Pool) offer(s *stock, coming <-chan claimed) {
	f := &filling{hurry: make(chan struct{})}
	p.mu.Lock()
	s.filling = append(s.filling, f)
	p.mu.Unlock()
	p.work.Go(func() {
		got := <-coming
		p.mu.Lock()
		s.filling = slices.DeleteFunc(s.filling, func(o *filling) bool { return o == f })
		claim := f.claim
		p.mu.Unlock()
		if claim != nil {
			claim <- got
			return
		}
		if got.err == nil {
			p.Done(got.c, false)
		}
	})
}

// startFor starts a sandbox for a run that waits, which is counted as demand,
// without anything done ahead: what the run needs, it imports.
//
// If the run leaves, the start goes on to its end, for the next run (see offer): so what
// exists is counted at all times.
func (p *Pool) startFor(ctx context.Context, s *stock, owner string, env runner.Environment, l runner.Limits, until time.Time) (*conversation.Conversation, error) {
	defer func() {
		p.mu.Lock()
		p.demand--
		p.fillAfter(fillDelay)
		p.mu.Unlock()
	}()
	if err := p.awaitRoom(ctx, owner, until); err != nil {
		return nil, err
	}
	env.Kernel.WarmUp = nil
	started := make(chan claimed, 1)
	p.work.Go(func() {
		c, err := p.start(p.closing, env, l, nil)
		if err == nil {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.running++
			p.recovered()
			if s.byUse && !s.proven {
				s.proven = true
				p.grow(s)
			}
		}
		started <- claimed{c, err}
	})
	select {
	case got := <-started:
		return got.c, got.err
	case <-ctx.Done():
		p.offer(s, started)
		return nil, ctx.Err()
	}
}

// start returns a sandbox that is ready, in the room that the caller has taken. It
// gives the room back if it fails, and waits for no removal.
func (p *Pool) start(ctx context.Context, env runner.Environment, l runner.Limits, hurry <-chan struct{}) (*conversation.Conversation, error) {
	ctx, cancel := context.WithTimeout(ctx, p.options.StartTimeout)
	defer cancel()
	sandbox, err := p.engine.Start(ctx, env, l)
	if err != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.leave()
		return nil, p.note(env, fmt.Errorf("start a sandbox: %w", err))
	}
	c := conversation.New(sandbox, p.log)
	err = c.AwaitReady(ctx, env.Kernel, hurry)
	if err != nil {
		err = fmt.Errorf("sandbox %s did not get ready: %w", sandbox.ID(), conversation.ExplainExit(err, p.log))
		if env.Kernel.Packages && errors.Is(ctx.Err(), context.DeadlineExceeded) { // which their caller pays for
			err = &runner.Error{Code: runner.CodePackages, Message: "a run does not start with these packages in time", Err: err}
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err = p.note(env, err); err != nil {
		p.retire(c)
		return nil, err
	}
	return c, nil
}
