package access

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// clockStore is a Store of nothing but a clock, which can be out of reach. What stores count is
// tested with a real one, in access/redis.
type clockStore struct {
	clock *clock
	down  bool
}

func (s *clockStore) err() error {
	if s.down {
		return errors.New("out of reach")
	}
	return nil
}

func (s *clockStore) Request(context.Context, string, int) (time.Duration, error) { return 0, s.err() }

func (s *clockStore) Begin(context.Context, Asked) (Told, error) {
	return Told{Now: s.clock.now()}, s.err()
}

func (s *clockStore) Report(_ context.Context, r *Report) (*Heard, error) {
	h := &Heard{Now: s.clock.now(), Services: []string{r.Service}, CPU: map[string]time.Duration{}}
	for owner, a := range r.Owners {
		h.CPU[owner] = a.CPU
	}
	return h, s.err()
}

// TestDayOfTheStore is its clock's, and goes on while the store is out of reach.
func TestDayOfTheStore(t *testing.T) {
	here, there := &clock{at: noon}, &clock{at: noon.Add(-13 * time.Hour)} // the day before, 23:00
	store := &clockStore{clock: there}
	k := keys(t, Options{Now: here.now, Store: store}, named("alice", "a", "cpu-seconds-per-day=10"))
	alice, counts := caller(t, k, "a"), k.counter.(*together)
	advance := func(d time.Duration) {
		here.advance(d)
		there.advance(d)
	}
	spend := func() {
		r, err := alice.BeginRun()
		require.NoError(t, err)
		r.Charge(10 * time.Second)
		counts.report(false)
		requireRefused(t, alice.MayBeginRun(), ReasonCPU, counts.dayLeft())
	}
	spend()
	require.Equal(t, time.Hour, counts.dayLeft())
	advance(time.Hour)
	spend() // it was true
	require.Equal(t, 24*time.Hour, counts.dayLeft())

	there.advance(-time.Minute) // another server, with another clock
	counts.report(true)
	requireRefused(t, alice.MayBeginRun(), ReasonCPU, 24*time.Hour+time.Minute)

	store.down = true
	counts.report(true)
	require.Equal(t, SharingDown, counts.sharing().Store)
	advance(24*time.Hour + time.Minute)
	require.NoError(t, alice.MayBeginRun())
	_, err := alice.BeginRun()
	require.NoError(t, err)
}
