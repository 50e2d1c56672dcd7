package runner_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/runner"
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
		arrivals            int
		cancelAt            map[int]time.Duration
		want                []answer // by order of arrival
		mostAtOnce, started int
	}{
		{
			desc: "room for all", running: 3, arrivals: 3, mostAtOnce: 3, started: 3,
			want: []answer{ok(0), ok(0), ok(0)},
		}, {
			desc: "first come, first served", running: 1, waiting: 1, arrivals: 2, mostAtOnce: 1, started: 2,
			want: []answer{ok(0), ok(place)},
		}, {
			desc: "no room to wait", running: 1, waiting: 0, arrivals: 2, mostAtOnce: 1, started: 1,
			want: []answer{ok(0), full(0)},
		}, {
			desc: "the queue is full", running: 2, waiting: 1, arrivals: 5, mostAtOnce: 2, started: 3,
			want: []answer{ok(0), ok(0), ok(place), full(0), full(0)},
		}, {
			desc: "waited too long", running: 1, waiting: 3, arrivals: 4, mostAtOnce: 1, started: 2,
			want: []answer{ok(0), ok(place), full(maxWait), full(maxWait)},
		}, {
			desc: "one that waits is called off", running: 1, waiting: 2, arrivals: 3, mostAtOnce: 1, started: 2,
			cancelAt: map[int]time.Duration{1: 3 * time.Second},
			want:     []answer{ok(0), cancelled(3 * time.Second), ok(place)},
		}, {
			desc: "called off while it runs: its place is free at once", running: 1, waiting: 1, arrivals: 2, mostAtOnce: 1, started: 2,
			cancelAt: map[int]time.Duration{0: 3 * time.Second},
			want:     []answer{cancelled(3 * time.Second), ok(3 * time.Second)},
		}, {
			desc: "called off before it came", running: 1, waiting: 1, arrivals: 2, mostAtOnce: 1, started: 1,
			cancelAt: map[int]time.Duration{1: 0},
			want:     []answer{ok(0), cancelled(0)},
		},
	} {
		t.Run(c.desc, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				next := &slow{}
				a := runner.NewAdmission(next, runner.AdmissionLimits{MaxRunning: c.running, MaxWaiting: c.waiting, MaxWait: maxWait})
				got := make([]answer, c.arrivals)
				for i := range c.arrivals {
					ctx := t.Context()
					if after, ok := c.cancelAt[i]; ok {
						limited, cancel := context.WithTimeout(ctx, after)
						defer cancel()
						ctx = limited
					}
					go func() { got[i] = ask(ctx, t, a) }()
					synctest.Wait() // so that they come in order
				}
				time.Sleep(time.Minute)
				synctest.Wait()
				require.Equal(t, c.want, got)
				require.Equal(t, c.mostAtOnce, next.most)
				require.Equal(t, c.started, next.started)
			})
		})
	}
}

func TestAdmissionAfterPanic(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		next := &slow{panics: true}
		a := runner.NewAdmission(next, runner.AdmissionLimits{MaxRunning: 1, MaxWait: maxWait})
		require.Panics(t, func() { ask(t.Context(), t, a) })
		next.panics = false
		require.Equal(t, ok(0).status, ask(t.Context(), t, a).status, "the place is free")
	})
}

func TestAdmissionFailurePassesThrough(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		next := &slow{fails: errors.New("the daemon is gone")}
		a := runner.NewAdmission(next, runner.AdmissionLimits{MaxRunning: 1, MaxWait: maxWait})
		for range 2 {
			_, err := a.Run(t.Context(), runner.Spec{}, runnertest.NewRecorder(t))
			require.ErrorIs(t, err, next.fails)
		}
	})
}

func TestAdmissionSaysWhenToComeBack(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		a := runner.NewAdmission(&slow{}, runner.AdmissionLimits{MaxRunning: 1, MaxWait: maxWait})
		go ask(t.Context(), t, a)
		synctest.Wait()
		_, err := a.Run(t.Context(), runner.Spec{}, runnertest.NewRecorder(t))
		var failure *runner.Error
		require.ErrorAs(t, err, &failure)
		require.Positive(t, failure.RetryAfter)
		require.NotEmpty(t, failure.Message)
		time.Sleep(place)
		synctest.Wait()
	})
}

func ok(queue time.Duration) answer {
	return answer{at: queue + place, status: runner.StatusOK, queue: queue}
}

func full(at time.Duration) answer { return answer{at: at, code: runner.CodeFull} }

// cancelled is for a run that waited, or ran, until then.
func cancelled(at time.Duration) answer { return answer{at: at, status: runner.StatusCancelled} }

// ask makes one run. The queue time of cancelled runs is not looked at.
func ask(ctx context.Context, t *testing.T, r runner.Runner) answer {
	begun := time.Now()
	out, err := r.Run(ctx, runner.Spec{}, runnertest.NewRecorder(t))
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

// slow is a Runner whose runs take as long as place.
type slow struct {
	panics bool
	fails  error

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
	select {
	case <-time.After(place):
		return &runner.Outcome{Status: runner.StatusOK}, nil
	case <-ctx.Done():
		return &runner.Outcome{Status: runner.StatusCancelled}, nil
	}
}

func (s *slow) change(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

func TestAdmissionInOrder(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		next := &slow{}
		a := runner.NewAdmission(next, runner.AdmissionLimits{MaxRunning: 1, MaxWaiting: 10, MaxWait: time.Hour})
		var want []string
		for _, id := range []string{"a", "b", "c", "d", "e", "f"} {
			want = append(want, id)
			go func() { _, _ = a.Run(t.Context(), runner.Spec{ID: id}, runnertest.NewRecorder(t)) }()
			synctest.Wait()
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		require.True(t, slices.Equal(want, next.order), next.order)
	})
}
