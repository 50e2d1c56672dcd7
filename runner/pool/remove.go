package pool

import (
	"context"
	"errors"
	"time"

	"github.com/cenkalti/backoff/v5"

	"notebox/runner"
	"notebox/runner/internal/conversation"
)

const (
	// killTimeout bounds the wait for a sandbox's end; what takes longer goes on
	// in the background.
	killTimeout = 15 * time.Second
	// removeDelay is how long a sandbox whose run is over is left alone, while the
	// run's reply is made and sent. Its processes are dead already.
	removeDelay = 30 * time.Millisecond
	// maxPause between tries of what failed, starts and removals; the first one is a second.
	maxPause = 30 * time.Second
)

// Done takes back a sandbox whose run or session is over, and waits until it is gone. It
// does not wait if finished says that no process of a user's is left in it.
func (p *Pool) Done(c *conversation.Conversation, finished bool) {
	p.mu.Lock()
	if p.kept[c] {
		delete(p.kept, c)
	} else {
		p.running--
	}
	delay := removeDelay
	if len(p.room) > 0 || !finished {
		delay = 0
	}
	removed := p.retireAfter(delay, c)
	p.mu.Unlock()
	if finished {
		return
	}
	select {
	case <-removed:
	case <-time.After(killTimeout):
	case <-p.closing.Done():
	}
}

// retire removes a sandbox in the background. The lock is held.
func (p *Pool) retire(c *conversation.Conversation) { p.retireAfter(0, c) }

func (p *Pool) retireAfter(d time.Duration, c *conversation.Conversation) (removed <-chan struct{}) {
	p.removing++
	gone := make(chan struct{})
	p.work.Go(func() {
		defer close(gone)
		p.pause(d)
		c.Close(errRetired)
		p.kill(c.Sandbox)
		p.mu.Lock()
		defer p.mu.Unlock()
		p.removing--
		p.leave()
		p.fill()
	})
	return gone
}

// retireOldest ends a stock's oldest warm sandbox. The lock is held.
func (p *Pool) retireOldest(s *stock) {
	p.retire(s.warm[0].Conversation)
	s.warm = s.warm[1:]
}

// trim ends what waits in a stock beyond so many. The lock is held.
func (p *Pool) trim(s *stock, most int) {
	for len(s.warm) > most {
		p.retireOldest(s)
	}
}

// pause waits for d, or until the pool is being closed.
func (p *Pool) pause(d time.Duration) {
	if d <= 0 {
		return
	}
	select {
	case <-time.After(d):
	case <-p.closing.Done():
	}
}

// errRetired is the cause if the pool has ended a sandbox.
var errRetired = errors.New("the sandbox is removed")

// newPauses are those between tries of what failed: starts and removals.
func newPauses() *backoff.ExponentialBackOff {
	return &backoff.ExponentialBackOff{InitialInterval: time.Second, Multiplier: 2, MaxInterval: maxPause}
}

// kill ends a sandbox. While the pool is open, it tries again after each failure.
func (p *Pool) kill(s runner.Sandbox) {
	for pauses := newPauses(); ; {
		ctx, cancel := context.WithTimeout(context.Background(), killTimeout)
		err := s.Kill(ctx)
		cancel()
		if err == nil {
			return
		}
		p.log.Error("a sandbox could not be ended", "sandbox", s.ID(), "error", err)
		if p.closing.Err() != nil {
			return
		}
		p.pause(pauses.NextBackOff())
	}
}
