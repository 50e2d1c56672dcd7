package server

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/runner"
	"notebox/runner/pool"
)

// probing is a service whose probes a test answers.
type probing struct {
	*service
	now     atomic.Int64 // seconds
	stats   atomic.Pointer[pool.Stats]
	probes  atomic.Int64
	outcome atomic.Pointer[runFunc]
	starts  atomic.Pointer[error] // why they fail
	counted probeCount
}

// probeCount is an Observer that counts probes alone.
type probeCount struct {
	unobserved
	mu       sync.Mutex
	ok, fail int
}

func (p *probeCount) Probed(ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if ok {
		p.ok++
	} else {
		p.fail++
	}
}

func (p *probeCount) counts() [2]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return [2]int{p.ok, p.fail}
}

func newProbing(t *testing.T) *probing {
	p := new(probing)
	p.stats.Store(&pool.Stats{Warm: 1})
	p.service = newService(t, func(c *Config) {
		c.Now = func() time.Time { return time.Unix(1_800_000_000+p.now.Load(), 0) }
		c.Ready = func(context.Context) error { return nil }
		c.Pool = func() pool.Stats { return *p.stats.Load() }
		c.Observer = &p.counted
		c.Starts = func() error {
			if why := p.starts.Load(); why != nil {
				return *why
			}
			return nil
		}
		c.Prober = runFunc(func(ctx context.Context, spec runner.Spec, events runner.Sink) (*runner.Outcome, error) {
			p.probes.Add(1)
			return (*p.outcome.Load())(ctx, spec, events)
		})
	})
	p.answer(endsWith(runner.StatusOK))
	return p
}

func (p *probing) answer(f runFunc) { p.outcome.Store(&f) }

func endsWith(status runner.Status) runFunc {
	return func(_ context.Context, spec runner.Spec, _ runner.Sink) (*runner.Outcome, error) {
		return executed(spec, status), nil
	}
}

func failed(err error) runFunc {
	return func(context.Context, runner.Spec, runner.Sink) (*runner.Outcome, error) { return nil, err }
}

// readyAfter asks /readyz some seconds later.
func (p *probing) readyAfter(seconds int64) int {
	p.now.Add(seconds)
	return p.get("/readyz").StatusCode
}

// TestReadyzProvesItself by a run of its own, as seldom as that will do.
func TestReadyzProvesItself(t *testing.T) {
	p := newProbing(t)
	var spec runner.Spec
	p.answer(func(ctx context.Context, s runner.Spec, events runner.Sink) (*runner.Outcome, error) {
		spec = s
		return endsWith(runner.StatusOK)(ctx, s, events)
	})
	require.Equal(t, 200, p.readyAfter(0))
	require.EqualValues(t, 1, p.probes.Load())
	require.Equal(t, []string{"1+1"}, sources(t, spec))
	require.Equal(t, python.Image, spec.Environment.Image)
	require.False(t, spec.WaitUntil.After(time.Now()), "it does not wait for room")
	require.Empty(t, p.started(), "it is nobody's run, and needs no place")

	for range 3 {
		require.Equal(t, 200, p.readyAfter(3))
	}
	require.EqualValues(t, 1, p.probes.Load(), "at most every 10 s")
	require.Equal(t, 200, p.readyAfter(3))
	require.EqualValues(t, 2, p.probes.Load())

	p.now.Add(9)
	p.replied(p.postJSON(`{"code":"x"}`))
	require.Equal(t, 200, p.readyAfter(9))
	require.EqualValues(t, 2, p.probes.Load(), "a good run of a caller's is as good")
	require.Equal(t, [2]int{2, 0}, p.counted.counts())
}

// TestReadyzIsRed when the run is not good, and green again when one is.
func TestReadyzIsRed(t *testing.T) {
	for _, c := range []struct {
		desc  string
		probe runFunc
	}{
		{"a failure of ours", failed(errors.New("attach: /var/run/docker.sock: gone"))},
		{"sandboxes do not start", failed(&runner.Error{Code: runner.CodeUnavailable, Message: "starting a sandbox took too long"})},
		{"a kernel that dies", endsWith(runner.StatusKilled)},
		{"a sandbox that hangs", endsWith(runner.StatusTimeout)},
		{"no memory", endsWith(runner.StatusOutOfMemory)},
		{"1+1 raises", endsWith(runner.StatusError)},
	} {
		t.Run(c.desc, func(t *testing.T) {
			p := newProbing(t)
			p.answer(c.probe)
			require.Equal(t, 503, p.readyAfter(0))
			require.NotContains(t, string(p.get("/readyz").body), "docker.sock")
			require.Equal(t, 503, p.readyAfter(5), "until there is better news")
			p.replied(p.postJSON(`{"code":"x"}`))
			require.Equal(t, 200, p.readyAfter(3), "such as a caller's good run")
			require.Equal(t, 503, p.readyAfter(11))
			p.answer(endsWith(runner.StatusOK))
			require.Equal(t, 200, p.readyAfter(11))
			require.Equal(t, [2]int{1, 2}, p.counted.counts())
		})
	}
}

// TestReadyzIsRedWhileStartsFail, whatever the sandboxes do that are there already.
func TestReadyzIsRedWhileStartsFail(t *testing.T) {
	for _, c := range []struct {
		desc  string
		stats pool.Stats
		runs  bool // of callers end well
	}{
		{desc: "one is warm, and good", stats: pool.Stats{Warm: 1}},
		{desc: "others are being started", stats: pool.Stats{Starting: 2}},
		{desc: "runs end well, as in sessions", stats: pool.Stats{Sessions: 1}, runs: true},
	} {
		t.Run(c.desc, func(t *testing.T) {
			p := newProbing(t)
			p.stats.Store(&c.stats)
			ready := func() int {
				if c.runs {
					p.now.Add(1)
					p.replied(p.postJSON(`{"code":"x"}`))
				}
				return p.readyAfter(3)
			}
			require.Equal(t, 200, ready())
			why := error(&runner.Error{Code: runner.CodeUnavailable, Message: "a sandbox could not be started", Err: errors.New("no inotify instances")})
			p.starts.Store(&why)
			require.Equal(t, 503, ready())
			a := p.get("/readyz")
			require.Contains(t, string(a.body), "a sandbox could not be started")
			require.NotContains(t, string(a.body), "inotify")
			require.Equal(t, "2", a.Header.Get("Retry-After"))
			p.starts.Store(nil)
			require.Equal(t, 200, ready())
		})
	}
}

// TestReadyzOfABusyService: a service that is full is ready, and is not made busier.
func TestReadyzOfABusyService(t *testing.T) {
	for _, c := range []struct {
		desc   string
		stats  pool.Stats
		probe  runFunc
		probes int64
	}{
		{"all run", pool.Stats{Running: 4, Sandboxes: 4}, failed(errors.New("never asked")), 0},
		{"those that wait for runs are being started", pool.Stats{Starting: 2, Sandboxes: 2}, failed(errors.New("never asked")), 0},
		{"one is warm, and then somebody else's", pool.Stats{Warm: 1}, failed(&runner.Error{Code: runner.CodeFull, Message: "no room"}), 1},
	} {
		t.Run(c.desc, func(t *testing.T) {
			p := newProbing(t)
			p.stats.Store(&c.stats)
			p.answer(c.probe)
			require.Equal(t, 200, p.readyAfter(0))
			require.Equal(t, c.probes, p.probes.Load())
			require.Equal(t, [2]int{}, p.counted.counts(), "which says nothing")
		})
	}
	p := newProbing(t)
	p.answer(endsWith(runner.StatusKilled))
	require.Equal(t, 503, p.readyAfter(0))
	p.stats.Store(&pool.Stats{Starting: 1})
	require.Equal(t, 503, p.readyAfter(20), "being busy is no better news either")
}

// TestReadyzDoesNotWaitForever for its run, has one at a time, and takes what a late
// one says.
func TestReadyzDoesNotWaitForever(t *testing.T) {
	t.Parallel()
	p := newProbing(t)
	release := make(chan struct{})
	p.answer(func(ctx context.Context, spec runner.Spec, events runner.Sink) (*runner.Outcome, error) {
		<-release
		return endsWith(runner.StatusOK)(ctx, spec, events)
	})
	require.Equal(t, 503, p.readyAfter(0))
	go func() { time.Sleep(100 * time.Millisecond); close(release) }()
	require.Equal(t, 200, p.get("/v1/environments").StatusCode)
	require.Eventually(t, func() bool { return p.counted.counts() == [2]int{1, 0} }, 20*time.Second, time.Millisecond)
	require.Equal(t, 200, p.readyAfter(3))
	require.EqualValues(t, 1, p.probes.Load())
}
