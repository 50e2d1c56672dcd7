package access

import (
	"context"
	"slices"
	"time"
)

const (
	// renewEvery is how often places and the service itself are renewed: a Lease outlives
	// two that fail.
	renewEvery = Lease / 3
	// tryEvery is how often a store that is down is tried.
	tryEvery = time.Second
	// reportTime bounds a report, for which no request waits.
	reportTime = time.Second
)

// watch reports what has ended at once, and all that goes on in time.
func (t *together) watch(ctx context.Context) {
	tick := time.NewTicker(tryEvery)
	defer tick.Stop()
	renewed := t.now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.kick:
			t.report(false)
		case <-tick.C:
			if t.due(renewed) {
				renewed = t.now()
				t.report(true)
			}
		}
	}
}

func (t *together) due(renewed time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.down || t.again || t.now().Sub(renewed).Abs() >= renewEvery
}

// wake has watch report at once.
func (t *together) wake() {
	select {
	case t.kick <- struct{}{}:
	default:
	}
}

// report tells the store what it does not know, with all places if renew is set. It is for
// one at a time: a place that has ended must not be renewed after that.
func (t *together) report(renew bool) {
	r, all, done := t.account(renew)
	defer close(done)
	ctx, cancel := context.WithTimeout(context.Background(), reportTime)
	defer cancel()
	t.calls.Add(1)
	begun := time.Now()
	heard, err := t.store.Report(ctx, r)
	if err != nil {
		t.fail(err)
		return
	}
	t.hear(r, heard)
	t.mu.Lock()
	defer t.mu.Unlock()
	// A store that knew nothing of this service may have lost all: the next report says all.
	t.again = heard.New && !all
	// One that is as slow as this is none to wait for.
	if t.down && time.Since(begun) < callTime {
		t.down = false
		t.log.Info("the store of limits answers again: limits hold over all services", "services", len(t.services))
	}
}

// account makes a report of what the store does not know; or of all, if it may have lost that.
func (t *together) account(renew bool) (r *Report, all bool, done chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.turn()
	all = t.again
	r = &Report{Service: t.service, Day: t.day, Owners: map[string]*Account{}}
	for owner, s := range t.owners {
		a := &Account{}
		for place, at := range s.ended {
			a.Ended = append(a.Ended, place)
			if t.now().Sub(at) > Lease { // the place has ended by itself
				delete(s.ended, place)
			}
		}
		for run := range s.runs {
			if (renew || all) && run.place != "" {
				a.Held = append(a.Held, run.place)
			}
		}
		if s.charged != s.sent || all {
			a.CPU = s.charged
		}
		if all {
			a.PerMinute, a.Left = s.limits.RequestsPerMinute, s.meter.left(t.now(), s.limits.RequestsPerMinute)
		}
		if len(a.Ended)+len(a.Held) > 0 || a.CPU > 0 || a.Left < a.PerMinute {
			r.Owners[owner] = a
		}
	}
	done, t.reported = t.reported, make(chan struct{})
	return r, all, done
}

// hear takes in what the store has told, which knows the report now.
func (t *together) hear(r *Report, h *Heard) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.learn(h.Now)
	for owner, a := range r.Owners {
		s := t.owners[owner]
		for _, place := range a.Ended {
			delete(s.ended, place)
		}
		if a.CPU > 0 && r.Day.Equal(t.day) {
			s.sent, s.known, s.told = a.CPU, max(s.known, h.CPU[owner]), t.now()
		}
	}
	t.meet(h.Services)
}

// meet takes in who is there. Services are forgotten only when they were not seen for a
// Lease: a store that begins anew without its data does not know them yet. t.mu is held.
func (t *together) meet(services []string) {
	if len(services) < len(t.services) && t.now().Sub(t.seen) < Lease {
		return
	}
	slices.Sort(services)
	t.seen = t.now()
	if slices.Equal(services, t.services) {
		return
	}
	t.services = services
	for _, s := range t.owners {
		s.meter.limit(t.now(), t.part(s.limits))
	}
}

// part is what this service holds of limits by itself. All parts are the whole, but each is
// at least one: a store that is down locks nobody out. t.mu is held.
func (t *together) part(l Limits) Limits {
	n, rank := len(t.services), max(slices.Index(t.services, t.service), 0)
	of := func(whole int) int {
		if whole == 0 {
			return 0
		}
		part := whole / n
		if rank < whole%n {
			part++
		}
		return max(part, 1)
	}
	l.RequestsPerMinute, l.RunsAtOnce = of(l.RequestsPerMinute), of(l.RunsAtOnce)
	return l
}

// fail notes that the store has not answered. It is logged once.
func (t *together) fail(err error) {
	t.failed.Add(1)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.again = true
	if t.down {
		return
	}
	t.down, t.since = true, t.now()
	for _, s := range t.owners {
		s.most = len(s.runs)
		taken := s.taken
		if t.now().Sub(s.told) > slowTime { // nobody knows now
			taken = s.most
		}
		if free := s.limits.RunsAtOnce - taken; free > 0 {
			s.most += t.part(Limits{RunsAtOnce: free}).RunsAtOnce
		}
	}
	t.log.Warn("the store of limits does not answer: this service holds its part of each limit by itself", "services", len(t.services), "error", err)
}

// close gives all places back and takes this service from those that are there.
func (t *together) close() error {
	r, _, done := t.account(false)
	defer close(done)
	t.mu.Lock()
	r.Leaves = true
	for owner, s := range t.owners {
		for run := range s.runs {
			if r.Owners[owner] == nil {
				r.Owners[owner] = &Account{}
			}
			r.Owners[owner].Ended = append(r.Owners[owner].Ended, run.place)
		}
	}
	down := t.down
	t.mu.Unlock()
	if down {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), reportTime)
	defer cancel()
	t.calls.Add(1)
	if _, err := t.store.Report(ctx, r); err != nil { // all ends by itself
		t.log.Warn("the store of limits was not told that this service ends", "error", err)
	}
	return nil
}
