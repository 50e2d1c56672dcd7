package pool_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/runner"
	"notebox/runner/internal/frame"
	"notebox/runner/pool"
	"notebox/runner/runnertest"
)

// starts are when an engine was asked to start something.
type starts struct {
	mu    sync.Mutex
	begun time.Time
	at    map[string][]time.Duration // by environment
	now   int
	most  int // at one time
}

// noting has each start take that long, and keeps when it began.
func noting(t *testing.T, d time.Duration) (*runnertest.Fake, *starts) {
	host := runnertest.NewHost(t, nil)
	s := &starts{begun: time.Now(), at: map[string][]time.Duration{}}
	host.OnStart = func(ctx context.Context, env runner.Environment) error {
		s.enter(env.Name)
		defer s.leave()
		return sleep(ctx, d)
	}
	return host, s
}

func (s *starts) enter(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at[name] = append(s.at[name], time.Since(s.begun))
	s.now++
	s.most = max(s.most, s.now)
}

func (s *starts) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now--
}

// forget begins to count anew.
func (s *starts) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at, s.most = map[string][]time.Duration{}, s.now
}

func (s *starts) of(env runner.Environment) []time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.at[env.Name])
}

func (s *starts) atOnce() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.most
}

func TestPoolGrowsAndShrinks(t *testing.T) {
	for _, c := range []struct {
		desc        string
		least, most int
		runs        int // at once
		size        int // after them
	}{
		{desc: "nobody comes", least: 1, most: 3, size: 1},
		{desc: "all find one", least: 2, most: 4, runs: 2, size: 2},
		{desc: "one finds none", least: 2, most: 4, runs: 3, size: 3},
		{desc: "many find none", least: 1, most: 3, runs: 9, size: 3},
		{desc: "it is not to grow", least: 2, most: 2, runs: 9, size: 2},
		{desc: "no ceiling is as the floor", least: 2, runs: 9, size: 2},
		{desc: "from nothing", most: 2, runs: 1, size: 1},
	} {
		t.Run(c.desc, func(t *testing.T) {
			runnertest.InBubble(t, func(t *testing.T) {
				p := newPool(t, starting(t, startTime), pool.Options{Stocks: stock(python, c.least, c.most), FillAtOnce: 2})
				p.until(settled)
				var ended []<-chan pooled
				for range c.runs {
					ended = append(ended, p.goRun(t.Context(), lasting(5*time.Second)))
				}
				for _, e := range ended {
					require.NoError(t, (<-e).err)
				}
				full := pool.Stats{Size: c.size, Warm: c.size, Sandboxes: c.size}
				p.until(settled + 30*time.Second)
				require.Equal(t, full, p.pool.Stats())
				p.until(settled + 2*time.Minute)
				require.Equal(t, full, p.pool.Stats(), "bursts come again")
				p.until(settled + 10*time.Minute)
				require.Equal(t, pool.Stats{Size: c.least, Warm: c.least, Sandboxes: c.least}, p.pool.Stats())
			})
		})
	}
}

func TestPoolRenews(t *testing.T) {
	const age = pool.MaxAge
	for _, c := range []struct {
		desc    string
		start   time.Duration
		fail    bool // starts do, but the first ones
		renewed bool
	}{
		{desc: "starts are quick", start: startTime, renewed: true},
		{desc: "starts are slow", start: 25 * time.Second, renewed: true},
		{desc: "starts fail", start: startTime, fail: true},
	} {
		t.Run(c.desc, func(t *testing.T) {
			runnertest.InBubble(t, func(t *testing.T) {
				host := runnertest.NewHost(t, nil)
				var fail atomic.Bool
				host.OnStart = func(ctx context.Context, _ runner.Environment) error {
					if fail.Load() {
						return errors.New("no space left on device")
					}
					return sleep(ctx, c.start)
				}
				p := newPool(t, host, pool.Options{Stocks: stock(python, 3, 3), FillAtOnce: 3})
				p.until(settled)
				fail.Store(c.fail)
				first := host.Sandboxes("")
				require.Len(t, first, 3)
				p.until(age)
				require.Equal(t, first, host.Sandboxes(""), "not before their time")
				for at := age; at < 2*age; at += time.Second {
					p.until(at)
					require.GreaterOrEqual(t, p.pool.Stats().Warm, 2, "one at a time, at %s", at)
				}
				if c.renewed {
					for _, id := range first {
						require.NotContains(t, host.Sandboxes(""), id)
					}
				}
				r := p.run()
				require.NoError(t, r.err)
				require.Zero(t, r.out.Usage.Queue)
			})
		})
	}
}

func TestPoolBacksOff(t *testing.T) {
	for _, c := range []struct {
		desc   string
		atOnce int
	}{
		{desc: "one at a time", atOnce: 1},
		{desc: "three at a time", atOnce: 3},
	} {
		t.Run(c.desc, func(t *testing.T) {
			runnertest.InBubble(t, func(t *testing.T) {
				host, s := noting(t, 0)
				note := host.OnStart
				var failing atomic.Bool
				failing.Store(true)
				host.OnStart = func(ctx context.Context, env runner.Environment) error {
					if err := note(ctx, env); err != nil || failing.Load() {
						return errors.Join(err, errors.New("no space left on device"))
					}
					return nil
				}
				p := newPool(t, host, pool.Options{Stocks: stock(python, c.atOnce, c.atOnce), FillAtOnce: c.atOnce})
				p.until(130 * time.Second)
				var want []time.Duration
				for _, at := range []time.Duration{0, 1, 3, 7, 15, 31, 61, 91, 121} {
					want = append(want, slices.Repeat([]time.Duration{at * time.Second}, c.atOnce)...)
				}
				require.Equal(t, want, s.of(python))
				require.Equal(t, pool.Stats{Size: c.atOnce}, p.pool.Stats())

				failing.Store(false)
				p.until(130*time.Second + 30*time.Second)
				require.Equal(t, pool.Stats{Size: c.atOnce, Warm: c.atOnce, Sandboxes: c.atOnce}, p.pool.Stats())

				p.until(200 * time.Second) // it has waited for long: no reason to back off
				s.forget()
				failing.Store(true)
				host.End(host.Sandboxes("")[0])
				p.until(202 * time.Second)
				require.GreaterOrEqual(t, len(s.of(python)), 2, "the pauses begin anew")
			})
		})
	}
}

// TestPoolRunsWhileStartsFail has a run claim a start that fails, and one come
// while the pool waits before its next one.
func TestPoolRunsWhileStartsFail(t *testing.T) {
	for _, c := range []struct {
		desc  string
		come  time.Duration
		queue time.Duration
	}{
		{desc: "claims one that fails", come: startTime / 2, queue: startTime/2 + startTime},
		{desc: "comes in the pause", come: startTime + startTime/2, queue: startTime},
	} {
		t.Run(c.desc, func(t *testing.T) {
			runnertest.InBubble(t, func(t *testing.T) {
				host, s := noting(t, startTime)
				note := host.OnStart
				host.OnStart = func(ctx context.Context, env runner.Environment) error {
					err := note(ctx, env)
					if len(s.of(python)) == 1 {
						err = errors.New("no space left on device")
					}
					return err
				}
				p := newPool(t, host, pool.Options{Stocks: stock(python, 1, 1)})
				p.until(c.come)
				r := p.run()
				require.NoError(t, r.err)
				require.Equal(t, runner.StatusOK, r.out.Status)
				require.Equal(t, c.queue, r.out.Usage.Queue)
				p.until(settled)
				require.Equal(t, pool.Stats{Size: 1, Warm: 1, Sandboxes: 1}, p.pool.Stats())
			})
		})
	}
}

// TestPoolFillsOnceARunHasStarted: a start for a run that succeeds ends the pause after
// those ahead of time that failed.
func TestPoolFillsOnceARunHasStarted(t *testing.T) {
	runnertest.InBubble(t, func(t *testing.T) {
		host := starting(t, time.Second)
		start := host.OnStart
		var failing atomic.Bool
		failing.Store(true)
		host.OnStart = func(ctx context.Context, env runner.Environment) error {
			if failing.Load() {
				return errors.New("the daemon is gone")
			}
			return start(ctx, env)
		}
		p := newPool(t, host, pool.Options{Stocks: stock(python, 1, 1)})
		p.until(20 * time.Second) // after 1, 2, 4 and 8 seconds, and before 16 are over
		require.Zero(t, p.pool.Stats().Warm)
		failing.Store(false)
		require.NoError(t, p.run().err)
		p.until(25 * time.Second)
		require.Equal(t, pool.Stats{Size: 1, Warm: 1, Sandboxes: 1}, p.pool.Stats())
	})
}

// TestPoolSandboxesThatDoNotLast has each sandbox end as soon as it is ready.
func TestPoolSandboxesThatDoNotLast(t *testing.T) {
	runnertest.InBubble(t, func(t *testing.T) {
		host := starting(t, 100*time.Millisecond)
		host.Program = func(s runnertest.Stream) int {
			_, _, _ = frame.Read(s, 0) // warm
			_ = frame.WriteJSON(s, frame.KindReady, frame.Ready{Version: frame.Version})
			return 137
		}
		p := newPool(t, host, pool.Options{Stocks: stock(python, 1, 1)})
		p.until(time.Minute)
		require.LessOrEqual(t, host.Started(), 60, "they do not take the cores from runs")
		require.GreaterOrEqual(t, host.Started(), 2)
	})
}

func TestPoolFillsAtOnce(t *testing.T) {
	for _, c := range []struct {
		desc    string
		limit   int
		running bool
		atOnce  int
		took    time.Duration // until six are warm
	}{
		{desc: "nothing runs", limit: 3, atOnce: 3, took: 2 * startTime},
		{desc: "nothing runs, no limit given", atOnce: 1, took: 6 * startTime},
		{desc: "something runs", limit: 3, running: true, atOnce: 1, took: 6 * startTime},
	} {
		t.Run(c.desc, func(t *testing.T) {
			runnertest.InBubble(t, func(t *testing.T) {
				host, s := noting(t, startTime)
				p := newPool(t, host, pool.Options{Stocks: stock(python, 6, 6), FillAtOnce: c.limit})
				p.until(settled)
				if c.running {
					other := p.goRun(t.Context(), in(rstats), lasting(2*settled))
					defer func() { require.NoError(t, (<-other).err) }()
					p.until(settled + 10*time.Second)
				}
				s.forget()
				begun := time.Since(p.begun)
				for _, id := range host.Sandboxes("") {
					if len(host.Warmed(id)) > 0 {
						host.End(id)
					}
				}
				p.until(begun + c.took - time.Millisecond)
				require.Less(t, p.pool.Stats().Warm, 6)
				// Those that all ended at one moment may be noticed in any order.
				p.until(begun + c.took + time.Millisecond)
				require.Equal(t, 6, p.pool.Stats().Warm)
				require.Equal(t, c.atOnce, s.atOnce())
			})
		})
	}
}

// TestPoolRunsGoFirst has something to fill while a run is about to begin.
func TestPoolRunsGoFirst(t *testing.T) {
	const start = 10 * time.Second
	const alone = 100 * time.Millisecond // what a run has the cores for itself, at least
	for _, c := range []struct {
		desc  string
		come  time.Duration
		env   runner.Environment
		end   bool          // one that waits ends 1 s later
		begin time.Duration // of the run's code
	}{
		{desc: "it takes a warm one", come: settled, env: python, begin: settled},
		{desc: "it claims one that is started", come: start / 2, env: python, begin: start},
		{desc: "it waits for a start of its own", come: settled, env: rstats, end: true, begin: settled + start},
	} {
		t.Run(c.desc, func(t *testing.T) {
			runnertest.InBubble(t, func(t *testing.T) {
				host, s := noting(t, start)
				p := newPool(t, host, pool.Options{Stocks: stock(python, 1, 1), FillAtOnce: 2})
				p.until(c.come)
				s.forget()
				ended := p.goRun(t.Context(), in(c.env), lasting(5*time.Second))
				if c.end {
					p.until(c.come + time.Second)
					host.End(host.Sandboxes("")[0])
				}
				r := <-ended
				require.NoError(t, r.err)
				require.Equal(t, c.begin-c.come, r.out.Usage.Queue)
				p.until(c.come + settled)
				at := s.of(python)
				require.NotEmpty(t, at)
				require.GreaterOrEqual(t, at[0], c.begin+alone)
				require.Less(t, at[0], c.begin+5*time.Second, "but it does not wait for the run's end")
			})
		})
	}
}
