package access

import (
	"crypto/subtle"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// Options of Keys. The zero value is good for all of them.
type Options struct {
	// UsageFile keeps the CPU time that each owner has used on this UTC day, over
	// restarts. "": it is forgotten.
	UsageFile string
	// Await has New and Open take no entries too: nobody may call until the file has a key.
	// A file that is missing is made.
	Await bool
	// Store counts for all services that have it, in the place of this process and UsageFile.
	// Keys.Watch must run then. nil: limits are this process's.
	Store Store
	Log   *slog.Logger     // nil: nothing is logged
	Now   func() time.Time // nil: time.Now
}

// Keys are the API keys that may call now. A nil *Keys is a service without keys.
type Keys struct {
	now     func() time.Time
	log     *slog.Logger
	counter counter
	file    *file // nil if the keys are of no file

	current atomic.Pointer[register]
	mu      sync.Mutex
	meters  map[string]*meter // by owner, also of callers that are none any more: they may come back
	changed func(callers int) // may be nil
}

// register is what one reading of the file has given. It is never changed.
type register struct {
	bySecret map[Secret]known
	callers  int
}

type known struct {
	secret Secret
	caller *Caller
}

// New returns Keys for these entries, which must not contradict each other.
func New(entries []Entry, o Options) (*Keys, error) {
	k := &Keys{now: o.Now, log: o.Log, meters: map[string]*meter{}}
	if k.now == nil {
		k.now = time.Now
	}
	if k.log == nil {
		k.log = slog.New(slog.DiscardHandler)
	}
	if len(entries) == 0 && !o.Await {
		return nil, ErrNoKey
	}
	all := newSeen()
	for _, e := range entries {
		if err := all.add(e); err != nil {
			return nil, fmt.Errorf("API keys: %w", err)
		}
	}
	if o.Store != nil {
		k.counter = openTogether(o.Store, k.now, k.log)
	} else {
		ledger, err := openLedger(o.UsageFile, k.now, k.log)
		if err != nil {
			return nil, fmt.Errorf("API keys: %w", err)
		}
		k.counter = &alone{k.now, ledger}
	}
	k.set(entries)
	return k, nil
}

// set makes these the keys, at once and for all requests from then on. What goes on
// under others ends by itself.
func (k *Keys) set(entries []Entry) {
	k.mu.Lock()
	defer k.mu.Unlock()
	r := &register{bySecret: map[Secret]known{}, callers: len(entries)}
	for _, e := range entries {
		m := k.meters[e.Owner]
		if m == nil {
			m = newMeter()
			k.meters[e.Owner] = m
		}
		k.counter.limit(e.Owner, m, e.Limits)
		c := &Caller{keys: k, name: e.Name, owner: e.Owner, limits: e.Limits, meter: m}
		for _, s := range e.Secrets {
			r.bySecret[s] = known{s, c}
		}
	}
	k.current.Store(r)
	if k.changed != nil {
		k.changed(len(entries))
	}
}

// OnChange has f called with the number of callers, now and whenever other keys are
// read. f must not block. On a service without keys it is not called.
func (k *Keys) OnChange(f func(callers int)) {
	if k == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.changed = f
	f(k.Len())
}

// Len is how many callers there are; 0 on a service without keys.
func (k *Keys) Len() int {
	if k == nil {
		return 0
	}
	return k.current.Load().callers
}

// Caller returns who presents a key, or a *Refusal. On a service without keys that
// is nil, whatever is presented.
//
// The time that it takes tells nothing of a key that is known: what is looked up is
// a hash, of which whoever guesses keys cannot choose the first bytes to be those of
// a known one, and the comparison at the end takes the same time for each outcome.
func (k *Keys) Caller(key string) (*Caller, error) {
	c, ok := k.Find(key)
	if !ok {
		return nil, &Refusal{Reason: ReasonKey, Message: "the API key is missing or not known"}
	}
	return c, nil
}

// Find is Caller without an error.
func (k *Keys) Find(key string) (*Caller, bool) {
	if k == nil {
		return nil, true
	}
	hash := SecretOf(key)
	found := k.current.Load().bySecret[hash]
	// What is not in the map is compared with zeros.
	if subtle.ConstantTimeCompare(hash[:], found.secret[:]) == 0 || key == "" || found.caller == nil {
		return nil, false
	}
	return found.caller, true
}

// Sharing is how limits are held with other services; false if they are this process's.
func (k *Keys) Sharing() (Sharing, bool) {
	if k == nil {
		return Sharing{}, false
	}
	t, ok := k.counter.(*together)
	if !ok {
		return Sharing{}, false
	}
	return t.sharing(), true
}

// Close writes what the day has used, or gives back what this service has at the Store.
// Nothing is charged after it.
func (k *Keys) Close() error {
	if err := k.counter.close(); err != nil {
		return fmt.Errorf("API keys: %w", err)
	}
	return nil
}
