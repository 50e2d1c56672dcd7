package pool

import (
	"slices"
	"time"

	"notebox/runner/internal/conversation"
)

// fill starts sandboxes for the stocks, as far as it is the time for that. The
// lock is held.
//
// Runs go first: while one waits for a start of its own, or others wait for
// room, nothing is started ahead; while some run, one at a time.
func (p *Pool) fill() {
	if p.closing.Err() != nil || p.demand > 0 || len(p.room) > 0 {
		return
	}
	for _, s := range p.stocks {
		for s.coming() < s.target && p.filling() < p.fillAtOnce() && !time.Now().Before(s.resume) && p.enter() {
			f := &filling{hurry: make(chan struct{})}
			s.filling = append(s.filling, f)
			p.work.Go(func() { p.fillOne(s, f) })
		}
	}
}

// fillAfter calls fill in a while. The lock is held.
func (p *Pool) fillAfter(d time.Duration) {
	p.work.Go(func() {
		p.pause(d)
		p.mu.Lock()
		defer p.mu.Unlock()
		p.fill()
	})
}

func (p *Pool) filling() (n int) {
	for _, s := range p.stocks {
		n += len(s.filling)
	}
	return n
}

func (p *Pool) fillAtOnce() int {
	if p.running > 0 {
		return 1
	}
	return max(1, p.options.FillAtOnce)
}

// fillOne starts one sandbox for the stock, or for the run that claims it.
func (p *Pool) fillOne(s *stock, f *filling) {
	c, err := p.start(p.closing, s.Environment, s.limits, f.hurry)
	p.mu.Lock()
	defer p.mu.Unlock()
	s.filling = slices.DeleteFunc(s.filling, func(o *filling) bool { return o == f })
	switch {
	case err != nil:
		p.failed(s, err)
		s.disappoint()
	case f.claim != nil:
		s.recovered()
		p.running++
	case p.closing.Err() != nil || len(p.room) > 0, // others wait for room
		s.byUse && len(s.warm) >= s.target: // it is not wanted any more
		p.retire(c)
	default:
		s.recovered()
		p.shelve(s, c)
	}
	if f.claim == nil {
		p.fill()
		return
	}
	f.claim <- claimed{c, err}
	p.fillAfter(fillDelay)
}

// failed delays the next start for the stock. The lock is held.
func (p *Pool) failed(s *stock, err error) {
	if p.closing.Err() != nil || time.Now().Before(s.resume) { // those started together fail as one
		return
	}
	pause := s.pauses.NextBackOff()
	s.resume = time.Now().Add(pause)
	p.log.Warn("a sandbox could not be started ahead", "environment", s.Environment.Name, "again_in", pause, "error", err)
	p.fillAfter(pause)
}

// recovered lets the stocks be filled at once, as a start has just succeeded. The lock is
// held.
func (p *Pool) recovered() {
	for _, s := range p.stocks {
		s.recovered()
	}
}

// shelve puts a sandbox that is ready into the stock, until it is taken or ends
// by itself. The lock is held.
func (p *Pool) shelve(s *stock, c *conversation.Conversation) {
	s.warm = append(s.warm, &warmSandbox{c, time.Now()})
	c.Shelved(func(why error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if i := slices.IndexFunc(s.warm, func(w *warmSandbox) bool { return w.Conversation == c }); i >= 0 {
			age := time.Since(s.warm[i].since)
			s.warm = slices.Delete(s.warm, i, i+1)
			p.log.Warn("a sandbox ended while it waited", "sandbox", c.Sandbox.ID(), "after", age, "error", why)
			p.retire(c)
			s.disappoint()
			if age < poolTick { // or this host would do nothing else
				s.resume = time.Now().Add(time.Second)
				p.fillAfter(time.Second)
			}
			p.fill()
		}
	})
}

// watch renews what has waited too long and forgets demand that is over.
func (p *Pool) watch() {
	tick := time.NewTicker(poolTick)
	defer tick.Stop()
	calm := map[*stock]time.Time{}
	for {
		select {
		case <-p.closing.Done():
			return
		case <-tick.C:
		}
		p.mu.Lock()
		for _, s := range p.stocks {
			if s.byUse {
				p.forget(s)
			} else if since, ok := calm[s]; s.missed || !ok {
				calm[s] = time.Now()
			} else if time.Since(since) >= shrinkAfter {
				s.target, calm[s] = max(s.Min, s.target-1), time.Now()
			}
			s.missed = false
			// One at a time, and only while replacements come, so that the others are
			// there meanwhile.
			aged := len(s.warm) > 0 && time.Since(s.warm[0].since) >= maxAge
			replaced := len(s.filling) == 0 && !time.Now().Before(s.resume) && p.demand == 0 && len(p.room) == 0
			if len(s.warm) > s.target || aged && replaced {
				p.retireOldest(s)
			}
		}
		p.fillAfter(fillDelay)
		p.mu.Unlock()
	}
}
