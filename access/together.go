package access

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// callTime bounds a call of the store that a request waits for. A store nearby takes less
// than a millisecond; a caller does not notice the bound.
const callTime = 50 * time.Millisecond

// slowTime is how long a store that does not answer may only be slow, and the other services
// go on with it. Until then a service takes no more places than it had, and its part of those
// that were free: its whole part may be in others' hands.
const slowTime = 2 * time.Second

// together counts with other services at a Store, and holds this service's part of each limit
// beside that: its meters have the part, and count what the store allows too. While the store
// does not answer, they decide.
type together struct {
	store   Store
	now     func() time.Time
	log     *slog.Logger
	service string        // a new one for each process
	kick    chan struct{} // has watch report at once

	places, calls, failed atomic.Int64

	mu       sync.Mutex
	owners   map[string]*shared
	services []string      // that were there at last, sorted
	seen     time.Time     // when
	down     bool          // the last call has failed
	since    time.Time     // when
	again    bool          // the store may have lost what it was told
	met      bool          // the store has answered once
	day      time.Time     // the store's
	ahead    time.Duration // of the store's clock before this one
	reported chan struct{} // closed when what is said now was reported, or could not be
}

// shared is what one owner does here. together.mu holds it.
type shared struct {
	meter  *meter
	limits Limits // of all services together
	runs   map[*Run]bool
	ended  map[string]time.Time // places that the store may still have
	taken  int                  // places that all services had at last
	most   int                  // runs here as long as the store may only be slow

	// CPU time of the day: charged here, of which the store knows sent; and what it told of all.
	charged, sent, known time.Duration
	told                 time.Time // when
}

// openTogether reports for the first time, so that this service knows how many there are.
func openTogether(store Store, now func() time.Time, log *slog.Logger) *together {
	t := &together{
		store: store, now: now, log: log, service: strings.ToLower(rand.Text()), kick: make(chan struct{}, 1),
		owners: map[string]*shared{}, day: now().UTC().Truncate(day), reported: make(chan struct{}),
	}
	t.services = []string{t.service}
	t.report(true)
	return t
}

func (t *together) limit(owner string, m *meter, l Limits) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.owners[owner]
	if s == nil {
		s = &shared{meter: m, runs: map[*Run]bool{}, ended: map[string]time.Time{}, most: t.part(l).RunsAtOnce}
		t.owners[owner] = s
	}
	s.limits = l
	m.limit(t.now(), t.part(l))
}

// of returns the limits of who calls, which may be newer than the call, and whether the store
// is to be asked.
func (t *together) of(c *Caller) (l Limits, up bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.owners[c.owner].limits, !t.down
}

// ask calls the store in callTime, and reports whether it has answered.
func (t *together) ask(call func(context.Context) error) bool {
	ctx, cancel := context.WithTimeout(context.Background(), callTime)
	defer cancel()
	t.calls.Add(1)
	err := call(ctx)
	if err != nil {
		t.fail(err)
		t.wake()
	}
	return err == nil
}

func (t *together) request(c *Caller) (wait time.Duration, most int) {
	l, up := t.of(c)
	if l.RequestsPerMinute == 0 {
		return 0, 0
	}
	if up && t.ask(func(ctx context.Context) (err error) {
		wait, err = t.store.Request(ctx, c.owner, l.RequestsPerMinute)
		return err
	}) {
		if wait == 0 {
			c.meter.request(t.now())
		}
		return wait, l.RequestsPerMinute
	}
	wait, _ = c.meter.request(t.now())
	return wait, l.RequestsPerMinute
}

// room knows the runs of this service and what the store has told of CPU time, which only
// grows: what it refuses, begin would refuse.
func (t *together) room(c *Caller) full {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.owners[c.owner]
	f := full{cpu: t.spentBy(s), most: s.limits.RunsAtOnce}
	if t.down {
		f.runs, _ = c.meter.room(t.now())
	} else if f.most > 0 && len(s.runs) >= f.most {
		f.runs = c.meter.retry(t.now())
	}
	return f
}

// spent asks the store if what it has told is old.
func (t *together) spent(c *Caller) time.Duration {
	t.mu.Lock()
	s := t.owners[c.owner]
	l, wait := s.limits, t.spentBy(s)
	fresh := t.down || t.now().Sub(s.told).Abs() < time.Second
	t.mu.Unlock()
	if l.CPUPerDay == 0 || wait > 0 || fresh {
		return wait
	}
	t.begins(c, Asked{Owner: c.owner, CPUPerDay: l.CPUPerDay})
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.spentBy(s)
}

// begins asks the store for a place, and learns what it tells.
func (t *together) begins(c *Caller, a Asked) (told Told, ok bool) {
	ok = t.ask(func(ctx context.Context) (err error) {
		told, err = t.store.Begin(ctx, a)
		return err
	})
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.owners[c.owner]
	switch {
	case !ok && a.Place != "":
		s.ended[a.Place] = t.now() // it may have been taken
	case ok:
		t.learn(told.Now)
		if a.Place != "" {
			s.taken = told.Taken
		}
		if a.CPUPerDay > 0 {
			s.known = told.CPU
		}
		s.told = t.now()
	}
	return told, ok
}

func (t *together) begin(r *Run) full {
	c := r.caller
	l, up := t.of(c)
	if l.RunsAtOnce == 0 && l.CPUPerDay == 0 {
		c.meter.hold(r)
		return full{}
	}
	place := ""
	if l.RunsAtOnce > 0 {
		place = t.newPlace()
	}
	if up {
		told, ok := t.begins(c, Asked{c.owner, place, l.RunsAtOnce, l.CPUPerDay})
		switch {
		case ok && told.Spent:
			t.mu.Lock()
			defer t.mu.Unlock()
			return full{cpu: t.dayLeft()}
		case ok && told.Full:
			return full{runs: c.meter.retry(t.now()), most: l.RunsAtOnce}
		case ok:
			c.meter.hold(r)
			t.keep(r, place)
			return full{}
		}
	}
	t.mu.Lock()
	s := t.owners[c.owner]
	f := full{cpu: t.spentBy(s), most: l.RunsAtOnce}
	hold := l.RunsAtOnce > 0 && t.now().Sub(t.since) < slowTime && len(s.runs) >= s.most
	t.mu.Unlock()
	if hold {
		f.runs = minRetry
	}
	if f.cpu > 0 || hold {
		return f
	}
	if f.runs, _ = c.meter.begin(r, r.begun); f.runs == 0 {
		if l.RunsAtOnce > 0 {
			place = t.newPlace()
		}
		t.keep(r, place)
	}
	return f
}

func (t *together) newPlace() string { return fmt.Sprintf("%s:%d", t.service, t.places.Add(1)) }

// keep has a run's place renewed until it ends.
func (t *together) keep(r *Run, place string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r.place = place
	t.owners[r.caller.owner].runs[r] = true
}

// end waits until the store has heard of it: else who has read the reply, and comes at once
// with the next run, would find its own place taken. Ends of one moment are one call.
func (t *together) end(r *Run) {
	t.mu.Lock()
	s := t.owners[r.caller.owner]
	counted := s.runs[r]
	if counted && r.place != "" {
		s.ended[r.place] = t.now()
	}
	delete(s.runs, r)
	done, down := t.reported, t.down
	t.mu.Unlock()
	r.caller.meter.end(r, t.now())
	if !counted || down {
		return
	}
	t.wake()
	late := time.NewTimer(callTime)
	defer late.Stop()
	select {
	case <-done:
	case <-late.C:
	}
}

func (t *together) charge(c *Caller, cpu time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.turn()
	if s := t.owners[c.owner]; s.limits.CPUPerDay > 0 && cpu > 0 {
		s.charged += cpu
	}
}

// spentBy returns how long an owner has no CPU time. What the store does not know yet is
// taken for every service's, while it does not answer. t.mu is held.
func (t *together) spentBy(s *shared) time.Duration {
	t.turn()
	own := s.charged - s.sent
	if t.down {
		own *= time.Duration(len(t.services))
	}
	if s.limits.CPUPerDay == 0 || s.known+own < s.limits.CPUPerDay {
		return 0
	}
	return t.dayLeft()
}

// dayLeft is until the store's day ends. t.mu is held.
func (t *together) dayLeft() time.Duration {
	return max(t.day.Add(day).Sub(t.now().Add(t.ahead)), minRetry)
}

// learn follows the store's clock. t.mu is held.
func (t *together) learn(now time.Time) {
	t.ahead = now.Sub(t.now())
	t.turn()
	t.met = true
}

// turn begins a new day if it is one at the store, as far as its clock is known: what was used
// is forgotten. A clock that is set back gives nobody a second budget. t.mu is held.
func (t *together) turn() {
	today := t.now().Add(t.ahead).UTC().Truncate(day)
	switch {
	case today.After(t.day):
		for _, s := range t.owners {
			s.charged, s.sent, s.known = 0, 0, 0
		}
		t.day = today
	case !t.met || t.day.Sub(today) > day:
		t.day = today
	}
}

func (t *together) save() error { return nil } // the store has it

// sharing is for those who watch the service.
func (t *together) sharing() Sharing {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := Sharing{Store: SharingOK, Services: len(t.services), Calls: t.calls.Load(), Failed: t.failed.Load()}
	if t.down {
		out.Store = SharingDown
	}
	return out
}
