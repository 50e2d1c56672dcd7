package pool

import (
	"context"
	"slices"
	"time"

	"notebox/runner"
)

// shortTick is how often a pool whose room is short asks for more of it: a session
// becomes idle for long enough at any time.
const shortTick = time.Second

// OnShort sets the function that the pool calls if a run or a session waits for room, and
// there is no warm sandbox to end for it. yield may begin to end a session of the pool's, so
// that one more sandbox of the owner's fits in.
func (p *Pool) OnShort(yield func(owner string)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.short = yield
}

// awaitRoom takes room for one more sandbox. If there is none, it ends the oldest warm
// sandbox of another stock, or calls yield (see OnShort).
func (p *Pool) awaitRoom(ctx context.Context, owner string, until time.Time) error {
	p.mu.Lock()
	if p.enter() {
		p.mu.Unlock()
		return nil
	}
	short := len(p.room) >= p.removing && !p.evict() // else there will be room in a moment
	yield, mine := p.short, make(chan struct{})
	p.room = append(p.room, mine)
	p.mu.Unlock()
	if !until.IsZero() {
		bounded, cancel := context.WithDeadline(ctx, until)
		defer cancel()
		ctx = bounded
	}
	again := time.NewTicker(shortTick)
	defer again.Stop()
	for {
		if short {
			yield(owner)
		}
		select {
		case <-mine:
			return nil
		case <-ctx.Done():
			p.mu.Lock()
			defer p.mu.Unlock()
			if i := slices.Index(p.room, mine); i >= 0 {
				p.room = slices.Delete(p.room, i, i+1)
			} else {
				p.leave() // it had just been given
			}
			return &runner.Error{Code: runner.CodeFull, Message: "no room for another sandbox", RetryAfter: poolTick, Err: ctx.Err()}
		case <-again.C:
		}
		p.mu.Lock()
		short = len(p.room) > p.removing && p.room[0] == mine // one at a time
		p.mu.Unlock()
	}
}

// enter takes room if there is some. The lock is held.
func (p *Pool) enter() bool {
	if max := p.options.MaxSandboxes; max > 0 && p.existing >= max {
		return false
	}
	p.existing++
	return true
}

// leave gives room back, to whoever waits for it longest. The lock is held.
func (p *Pool) leave() {
	if len(p.room) > 0 {
		close(p.room[0])
		p.room = p.room[1:]
		return
	}
	p.existing--
}

// evict makes room: it ends the oldest warm sandbox of the largest stock, and reports
// whether there was one. The stock of the run that needs room is empty, so it is another's.
// The lock is held.
func (p *Pool) evict() bool {
	var largest *stock
	for _, s := range p.stocks {
		if largest == nil || len(s.warm) > len(largest.warm) {
			largest = s
		}
	}
	if largest == nil || len(largest.warm) == 0 {
		return false
	}
	p.retireOldest(largest)
	return true
}
