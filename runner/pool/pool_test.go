package pool_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/runner"
	"notebox/runner/internal/conversation"
	"notebox/runner/pool"
	"notebox/runner/runnertest"
)

const (
	cellWho   = "which sandbox is this"
	startTime = time.Second // of a sandbox, where a test wants it to take any
	settled   = time.Minute // by then, a pool has what it is to have
)

var (
	modules = []string{"numpy", "pandas"}
	python  = runner.Environment{Name: "python", Image: "python", Kernel: runner.Kernel{WarmUp: modules}}
	rstats  = runner.Environment{Name: "r", Image: "r"}
)

// poolTest is a pool on a Fake, in a bubble.
type poolTest struct {
	t     *testing.T
	host  *runnertest.Fake
	pool  *pool.Pool
	runs  *pool.Pool
	begun time.Time
}

// newPool opens a pool that is empty at the end of the test.
func newPool(t *testing.T, host *runnertest.Fake, o pool.Options) *poolTest {
	host.On(cellWho, func(k *runnertest.Kernel) { k.Print(k.Sandbox + "\n") })
	o.Log, o.Limits = runnertest.Log(t), runnertest.NewSpec().Limits
	p := &poolTest{t: t, host: host, begun: time.Now()}
	p.pool = pool.New(host.Engine("test"), o)
	p.runs = p.pool
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		require.NoError(t, p.pool.Close(ctx))
		require.Empty(t, host.Sandboxes(""), "nothing is left of a pool that is closed")
	})
	return p
}

// stock is what most tests keep ready.
func stock(env runner.Environment, least, most int) []pool.StockOptions {
	return []pool.StockOptions{{Environment: env, Min: least, Max: most}}
}

// starting has each start take that long.
func starting(t *testing.T, d time.Duration) *runnertest.Fake {
	host := runnertest.NewHost(t, nil)
	host.OnStart = func(ctx context.Context, _ runner.Environment) error { return sleep(ctx, d) }
	return host
}

// killing has each sandbox's removal take that long.
func killing(t *testing.T, d time.Duration) *runnertest.Fake {
	host := runnertest.NewHost(t, nil)
	host.OnKill = func(ctx context.Context) error { return sleep(ctx, d) }
	return host
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// pooled is a run that has come to its end.
type pooled struct {
	sandbox string
	out     *runner.Outcome
	err     error
	at      time.Duration // since the test began
	started int           // sandboxes until its code ran
}

// run makes a run of no time.
func (p *poolTest) run(change ...func(*runner.Spec)) pooled {
	return p.runWith(p.t.Context(), change...)
}

// goRun makes a run in the background.
func (p *poolTest) goRun(ctx context.Context, change ...func(*runner.Spec)) <-chan pooled {
	ended := make(chan pooled, 1)
	go func() { ended <- p.runWith(ctx, change...) }()
	return ended
}

func (p *poolTest) runWith(ctx context.Context, change ...func(*runner.Spec)) (r pooled) {
	spec := runnertest.NewSpec(cellWho)
	spec.Environment = python
	for _, c := range change {
		c(&spec)
	}
	sink := runnertest.NewRecorder(p.t)
	sink.OnOutput = func(runner.Event) { r.started = p.host.Started() }
	r.out, r.err = p.runs.Run(ctx, spec, sink)
	sink.Seal()
	r.at = time.Since(p.begun)
	if r.out != nil && r.out.Notebook != nil {
		executed, err := runnertest.ParseExecuted(r.out)
		if err != nil {
			p.t.Error(err)
			return r
		}
		r.sandbox = strings.TrimSpace(executed.Stdout(0))
	}
	return r
}

// lasting has a run take that long.
func lasting(d time.Duration) func(*runner.Spec) {
	return func(s *runner.Spec) {
		s.Notebook, s.Limits.Timeout = runnertest.Notebook(cellWho, runnertest.CellSleep), d
	}
}

// in has a run use another environment.
func in(env runner.Environment) func(*runner.Spec) {
	return func(s *runner.Spec) { s.Environment = env }
}

// waiting has a run wait that long for a sandbox.
func waiting(d time.Duration) func(*runner.Spec) {
	return func(s *runner.Spec) { s.WaitUntil = time.Now().Add(d) }
}

// until lets time go by, up to that long after the test began.
func (p *poolTest) until(d time.Duration) {
	time.Sleep(d - time.Since(p.begun))
	synctest.Wait()
}

func TestPoolTake(t *testing.T) {
	for _, c := range []struct {
		desc   string
		size   int
		change func(*runner.Spec)
		warm   bool
	}{
		{desc: "a warm one", size: 2, warm: true},
		{desc: "no pool"},
		{desc: "another environment", size: 2, change: in(rstats)},
		{desc: "another image of that name", size: 2, change: func(s *runner.Spec) { s.Environment.Image = "new" }},
		{desc: "another memory limit", size: 2, change: func(s *runner.Spec) { s.Limits.Memory /= 2 }},
		{desc: "other cores", size: 2, change: func(s *runner.Spec) { s.Limits.CPUs *= 2 }},
		{desc: "another size of its folder", size: 2, change: func(s *runner.Spec) { s.Limits.DataSize /= 2 }},
		{desc: "limits that are not the container's", size: 2, warm: true, change: func(s *runner.Spec) {
			s.Limits.Timeout, s.Limits.Files, s.Limits.Output = time.Second, 1, 1<<10
		}},
	} {
		t.Run(c.desc, func(t *testing.T) {
			runnertest.InBubble(t, func(t *testing.T) {
				o := pool.Options{FillAtOnce: 2}
				if c.size > 0 {
					o.Stocks = stock(python, c.size, c.size)
				}
				p := newPool(t, starting(t, startTime), o)
				p.until(settled)
				require.Equal(t, c.size, p.pool.Stats().Warm)
				change := c.change
				if change == nil {
					change = func(*runner.Spec) {}
				}
				r := p.run(change)
				require.NoError(t, r.err)
				require.Equal(t, runner.StatusOK, r.out.Status)
				if c.warm {
					require.Zero(t, r.out.Usage.Queue)
					require.Equal(t, c.size, r.started, "no start in between")
					require.Equal(t, modules, p.host.Warmed(r.sandbox))
				} else {
					require.Equal(t, startTime, r.out.Usage.Queue)
					require.Empty(t, p.host.Warmed(r.sandbox), "what the run needs, it imports")
				}
				require.False(t, p.host.Hurried(r.sandbox))
			})
		})
	}
}

// TestPoolLargeOutput has a run that may write more than the pool's own limits say.
func TestPoolLargeOutput(t *testing.T) {
	runnertest.InBubble(t, func(t *testing.T) {
		host := runnertest.NewHost(t, nil)
		host.On("large", func(k *runnertest.Kernel) { k.Print(strings.Repeat("x", 4<<20)) })
		p := newPool(t, host, pool.Options{Stocks: stock(python, 1, 1)})
		p.until(settled)
		r := p.run(func(s *runner.Spec) {
			s.Notebook, s.Limits.Output = runnertest.Notebook("large"), 8<<20
		})
		require.NoError(t, r.err)
		require.Equal(t, runner.StatusOK, r.out.Status)
		require.Len(t, r.sandbox, 4<<20)
	})
}

func TestPoolUsesEachOnce(t *testing.T) {
	runnertest.InBubble(t, func(t *testing.T) {
		p := newPool(t, starting(t, startTime), pool.Options{Stocks: stock(python, 2, 2)})
		used := map[string]bool{}
		for range 10 {
			p.until(time.Since(p.begun) + settled)
			require.Equal(t, pool.Stats{Size: 2, Warm: 2, Sandboxes: 2}, p.pool.Stats(), "each was replaced")
			r := p.run()
			require.NoError(t, r.err)
			require.Zero(t, r.out.Usage.Queue)
			require.False(t, used[r.sandbox], "%s was used before", r.sandbox)
			used[r.sandbox] = true
			p.until(time.Since(p.begun) + time.Second)
			require.NotContains(t, p.host.Sandboxes(""), r.sandbox)
		}
	})
}

// TestPoolClaim has runs that come while the first sandbox of the stock is on its way.
func TestPoolClaim(t *testing.T) {
	const warmUp = 20 * time.Second
	for _, c := range []struct {
		desc    string
		come    time.Duration // when the runs do
		cancel  time.Duration // when the first is called off, if not 0
		queues  []time.Duration
		hurried bool
	}{
		{desc: "it is being started", come: startTime / 2, queues: []time.Duration{startTime / 2}, hurried: true},
		{desc: "it is importing", come: 5 * time.Second, queues: []time.Duration{0}, hurried: true},
		{desc: "it is ready", come: startTime + warmUp, queues: []time.Duration{0}},
		{desc: "the second starts its own", come: startTime / 2, queues: []time.Duration{startTime / 2, startTime}, hurried: true},
		{
			desc: "the one that claimed it is called off", come: startTime / 2, cancel: 3 * startTime / 4,
			queues: []time.Duration{startTime / 4, startTime},
		},
	} {
		t.Run(c.desc, func(t *testing.T) {
			runnertest.InBubble(t, func(t *testing.T) {
				host := starting(t, startTime)
				host.WarmUp = warmUp
				p := newPool(t, host, pool.Options{Stocks: stock(python, 1, 1)})
				p.until(c.come)
				var ended []<-chan pooled
				for i := range c.queues {
					ctx := t.Context()
					if i == 0 && c.cancel > 0 {
						limited, cancel := context.WithTimeout(ctx, c.cancel-c.come)
						defer cancel()
						ctx = limited
					}
					ended = append(ended, p.goRun(ctx))
					synctest.Wait()
				}
				for i, queue := range c.queues {
					r := <-ended[i]
					require.NoError(t, r.err)
					require.Equal(t, queue, r.out.Usage.Queue)
					switch {
					case i == 0 && c.cancel > 0:
						require.Equal(t, runner.StatusCancelled, r.out.Status)
						require.Equal(t, c.cancel, r.at)
					case i == 0:
						require.Equal(t, c.hurried, host.Hurried(r.sandbox))
						require.Equal(t, modules, host.Warmed(r.sandbox))
					default:
						require.Empty(t, host.Warmed(r.sandbox))
					}
				}
				p.until(2 * settled)
				require.Equal(t, pool.Stats{Size: 1, Warm: 1, Sandboxes: 1}, p.pool.Stats())
			})
		})
	}
}

// TestPoolStartsAheadWhatHasStarted: of what is kept by use, none is started ahead before one
// of it has come up. What has packages of a caller may not.
func TestPoolStartsAheadWhatHasStarted(t *testing.T) {
	runnertest.InBubble(t, func(t *testing.T) {
		host, asked := starting(t, startTime), 0
		next := host.OnStart
		host.OnStart = func(ctx context.Context, env runner.Environment) error {
			asked++
			if asked == 1 {
				return errors.New("it does not start")
			}
			return next(ctx, env)
		}
		p := newPool(t, host, pool.Options{Stocks: stock(python, 0, 0), ByUse: 4})
		spec := runnertest.NewSpec(runnertest.CellHello)
		spec.Environment.Name = "other"
		once := func() error {
			_, err := p.runs.Run(t.Context(), spec, runnertest.NewRecorder(t))
			p.until(time.Since(p.begun) + time.Minute)
			return err
		}
		require.Error(t, once())
		require.Equal(t, 1, asked)
		require.NoError(t, once())
		require.Equal(t, 3, asked, "and one ahead")
	})
}

// TestPoolStartsOfThoseWhoLeave: runs come and leave, one after the other, before a sandbox
// is there. One is started for all of them, and who stays has it.
func TestPoolStartsOfThoseWhoLeave(t *testing.T) {
	for _, c := range []struct {
		desc        string
		least, most int
	}{
		{desc: "nothing was being started", most: 1},
		{desc: "one was being started ahead", least: 1, most: 1},
	} {
		t.Run(c.desc, func(t *testing.T) {
			runnertest.InBubble(t, func(t *testing.T) {
				p := newPool(t, starting(t, startTime), pool.Options{Stocks: stock(python, c.least, c.most)})
				for range 5 {
					ctx, cancel := context.WithTimeout(t.Context(), startTime/10)
					require.Equal(t, runner.StatusCancelled, (<-p.goRun(ctx)).out.Status)
					cancel()
				}
				r := p.run()
				require.NoError(t, r.err)
				require.Equal(t, startTime/2, r.out.Usage.Queue)
				require.Equal(t, 1, r.started)
			})
		})
	}
}

func TestPoolDiedWaiting(t *testing.T) {
	for _, c := range []struct {
		desc    string
		noticed bool // before a run comes
	}{
		{desc: "before", noticed: true},
		{desc: "right before it is taken"},
	} {
		t.Run(c.desc, func(t *testing.T) {
			runnertest.InBubble(t, func(t *testing.T) {
				p := newPool(t, starting(t, startTime), pool.Options{Stocks: stock(python, 2, 2)})
				p.until(settled)
				dead := p.host.Sandboxes("")[0]
				p.host.End(dead)
				if c.noticed {
					synctest.Wait()
				}
				r := p.run()
				require.NoError(t, r.err)
				require.Equal(t, runner.StatusOK, r.out.Status)
				require.NotEqual(t, dead, r.sandbox)
				p.until(2 * settled)
				require.Equal(t, pool.Stats{Size: 2, Warm: 2, Sandboxes: 2}, p.pool.Stats())
			})
		})
	}
}

// TestPoolLimit has far more runs than there may be sandboxes.
func TestPoolLimit(t *testing.T) {
	const most = 10
	runnertest.InBubble(t, func(t *testing.T) {
		host := killing(t, time.Second)
		host.OnStart = func(ctx context.Context, _ runner.Environment) error { return sleep(ctx, startTime) }
		p := newPool(t, host, pool.Options{
			Stocks:       append(stock(python, 3, 6), stock(rstats, 2, 4)...),
			MaxSandboxes: most, FillAtOnce: 2,
		})
		var group sync.WaitGroup
		for i := range 200 {
			env := []runner.Environment{python, rstats, {Name: "other", Image: "other"}}[i%3]
			group.Go(func() {
				if r := p.runWith(t.Context(), in(env), lasting(time.Second)); r.err != nil || r.out.Status != runner.StatusTimeout {
					t.Errorf("%+v", r)
				}
			})
		}
		over := make(chan struct{})
		go func() { group.Wait(); close(over) }()
		for running := true; running; {
			select {
			case <-over:
				running = false
			case <-time.After(10 * time.Millisecond):
			}
			requireAddUp(t, p.pool.Stats(), most)
		}
		require.LessOrEqual(t, host.Most(), most)
		p.until(time.Since(p.begun) + settled)
		s := p.pool.Stats()
		require.Equal(t, s.Warm, s.Sandboxes, "what is left is warm: %+v", s)
		require.Equal(t, s.Size, s.Warm)
		require.Len(t, host.Sandboxes(""), s.Sandboxes)
	})
}

func requireAddUp(t *testing.T, s pool.Stats, most int) {
	t.Helper()
	require.Equal(t, s.Sandboxes, s.Warm+s.Starting+s.Running+s.Removing, "%+v", s)
	require.GreaterOrEqual(t, min(s.Size, s.Warm, s.Starting, s.Running, s.Removing), 0, "%+v", s)
	require.LessOrEqual(t, s.Sandboxes, most)
}

func TestPoolRoom(t *testing.T) {
	const held = 10 * time.Second // by the run that has the only place
	for _, c := range []struct {
		desc         string
		wait, cancel time.Duration // of the second run, which comes at 1 s; 0: without end
		at           time.Duration // when it ends
		code         runner.Code
		status       runner.Status
		after        time.Duration // a third run ends, which comes at 5 s
	}{
		{desc: "waits without end", at: held, status: runner.StatusOK, after: held},
		{desc: "waits long enough", wait: 20 * time.Second, at: held, status: runner.StatusOK, after: held},
		{desc: "waits too long", wait: 2 * time.Second, at: 3 * time.Second, code: runner.CodeFull, after: held},
		{desc: "waits not at all", wait: -time.Second, at: time.Second, code: runner.CodeFull, after: held},
		{desc: "is called off", cancel: 2 * time.Second, at: 3 * time.Second, status: runner.StatusCancelled, after: held},
	} {
		t.Run(c.desc, func(t *testing.T) {
			runnertest.InBubble(t, func(t *testing.T) {
				p := newPool(t, runnertest.NewHost(t, nil), pool.Options{MaxSandboxes: 1})
				first := p.goRun(t.Context(), lasting(held))
				p.until(time.Second)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if c.cancel > 0 {
					time.AfterFunc(c.cancel, cancel)
				}
				patience := func(*runner.Spec) {}
				if c.wait != 0 {
					patience = waiting(c.wait)
				}
				second := p.goRun(ctx, patience)
				p.until(5 * time.Second)
				third := p.goRun(t.Context())
				require.NoError(t, (<-first).err)
				r := <-second
				require.Equal(t, c.at, r.at)
				if c.code != "" {
					runnertest.RequireCode(t, c.code, r.err)
					var full *runner.Error
					require.True(t, errors.As(r.err, &full))
					require.Positive(t, full.RetryAfter)
				} else {
					require.NoError(t, r.err)
					require.Equal(t, c.status, r.out.Status)
				}
				r = <-third
				require.NoError(t, r.err)
				require.Less(t, r.at-c.after, time.Second, "nobody waits for one that has given up")
				p.until(settled)
				require.Zero(t, p.pool.Stats())
				require.Equal(t, 1, p.host.Most())
			})
		})
	}
}

// TestPoolCancelledBeforehand has a run that nobody wants take nothing.
func TestPoolCancelledBeforehand(t *testing.T) {
	runnertest.InBubble(t, func(t *testing.T) {
		p := newPool(t, runnertest.NewHost(t, nil), pool.Options{Stocks: stock(python, 1, 1)})
		p.until(settled)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		r := p.runWith(ctx)
		require.NoError(t, r.err)
		require.Equal(t, runner.StatusCancelled, r.out.Status)
		p.until(2 * settled)
		require.Equal(t, 1, p.host.Started(), "no sandbox was spent on it")
	})
}

func TestPoolEvicts(t *testing.T) {
	for _, c := range []struct {
		desc  string
		come  time.Duration // when the run of the other environment does
		queue time.Duration
	}{
		{desc: "one that is warm", come: settled, queue: startTime},
		{desc: "one that is being started, when it is warm", come: startTime / 2, queue: startTime/2 + startTime},
	} {
		t.Run(c.desc, func(t *testing.T) {
			runnertest.InBubble(t, func(t *testing.T) {
				p := newPool(t, starting(t, startTime), pool.Options{
					Stocks: stock(python, 2, 2), MaxSandboxes: 2, FillAtOnce: 2,
				})
				p.until(c.come)
				r := p.run(in(rstats), waiting(settled))
				require.NoError(t, r.err)
				require.Equal(t, c.queue, r.out.Usage.Queue)
				require.Equal(t, 2, p.host.Most())
				p.until(c.come + 2*settled)
				require.Equal(t, pool.Stats{Size: 2, Warm: 2, Sandboxes: 2}, p.pool.Stats(), "filled up again")
			})
		})
	}
}

// TestPoolReplyDoesNotWait has sandboxes whose removal takes its time.
func TestPoolReplyDoesNotWait(t *testing.T) {
	const removal = 5 * time.Second
	removing, starting := pool.Stats{Removing: 1, Sandboxes: 1}, pool.Stats{Starting: 1, Sandboxes: 1}
	for _, c := range []struct {
		desc    string
		program runnertest.Program
		cancel  time.Duration
		took    time.Duration
		failed  string
		left    pool.Stats // when Run has returned
	}{
		{desc: "after a run", left: removing},
		{desc: "called off while it is started", program: runnertest.NeverReady, cancel: 3 * time.Second, took: 3 * time.Second, left: starting},
		{desc: "after a start that failed", program: runnertest.ExitsAtOnce(3), failed: "did not get ready", left: removing},
		// It has not said that its processes are dead: that is waited for.
		{desc: "after one that does not answer", program: runnertest.Hangs, cancel: 3 * time.Second, took: 3*time.Second + conversation.CancelSlack + removal},
	} {
		t.Run(c.desc, func(t *testing.T) {
			runnertest.InBubble(t, func(t *testing.T) {
				host := killing(t, removal)
				if c.program != nil {
					host.Program = c.program
				}
				p := newPool(t, host, pool.Options{MaxSandboxes: 1})
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if c.cancel > 0 {
					time.AfterFunc(c.cancel, cancel)
				}
				r := p.runWith(ctx)
				require.Equal(t, c.took, r.at)
				if c.failed != "" {
					require.ErrorContains(t, r.err, c.failed)
				} else {
					require.NoError(t, r.err)
				}
				require.Equal(t, c.left, p.pool.Stats(), "it counts")
				if c.left.Sandboxes > 0 {
					full := p.run(waiting(removal / 2))
					runnertest.RequireCode(t, runner.CodeFull, full.err)
				}
				p.until(settled + pool.DefaultStartTimeout)
				require.Zero(t, p.pool.Stats())
			})
		})
	}
}

func TestPoolRemovalFails(t *testing.T) {
	for _, c := range []struct {
		desc string
		each time.Duration // attempt
		most int64         // attempts in a minute
	}{
		{desc: "in time", each: pool.KillTimeout, most: 5},
		{desc: "at once", most: 70},
	} {
		t.Run(c.desc, func(t *testing.T) {
			runnertest.InBubble(t, func(t *testing.T) {
				host, attempts := runnertest.NewHost(t, nil), atomic.Int64{}
				begun := time.Now()
				host.OnKill = func(ctx context.Context) error {
					// The second bound is for a loop without a pause.
					if attempts.Add(1) > 1000 || time.Since(begun) > time.Minute {
						return nil
					}
					return errors.Join(sleep(ctx, c.each), errors.New("the daemon is gone"))
				}
				p := newPool(t, host, pool.Options{MaxSandboxes: 1})
				require.NoError(t, p.run().err)
				p.until(50 * time.Second)
				require.Equal(t, pool.Stats{Removing: 1, Sandboxes: 1}, p.pool.Stats(), "it counts as long as it may exist")
				require.LessOrEqual(t, attempts.Load(), c.most)
				p.until(2 * time.Minute)
				require.Zero(t, p.pool.Stats())
			})
		})
	}
}

func TestPoolClose(t *testing.T) {
	const removal = time.Second
	for _, c := range []struct {
		desc string
		at   time.Duration // when it is closed
		run  time.Duration // before, where a run comes then
		fail bool          // each start
		took time.Duration
	}{
		{desc: "while it starts sandboxes", at: startTime / 2},
		{desc: "while they import", at: startTime + time.Second, took: removal},
		{desc: "when it is full", at: settled, took: removal},
		{desc: "while one is left alone", at: settled, run: settled, took: removal},
		{desc: "while one is removed", at: settled, run: settled - removal/2, took: removal},
		{desc: "while starts fail", at: settled, fail: true},
	} {
		t.Run(c.desc, func(t *testing.T) {
			runnertest.InBubble(t, func(t *testing.T) {
				host := killing(t, removal)
				host.WarmUp = 10 * time.Second
				host.OnStart = func(ctx context.Context, _ runner.Environment) error {
					if c.fail {
						return errors.New("no space left on device")
					}
					return sleep(ctx, startTime)
				}
				p := newPool(t, host, pool.Options{Stocks: stock(python, 3, 6), FillAtOnce: 2})
				if c.run > 0 {
					p.until(c.run)
					require.NoError(t, p.run().err)
				}
				time.Sleep(c.at - time.Since(p.begun)) // and in the middle of what goes on then
				begun := time.Now()
				require.NoError(t, p.pool.Close(t.Context()))
				require.LessOrEqual(t, time.Since(begun), c.took)
				require.Empty(t, host.Sandboxes(""))
				require.Zero(t, p.pool.Stats().Sandboxes)
				started := host.Started()
				p.until(5 * settled)
				require.Equal(t, started, host.Started(), "nothing is started any more")
			})
		})
	}
}

func TestPoolCloseIsBounded(t *testing.T) {
	runnertest.InBubble(t, func(t *testing.T) {
		p := newPool(t, killing(t, 10*time.Second), pool.Options{Stocks: stock(python, 1, 1)})
		p.until(settled)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, p.pool.Close(ctx), context.DeadlineExceeded)
		require.Equal(t, settled+time.Second, time.Since(p.begun))
	})
}

// TestFailing: starts that all fail are known, until one does not.
func TestFailing(t *testing.T) {
	broken := errors.New("no inotify instances")
	withPackages := rstats
	withPackages.Kernel.Packages = true
	for _, c := range []struct {
		desc    string
		starts  []error // of r's sandboxes, one after the other
		env     runner.Environment
		failing bool
	}{
		{desc: "none", env: rstats},
		{desc: "two may be an accident", starts: []error{broken, broken}, env: rstats},
		{desc: "three are not", starts: []error{broken, broken, broken}, env: rstats, failing: true},
		{desc: "a good one between", starts: []error{broken, broken, nil, broken, broken}, env: rstats},
		{desc: "a good one at last", starts: []error{broken, broken, broken, broken, nil}, env: rstats},
		{desc: "packages of a caller's", starts: []error{broken, broken, broken}, env: withPackages},
		{desc: "another environment", starts: []error{broken, broken, broken}, env: python},
	} {
		t.Run(c.desc, func(t *testing.T) {
			runnertest.InBubble(t, func(t *testing.T) {
				host := runnertest.NewHost(t, nil)
				next := 0
				host.OnStart = func(context.Context, runner.Environment) error {
					next++
					return c.starts[next-1]
				}
				p := newPool(t, host, pool.Options{})
				spec := runnertest.NewSpec(runnertest.CellHello)
				spec.Environment = c.env
				for _, want := range c.starts {
					_, err := p.runs.Run(t.Context(), spec, runnertest.NewRecorder(t))
					if want == nil {
						require.NoError(t, err)
						continue
					}
					runnertest.RequireCode(t, runner.CodeUnavailable, err)
					require.ErrorIs(t, err, broken)
				}
				err := p.pool.Failing(rstats.Name)
				if !c.failing {
					require.NoError(t, err)
					return
				}
				require.ErrorIs(t, err, broken)
			})
		})
	}
}
