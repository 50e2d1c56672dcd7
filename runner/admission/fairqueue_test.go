package admission_test

import (
	"context"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/runner"
	"notebox/runner/admission"
	"notebox/runner/runnertest"
)

// TestAdmissionIsFair has runs come one after the other, all before the first
// has ended, and looks at the order in which they start.
func TestAdmissionIsFair(t *testing.T) {
	for _, c := range []struct {
		desc     string
		running  int
		arrivals string // an owner each
		want     string
	}{
		{"one owner: first come, first served", 1, "aaaaaa", "aaaaaa"},
		{"one place: owners take turns", 1, "aaaabbc", "abcabaa"},
		{"more owners than places", 2, "abcdabcd", "abcdabcd"},
		{"who has the fewest places comes first", 2, "aaaaabb", "aababaa"},
		{"one owner has all places and fifty waiting", 4, strings.Repeat("a", 54) + "bb", "aaaabb" + strings.Repeat("a", 50)},
		{"the same with as many owners as places", 4, strings.Repeat("a", 20) + "bbccdd", "aaaabcdabcda" + strings.Repeat("a", 14)},
	} {
		t.Run(c.desc, func(t *testing.T) {
			runnertest.InBubble(t, func(t *testing.T) {
				next := &slow{}
				a := admission.New(next, admission.Limits{MaxRunning: c.running, MaxWaiting: len(c.arrivals), MaxWait: time.Hour})
				var want []string
				came := map[rune]int{}
				for _, owner := range c.want {
					want = append(want, runName(owner, came))
				}
				clear(came)
				for _, owner := range c.arrivals {
					spec := runner.Spec{ID: runName(owner, came), Owner: string(owner)}
					go func() { _, _ = a.Run(t.Context(), spec, runnertest.NewRecorder(t)) }()
					time.Sleep(100 * time.Millisecond) // so that no two end at the same time
				}
				time.Sleep(time.Hour)
				synctest.Wait()
				require.Equal(t, want, next.order)
				requireEmpty(t, a)
			})
		})
	}
}

// runName numbers the runs of an owner: an owner's own stay in their order.
func runName(owner rune, came map[rune]int) string {
	came[owner]++
	return string(owner) + strings.Repeat("'", came[owner])
}

// TestOneAtATimeAmongMany has one owner that always waits, and one that asks
// again when it is answered: that costs it no turn.
func TestOneAtATimeAmongMany(t *testing.T) {
	runnertest.InBubble(t, func(t *testing.T) {
		next := &slow{}
		a := admission.New(next, admission.Limits{MaxRunning: 1, MaxWaiting: 10, MaxWait: time.Hour})
		run := func(owner string) {
			_, _ = a.Run(t.Context(), runner.Spec{ID: owner, Owner: owner}, runnertest.NewRecorder(t))
		}
		for range 5 {
			go run("a")
			synctest.Wait()
		}
		for range 3 {
			run("b")
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		require.Equal(t, "abababaa", strings.Join(next.order, ""))
	})
}

func TestTwoHundredAtOnce(t *testing.T) {
	for _, c := range []struct {
		desc    string
		waiting int
		shared  bool
	}{
		{"room to wait for all", 200, false},
		{"for some", 40, false},
		{"for some of each owner", 40, true},
		{"for none", 0, false},
	} {
		t.Run(c.desc, func(t *testing.T) {
			runnertest.InBubble(t, func(t *testing.T) {
				next := &slow{}
				a := admission.New(next, admission.Limits{MaxRunning: 4, MaxWaiting: c.waiting, MaxWait: maxWait, ShareWaiting: c.shared})
				got := make([]answer, 200)
				for i := range got {
					go func() { got[i] = ask(t.Context(), t, a, string(rune('a'+i%3))) }()
				}
				time.Sleep(time.Hour)
				synctest.Wait()
				ran := 0
				for _, g := range got {
					switch g.code {
					case "":
						ran++
						require.Equal(t, runner.StatusOK, g.status)
						require.LessOrEqual(t, g.queue, maxWait)
					case runner.CodeShare:
						require.True(t, c.shared)
						require.Zero(t, g.at)
					default:
						require.Equal(t, runner.CodeFull, g.code)
						require.LessOrEqual(t, g.at, maxWait)
					}
				}
				require.Equal(t, 4, next.most)
				require.Equal(t, min(4+c.waiting, 8), ran, "places are used while maxWait lasts")
				requireEmpty(t, a)
			})
		})
	}
}

// TestNoPlaceIsLost has each waiter leave at the moment when it is handed its
// place, by its context or by its patience.
func TestNoPlaceIsLost(t *testing.T) {
	const patience = 200 * time.Microsecond
	for _, c := range []struct {
		desc    string
		maxWait time.Duration
		leave   func(cancel func())
	}{
		{"called off", time.Hour, func(cancel func()) { cancel() }},
		{"out of patience", patience, func(func()) { time.Sleep(patience) }},
	} {
		t.Run(c.desc, func(t *testing.T) {
			for range 2000 {
				inside, ends := make(chan struct{}, 3), make(chan struct{}) // runs that began, at most three
				a := admission.New(runFunc(func(context.Context) {
					inside <- struct{}{}
					<-ends
				}), admission.Limits{MaxRunning: 1, MaxWaiting: 1, MaxWait: c.maxWait})
				ctx, cancel := context.WithCancel(t.Context())
				var all sync.WaitGroup
				all.Go(func() { ask(t.Context(), t, a, "a") })
				<-inside
				all.Go(func() { ask(ctx, t, a, "b") })
				for a.Waiting() == 0 && c.maxWait > patience {
					runtime.Gosched()
				}
				all.Go(func() {
					c.leave(func() {})
					close(ends)
				})
				c.leave(cancel)
				all.Wait()
				cancel()
				requireEmpty(t, a)
				require.Equal(t, runner.StatusOK, ask(t.Context(), t, a, "c").status, "the place is free")
			}
		})
	}
}

// TestAdmissionStorm has owners come, leave, run out of patience and run, all at
// random, and then wants every place back.
func TestAdmissionStorm(t *testing.T) {
	const places, clients, rounds = 4, 32, 400
	var inside, most, ran, left atomic.Int64
	var calm atomic.Bool
	end := make(chan struct{})
	next := runFunc(func(ctx context.Context) {
		if calm.Load() {
			<-end
			return
		}
		now := inside.Add(1)
		for m := most.Load(); now > m && !most.CompareAndSwap(m, now); m = most.Load() {
		}
		defer inside.Add(-1)
		select {
		case <-time.After(time.Duration(rand.IntN(100)) * time.Microsecond):
		case <-ctx.Done():
		}
	})
	a := admission.New(next, admission.Limits{MaxRunning: places, MaxWaiting: clients / 2, MaxWait: 300 * time.Microsecond, ShareWaiting: true})
	var all sync.WaitGroup
	for i := range clients {
		all.Go(func() {
			for range rounds {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rand.IntN(500))*time.Microsecond)
				if ask(ctx, t, a, string(rune('a'+i%5))).status == runner.StatusOK {
					ran.Add(1)
				} else {
					left.Add(1)
				}
				cancel()
			}
		})
	}
	all.Wait()
	requireEmpty(t, a)
	require.EqualValues(t, places, most.Load())
	require.Positive(t, ran.Load())
	require.Positive(t, left.Load())

	// No place was taken twice, none is lost: so many fit in at once, and no more.
	calm.Store(true)
	for range places {
		all.Go(func() { ask(t.Context(), t, a, "a") })
	}
	require.Eventually(t, func() bool { return a.Running() == places }, time.Minute, time.Millisecond)
	require.Equal(t, runner.CodeFull, ask(t.Context(), t, a, "b").code)
	close(end)
	all.Wait()
	requireEmpty(t, a)
}

// runFunc is a runner.Runner that does what a test wants, and ends well.
type runFunc func(ctx context.Context)

// Run implements runner.Runner.
func (f runFunc) Run(ctx context.Context, _ runner.Spec, _ runner.Sink) (*runner.Outcome, error) {
	f(ctx)
	return &runner.Outcome{Status: runner.StatusOK}, nil
}
