package pool

import (
	"context"
	"time"

	"notebox/runner"
	"notebox/runner/internal/conversation"
)

// shortTick is how often a pool whose room is short asks for more of it: a session
// becomes idle for long enough at any time.
const shortTick = time.Second

// OnShort has the pool call yield where somebody waits for room and no warm sandbox is
// left to give it. yield makes room for one of an owner's, in its own time, by the end of a sandbox
// that the pool has as a session's, and reports whether it could. It is set
// before the pool is used.
func (p *Pool) OnShort(yield func(owner string) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.short = yield
}

// awaitTurn waits for mine to be closed, and reports whether that was before the end of
// ctx. short is that nothing has been done for room so far.
func (p *Pool) awaitTurn(ctx context.Context, owner string, mine chan struct{}, short bool) bool {
	p.mu.Lock()
	yield := p.short
	p.mu.Unlock()
	if yield == nil {
		yield = func(string) bool { return false }
	}
	if short {
		yield(owner)
	}
	again := time.NewTicker(shortTick)
	defer again.Stop()
	for {
		select {
		case <-mine:
			return true
		case <-ctx.Done():
			return false
		case <-again.C:
		}
		p.mu.Lock()
		short := len(p.room) > p.removing && p.room[0] == mine // one at a time
		p.mu.Unlock()
		if short {
			yield(owner)
		}
	}
}

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
