package access

import (
	"context"
	"time"
)

// counter counts what callers do against their limits: alone for one process, together for
// all services of a deployment.
type counter interface {
	// limit gives the owner of a meter its limits from now on.
	limit(owner string, m *meter, l Limits)
	// request counts a request, or returns when there is room for it, and the limit.
	request(c *Caller) (wait time.Duration, most int)
	// room is what begin would say, as far as that is known here: nobody is asked.
	room(c *Caller) full
	// spent returns how long the day's CPU time leaves no room.
	spent(c *Caller) time.Duration
	// begin takes a place for a run, or says what leaves no room.
	begin(r *Run) full
	// end gives the place back, and may be called again.
	end(r *Run)
	charge(c *Caller, cpu time.Duration)

	// watch does what is not a caller's to wait for, until ctx ends.
	watch(ctx context.Context)
	save() error
	close() error
}

// full is how long a run has no room, by either limit. The zero value is room.
type full struct {
	cpu, runs time.Duration
	most      int // runs at once
}

// alone counts in this process.
type alone struct {
	now    func() time.Time
	ledger *ledger
}

func (a *alone) limit(_ string, m *meter, l Limits) { m.limit(a.now(), l) }

func (a *alone) request(c *Caller) (wait time.Duration, most int) { return c.meter.request(a.now()) }

func (a *alone) room(c *Caller) full {
	f := full{cpu: a.spent(c)}
	f.runs, f.most = c.meter.room(a.now())
	return f
}

func (a *alone) spent(c *Caller) time.Duration {
	if c.limits.CPUPerDay == 0 {
		return 0
	}
	used, until := a.ledger.usedBy(c.owner)
	if used < c.limits.CPUPerDay {
		return 0
	}
	return max(until.Sub(a.now()), minRetry)
}

func (a *alone) begin(r *Run) full {
	f := full{cpu: a.spent(r.caller)}
	if f.cpu == 0 {
		f.runs, f.most = r.caller.meter.begin(r, r.begun)
	}
	return f
}

func (a *alone) end(r *Run) { r.caller.meter.end(r, a.now()) }

func (a *alone) charge(c *Caller, cpu time.Duration) { a.ledger.charge(c.owner, cpu) }

func (a *alone) watch(context.Context) {}

func (a *alone) save() error { return a.ledger.save() }

func (a *alone) close() error { return a.ledger.save() }
