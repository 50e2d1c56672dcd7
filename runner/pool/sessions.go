package pool

import (
	"context"
	"errors"
	"time"

	"notebox/runner"
	"notebox/runner/internal/conversation"
)

// Keeper is the pool's engine if its sandboxes can outlive this process; else nil.
func (p *Pool) Keeper() runner.Keeper {
	k, _ := p.engine.(runner.Keeper)
	return k
}

// MaxSandboxes is Options.MaxSandboxes.
func (p *Pool) MaxSandboxes() int { return p.options.MaxSandboxes }

// StartTimeout is Options.StartTimeout.
func (p *Pool) StartTimeout() time.Duration { return p.options.StartTimeout }

// TakeSession is take of a sandbox that is a session's from then on.
func (p *Pool) TakeSession(ctx context.Context, owner string, env runner.Environment, l runner.Limits, until time.Time) (*conversation.Conversation, error) {
	c, err := p.take(ctx, owner, env, l, until)
	if errors.Is(err, runner.ErrWithOthers) { // while it started: the next one is not among those
		c, err = p.take(ctx, owner, env, l, until)
	}
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running--
	p.kept[c] = true
	return c, nil
}

// Adopt counts a sandbox that an earlier process of this service has started for a
// session, whatever room there is: it exists. The caller gives it to Done.
func (p *Pool) Adopt(s runner.Sandbox) *conversation.Conversation {
	c := conversation.New(s, p.log)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.existing++
	p.kept[c] = true
	return c
}

// Release gives up a session's sandbox without its end: a later process adopts it.
func (p *Pool) Release(c *conversation.Conversation) {
	c.Close(errRetired)
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.kept, c)
	p.leave()
}
