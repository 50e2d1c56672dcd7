package access

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Caller is who calls, with what its key allowed when it was asked for. All methods
// may be called on nil, which is a caller without limits on a service without keys.
type Caller struct {
	keys   *Keys
	name   string
	owner  string
	limits Limits
	meter  *meter // shared with the owner's other requests, and kept over new keys
}

// Owner is under what the caller's things are kept: 16 hex digits, "" without keys.
func (c *Caller) Owner() string {
	if c == nil {
		return ""
	}
	return c.owner
}

// Name is what the keys file calls the caller; "" for a plain key, and without keys.
func (c *Caller) Name() string {
	if c == nil {
		return ""
	}
	return c.name
}

// Request counts a request, or refuses it, which then counts for nothing.
func (c *Caller) Request() error {
	if c == nil {
		return nil
	}
	wait, most := c.keys.counter.request(c)
	if wait <= 0 {
		return nil
	}
	return &Refusal{
		Reason: ReasonRequests, RetryAfter: wait,
		Message: fmt.Sprintf("this API key may send %d requests a minute", most),
	}
}

// MayUse refuses an environment that the key does not allow, by its name or its
// language.
func (c *Caller) MayUse(name, language string) error {
	if c == nil || c.Sees(name, language) {
		return nil
	}
	return &Refusal{
		Reason: ReasonEnvironment, Field: "language",
		Message: fmt.Sprintf("this API key may not run %s; it may run: %s", language, strings.Join(c.limits.Environments, ", ")),
	}
}

// Sees is MayUse for a list of what there is: nothing is refused.
func (c *Caller) Sees(name, language string) bool {
	return c == nil || len(c.limits.Environments) == 0 || slices.ContainsFunc(c.limits.Environments, func(allowed string) bool {
		return strings.EqualFold(allowed, name) || strings.EqualFold(allowed, language)
	})
}

// MayNetwork refuses a network to a key that may have none. Whether there is one at
// all is the operator's affair.
func (c *Caller) MayNetwork() error {
	if c == nil || !c.limits.NoNetwork {
		return nil
	}
	return &Refusal{Reason: ReasonNetwork, Field: "network", Message: "this API key may not run code with a network"}
}

// maySessionRetry is when to come back for a session: it is its owner who closes one.
const maySessionRetry = 10 * time.Second

// MayOpenSession refuses a session to a caller that has so many open.
func (c *Caller) MayOpenSession(open int) error {
	switch {
	case c == nil || c.limits.Sessions == 0 || c.limits.Sessions > open:
		return nil
	case c.limits.Sessions == None:
		return &Refusal{Reason: ReasonSessions, Message: "this API key may not open sessions"}
	}
	return &Refusal{
		Reason: ReasonSessions, RetryAfter: maySessionRetry,
		Message: fmt.Sprintf("this API key may have %d sessions open", c.limits.Sessions),
	}
}

// Sessions is how many sessions the caller may have open; 0 is no bound. One that may
// have none is refused by MayOpenSession.
func (c *Caller) Sessions() int {
	if c == nil {
		return 0
	}
	return max(0, c.limits.Sessions)
}

// MayUseCPU refuses a caller that has used its CPU time of the day.
func (c *Caller) MayUseCPU() error {
	if c == nil {
		return nil
	}
	return c.refusal(full{cpu: c.keys.counter.spent(c)})
}

// MayBeginRun is BeginRun for a look ahead: it takes no place, and may so be right
// no more when BeginRun is called. It asks no Store: what it refuses is refused for sure.
func (c *Caller) MayBeginRun() error {
	if c == nil {
		return nil
	}
	return c.refusal(c.keys.counter.room(c))
}

// BeginRun takes a place for a run, from before it waits for a sandbox. If it
// returns no error, End must be called.
func (c *Caller) BeginRun() (*Run, error) {
	if c == nil {
		return nil, nil
	}
	r := &Run{caller: c, begun: c.keys.now()}
	if err := c.refusal(c.keys.counter.begin(r)); err != nil {
		return nil, err
	}
	return r, nil
}

// refusal is nil if there is room.
func (c *Caller) refusal(f full) error {
	switch {
	case f.cpu > 0:
		return &Refusal{
			Reason: ReasonCPU, RetryAfter: f.cpu,
			Message: fmt.Sprintf("this API key has used its %d CPU-seconds of the day (UTC)", c.limits.CPUPerDay/time.Second),
		}
	case f.runs > 0:
		return &Refusal{
			Reason: ReasonRuns, RetryAfter: f.runs,
			Message: fmt.Sprintf("this API key may have %d runs at one time", f.most),
		}
	}
	return nil
}

// Run is a place that a caller's run has. Its methods may be called on nil.
type Run struct {
	caller *Caller
	begun  time.Time
	place  string // at a Store; "": it has none there
}

// Charge adds CPU time to the day's. It may be called several times.
func (r *Run) Charge(cpu time.Duration) {
	if r != nil {
		r.caller.keys.counter.charge(r.caller, cpu)
	}
}

// End gives the place back, and may be called again.
func (r *Run) End() {
	if r != nil {
		r.caller.keys.counter.end(r)
	}
}
