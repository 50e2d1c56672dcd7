package cells

import (
	"sync"
	"time"
)

const (
	// paceRate is how many bytes a second a sandbox moves while others move little. At full speed,
	// some 80 MiB, worker, daemon and service take 1.5 cores for it: this is half of one.
	paceRate = 24 << 20
	// paceBurst is how many bytes are little, and never wait.
	paceBurst = 1 << 20
	// pacePause is how long a small run counts as present after its last byte.
	pacePause = 200 * time.Millisecond
)

// others is who moves little: somebody waits for a small run.
type others struct {
	mu        sync.Mutex
	latest    *pace
	at        time.Time // of the latest
	elsewhere time.Time // of the one before, who is another one
}

func (o *others) note(p *pace, now time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.latest != p {
		o.latest, o.elsewhere = p, o.at
	}
	o.at = now
}

// lately is the time of the last small transfer of a sandbox other than p.
func (o *others) lately(p *pace) time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.latest == p {
		return o.elsewhere
	}
	return o.at
}

// pace has a large transfer of one sandbox, in both directions together, leave the machine to small
// runs. The zero value has moved nothing.
type pace struct {
	mu    sync.Mutex
	over  float64 // bytes that were moved faster than paceRate, lately
	at    time.Time
	large time.Time // when over was last more than paceBurst
}

// moved is called for each n bytes. It waits if they are many, and others are there.
func (p *pace) moved(n int, o *others) {
	p.mu.Lock()
	now := time.Now()
	// What was moved before others came is forgiven, but for one more burst.
	p.over = min(max(0, p.over-now.Sub(p.at).Seconds()*paceRate)+float64(n), 2*paceBurst)
	p.at = now
	excess := p.over - paceBurst
	if excess > 0 {
		p.large = now
	}
	// Not one that has just waited, or two large ones would slow each other down for ever.
	small := now.Sub(p.large) > pacePause
	p.mu.Unlock()
	if small {
		o.note(p, now)
	}
	if excess > 0 && now.Sub(o.lately(p)) < pacePause {
		time.Sleep(time.Duration(excess / paceRate * float64(time.Second)))
	}
}
