package admission_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/runner"
	"notebox/runner/admission"
	"notebox/runner/runnertest"
)

const (
	place   = 10 * time.Second // how long a run of these tests has its place
	maxWait = 15 * time.Second
)

// answer is what one run of a test of Admission came to.
type answer struct {
	at     time.Duration // since the test began
	status runner.Status
	code   runner.Code
	queue  time.Duration
}

func TestAdmission(t *testing.T) {
	for _, c := range []struct {
		desc                string
		running, waiting    int
		shared              bool
		arrivals            string        // an owner each
		pause               time.Duration // after each of them
		cancelAt            map[int]time.Duration
		want                []answer // by order of arrival
		mostAtOnce, started int
	}{
		{
			desc: "room for all", running: 3, arrivals: "aaa", mostAtOnce: 3, started: 3,
			want: []answer{ok(0), ok(0), ok(0)},
		}, {
			desc: "first come, first served", running: 1, waiting: 1, arrivals: "aa", mostAtOnce: 1, started: 2,
			want: []answer{ok(0), ok(place)},
		}, {
			desc: "no room to wait", running: 1, waiting: 0, arrivals: "aa", mostAtOnce: 1, started: 1,
			want: []answer{ok(0), full(0)},
		}, {
			desc: "the queue is full", running: 2, waiting: 1, arrivals: "aaaaa", mostAtOnce: 2, started: 3,
			want: []answer{ok(0), ok(0), ok(place), full(0), full(0)},
		}, {
			desc: "waited too long", running: 1, waiting: 3, arrivals: "aaaa", mostAtOnce: 1, started: 2,
			want: []answer{ok(0), ok(place), full(maxWait), full(maxWait)},
		}, {
			desc: "one that waits is called off", running: 1, waiting: 2, arrivals: "aaa", mostAtOnce: 1, started: 2,
			cancelAt: map[int]time.Duration{1: 3 * time.Second},
			want:     []answer{ok(0), cancelled(3 * time.Second), ok(place)},
		}, {
			desc: "called off while it runs: its place is free at once", running: 1, waiting: 1, arrivals: "aa", mostAtOnce: 1, started: 2,
			cancelAt: map[int]time.Duration{0: 3 * time.Second},
			want:     []answer{cancelled(3 * time.Second), ok(3 * time.Second)},
		}, {
			desc: "one that left makes room to wait at once", running: 1, waiting: 1, arrivals: "aaa", mostAtOnce: 1, started: 2,
			cancelAt: map[int]time.Duration{1: time.Nanosecond}, pause: time.Millisecond,
			want: []answer{ok(0), cancelled(time.Nanosecond), ok(place - 2*time.Millisecond)},
		}, {
			desc: "called off before it came, with room", running: 1, waiting: 1, arrivals: "a", mostAtOnce: 0, started: 0,
			cancelAt: map[int]time.Duration{0: 0},
			want:     []answer{cancelled(0)},
		}, {
			desc: "one owner crowds in: half of the queue", running: 4, waiting: 4, shared: true, arrivals: "aaaaaaaa", mostAtOnce: 4, started: 6,
			want: []answer{ok(0), ok(0), ok(0), ok(0), ok(place), ok(place), share(0), share(0)},
		}, {
			desc: "several do: the next finds room all the same", running: 4, waiting: 9, shared: true, arrivals: "aaaaaaaaaabbbbccc", mostAtOnce: 4, started: 8,
			want: []answer{
				ok(0), ok(0), ok(0), ok(0), waits, waits, waits, waits, waits, share(0),
				waits, waits, share(0), share(0),
				waits, share(0), share(0),
			},
		}, {
			desc: "nothing left to share", running: 1, waiting: 2, shared: true, arrivals: "aabc", mostAtOnce: 1, started: 2,
			want: []answer{ok(0), waits, waits, full(0)},
		}, {
			desc: "one place to share is for anybody", running: 1, waiting: 1, shared: true, arrivals: "aaab", mostAtOnce: 1, started: 2,
			want: []answer{ok(0), ok(place), full(0), full(0)},
		}, {
			desc: "no room to wait, with shares", running: 1, waiting: 0, shared: true, arrivals: "aa", mostAtOnce: 1, started: 1,
			want: []answer{ok(0), full(0)},
		}, {
			desc: "called off before it came", running: 1, waiting: 1, arrivals: "aa", mostAtOnce: 1, started: 1,
			cancelAt: map[int]time.Duration{1: 0},
			want:     []answer{ok(0), cancelled(0)},
		},
	} {
		t.Run(c.desc, func(t *testing.T) {
			runnertest.InBubble(t, func(t *testing.T) {
				next := &slow{}
				a := admission.New(next, admission.Limits{MaxRunning: c.running, MaxWaiting: c.waiting, MaxWait: maxWait, ShareWaiting: c.shared})
				got := make([]answer, len(c.arrivals))
				for i, owner := range c.arrivals {
					ctx := t.Context()
					if after, ok := c.cancelAt[i]; ok {
						limited, cancel := context.WithTimeout(ctx, after)
						defer cancel()
						ctx = limited
					}
					go func() { got[i] = ask(ctx, t, a, string(owner)) }()
					synctest.Wait() // so that they come in order
					time.Sleep(c.pause)
				}
				time.Sleep(time.Minute)
				synctest.Wait()
				for i := range got {
					if c.want[i] == waits && got[i].at > 0 {
						got[i] = waits
					}
				}
				require.Equal(t, c.want, got)
				requireEmpty(t, a)
				require.Equal(t, c.mostAtOnce, next.most)
				require.Equal(t, c.started, next.started)
			})
		})
	}
}

func TestAdmissionAfterPanic(t *testing.T) {
	runnertest.InBubble(t, func(t *testing.T) {
		next := &slow{panics: true}
		a := admission.New(next, admission.Limits{MaxRunning: 1, MaxWait: maxWait})
		require.Panics(t, func() { ask(t.Context(), t, a, "a") })
		next.panics = false
		require.Equal(t, ok(0).status, ask(t.Context(), t, a, "a").status, "the place is free")
	})
}

func TestAdmissionFailurePassesThrough(t *testing.T) {
	runnertest.InBubble(t, func(t *testing.T) {
		next := &slow{fails: errors.New("the daemon is gone")}
		a := admission.New(next, admission.Limits{MaxRunning: 1, MaxWait: maxWait})
		for range 2 {
			_, err := a.Run(t.Context(), runner.Spec{}, runnertest.NewRecorder(t))
			require.ErrorIs(t, err, next.fails)
		}
	})
}

func TestAdmissionSaysWhenToComeBack(t *testing.T) {
	for _, c := range []struct {
		desc             string
		running, waiting int
		before           []time.Duration // how long each of the runs took that were there
		want             time.Duration
	}{
		{"nothing is known", 2, 4, nil, 10 * time.Second},
		{"nobody waits", 2, 0, []time.Duration{8 * time.Second}, 4 * time.Second},
		{"four wait", 2, 4, []time.Duration{8 * time.Second}, 20 * time.Second},
		{"the average moves by an eighth", 1, 0, []time.Duration{8 * time.Second, 16 * time.Second}, 9 * time.Second},
		{"not at once", 2, 4, []time.Duration{time.Millisecond}, time.Second},
		{"not never", 2, 4, []time.Duration{time.Hour}, time.Minute},
	} {
		t.Run(c.desc, func(t *testing.T) {
			runnertest.InBubble(t, func(t *testing.T) {
				next := &slow{}
				a := admission.New(next, admission.Limits{MaxRunning: c.running, MaxWaiting: c.waiting, MaxWait: time.Hour})
				for _, next.takes = range c.before {
					ask(t.Context(), t, a, "a")
				}
				next.takes = place
				for range c.running + c.waiting {
					go ask(t.Context(), t, a, "a")
					synctest.Wait()
				}
				require.Equal(t, []int{c.running, c.waiting}, []int{a.Running(), a.Waiting()})
				_, err := a.Run(t.Context(), runner.Spec{}, runnertest.NewRecorder(t))
				var failure *runner.Error
				require.ErrorAs(t, err, &failure)
				require.Equal(t, c.want, failure.RetryAfter)
				require.NotEmpty(t, failure.Message)
				time.Sleep(time.Hour)
				synctest.Wait()
				requireEmpty(t, a)
			})
		})
	}
}

func ok(queue time.Duration) answer {
	return answer{at: queue + place, status: runner.StatusOK, queue: queue}
}

// waits is for a run that was not turned away at once; when it ran is looked at
// elsewhere.
var waits = answer{at: -1}

func share(at time.Duration) answer { return answer{at: at, code: runner.CodeShare} }

func full(at time.Duration) answer { return answer{at: at, code: runner.CodeFull} }

// cancelled is for a run that waited, or ran, until then.
func cancelled(at time.Duration) answer { return answer{at: at, status: runner.StatusCancelled} }

// ask makes one run. The queue time of cancelled runs is not looked at.
func ask(ctx context.Context, t *testing.T, r runner.Runner, owner string) answer {
	begun := time.Now()
	out, err := r.Run(ctx, runner.Spec{Owner: owner}, runnertest.NewRecorder(t))
	a := answer{at: time.Since(begun)}
	var failure *runner.Error
	if errors.As(err, &failure) {
		a.code = failure.Code
	}
	if out != nil {
		a.status = out.Status
		if out.Status == runner.StatusOK {
			a.queue = out.Usage.Queue
		}
	}
	return a
}

// slow is a Runner whose runs take as long as place, unless takes is set.
type slow struct {
	panics bool
	fails  error
	takes  time.Duration

	mu                 sync.Mutex
	now, most, started int
	order              []string
}

// Run implements runner.Runner.
func (s *slow) Run(ctx context.Context, spec runner.Spec, _ runner.Sink) (*runner.Outcome, error) {
	if s.panics {
		panic("a bug")
	}
	if s.fails != nil {
		return nil, s.fails
	}
	s.change(func() {
		s.order = append(s.order, spec.ID)
		s.started++
		s.now++
		s.most = max(s.most, s.now)
	})
	defer s.change(func() { s.now-- })
	takes := place
	if s.takes > 0 {
		takes = s.takes
	}
	select {
	case <-time.After(takes):
		return &runner.Outcome{Status: runner.StatusOK}, nil
	case <-ctx.Done():
		return &runner.Outcome{Status: runner.StatusCancelled}, nil
	}
}

// requireEmpty checks that nothing is left where nobody is there.
func requireEmpty(t *testing.T, a *admission.Admission) {
	t.Helper()
	require.Zero(t, a.Running(), "running")
	require.Zero(t, a.Waiting(), "waiting")
	require.Zero(t, admission.Owners(a), "owners")
}

func (s *slow) change(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}
