package pool

import (
	"time"

	"notebox/runner"
)

// byUseIdle is how long a sandbox waits for an environment that nobody has asked for
// since: somebody who works with it comes back within minutes.
const byUseIdle = 10 * time.Minute

// stockFor returns the stock that a run is served from. It makes one if the environment has
// none, as one run is seldom the last. A run whose limits are not those of the sandboxes
// that wait gets a stock that stays empty. The lock is held.
func (p *Pool) stockFor(env runner.Environment, l runner.Limits) *stock {
	key := keyOf(env)
	s := p.stocks[key]
	if s == nil {
		s = newStock(StockOptions{Environment: env}, p.options.LimitsOf(env.Name))
		s.byUse = true
		if p.options.ByUse > 0 && s.fits(l) {
			p.stocks[key] = s
		}
	}
	if !s.fits(l) {
		return &stock{}
	}
	s.used = time.Now()
	return s
}

// grow raises the target of a stock that has missed a run. The lock is held.
func (p *Pool) grow(s *stock) {
	if !s.byUse {
		s.target = min(s.target+1, max(s.Max, s.Min))
		return
	}
	if p.stocks[keyOf(s.Environment)] != s { // it is for this run alone
		return
	}
	if p.waitingByUse() >= p.options.ByUse && !p.shrinkOldest(s) {
		return
	}
	s.target++
}

// waitingByUse is how many are to be warm of environments without a stock of their own.
func (p *Pool) waitingByUse() (n int) {
	for _, s := range p.stocks {
		if s.byUse {
			n += s.target
		}
	}
	return n
}

// shrinkOldest takes one place from the stock that was used longest ago, but for this one.
func (p *Pool) shrinkOldest(but *stock) bool {
	var oldest *stock
	for _, s := range p.stocks {
		if s.byUse && s != but && s.target > 0 && (oldest == nil || s.used.Before(oldest.used)) {
			oldest = s
		}
	}
	if oldest == nil {
		return false
	}
	oldest.target--
	p.trim(oldest, oldest.target)
	return true
}

// forget ends a stock by use that nobody uses any more. The lock is held.
func (p *Pool) forget(s *stock) {
	if time.Since(s.used) < byUseIdle {
		return
	}
	s.target = 0
	p.trim(s, 0)
	if len(s.filling) == 0 {
		delete(p.stocks, keyOf(s.Environment))
	}
}

// ForgetImage ends what waits of an image that is about to be removed.
func (p *Pool) ForgetImage(image string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for key, s := range p.stocks {
		if s.byUse && key.image == image {
			s.target, s.used = 0, time.Time{}
			p.forget(s)
		}
	}
}
