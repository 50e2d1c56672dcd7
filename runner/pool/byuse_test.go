package pool_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/runner"
	"notebox/runner/pool"
	"notebox/runner/runnertest"
)

// TestByUse is about environments that nobody has given a stock.
func TestByUse(t *testing.T) {
	julia := runner.Environment{Name: "julia", Image: "julia"}
	layer := runner.Environment{Name: "python", Image: "layer of python"}
	for _, c := range []struct {
		desc string
		room int
		do   func(*testing.T, *poolTest)
		want int // of all that wait at the end
	}{
		{"after the first run one waits for the next", 2, func(t *testing.T, p *poolTest) {
			p.run(in(rstats))
			time.Sleep(settled)
			before := p.host.Started()
			require.Equal(t, before, p.run(in(rstats)).started, "it was warm")
		}, 1},
		{"none where there is no room for them", 0, func(_ *testing.T, p *poolTest) {
			p.run(in(rstats))
			p.run(in(rstats))
		}, 0},
		{"the longest unused one gives way", 2, func(t *testing.T, p *poolTest) {
			for _, env := range []runner.Environment{rstats, julia, layer} {
				p.run(in(env))
				time.Sleep(settled)
			}
			before := p.host.Started()
			require.Equal(t, before, p.run(in(julia)).started, "still warm")
			require.Greater(t, p.run(in(rstats)).started, before, "it has given way to the third")
		}, 2},
		{"an image of its own is another stock", 2, func(t *testing.T, p *poolTest) {
			p.run(in(layer))
			time.Sleep(settled)
			before := p.host.Started()
			require.Greater(t, p.run(in(runner.Environment{Name: "python", Image: "python"})).started, before)
		}, 2},
		{"so is another kernel in the same image", 2, func(t *testing.T, p *poolTest) {
			p.run(in(rstats))
			time.Sleep(settled)
			before := p.host.Started()
			other := rstats
			other.Kernel = runner.Kernel{Name: "ir"}
			require.Greater(t, p.run(in(other)).started, before)
		}, 2},
		{"what nobody asks for any more ends", 2, func(_ *testing.T, p *poolTest) {
			p.run(in(rstats))
			time.Sleep(11 * time.Minute)
		}, 0},
		{"what is asked for now and then stays", 2, func(t *testing.T, p *poolTest) {
			p.run(in(rstats))
			for range 5 {
				time.Sleep(9 * time.Minute)
				before := p.host.Started()
				require.Equal(t, before, p.run(in(rstats)).started)
			}
		}, 1},
		{"runs with limits of their own are none", 2, func(_ *testing.T, p *poolTest) {
			p.run(in(rstats), func(s *runner.Spec) { s.Limits.Memory *= 2 })
		}, 0},
		{"of an image that is to go, nothing waits", 2, func(_ *testing.T, p *poolTest) {
			p.run(in(rstats))
			time.Sleep(settled)
			p.pool.ForgetImage(rstats.Image)
		}, 0},
		{"one that ends while it waits is not replaced", 2, func(t *testing.T, p *poolTest) {
			p.run(in(rstats))
			time.Sleep(settled)
			p.host.End(p.host.Sandboxes("")[0])
			time.Sleep(2 * time.Minute)
			require.Zero(t, p.pool.Stats().Sandboxes)
		}, 0},
		{"until the next run", 2, func(_ *testing.T, p *poolTest) {
			p.run(in(rstats))
			time.Sleep(settled)
			p.host.End(p.host.Sandboxes("")[0])
			time.Sleep(settled)
			p.run(in(rstats))
		}, 1},
		{"nor what was being started for it", 2, func(_ *testing.T, p *poolTest) {
			p.run(in(rstats))
			time.Sleep(300 * time.Millisecond) // the start ahead has begun
			p.pool.ForgetImage(rstats.Image)
		}, 0},
	} {
		t.Run(c.desc, func(t *testing.T) {
			runnertest.InBubble(t, func(t *testing.T) {
				host := starting(t, startTime)
				p := newPool(t, host, pool.Options{ByUse: c.room})
				c.do(t, p)
				time.Sleep(settled)
				require.Equal(t, c.want, p.pool.Stats().Warm)
				require.LessOrEqual(t, p.pool.Stats().Size, c.room)
			})
		})
	}
}

// TestLimitsOf has sandboxes wait with the limits of their environment.
func TestLimitsOf(t *testing.T) {
	runnertest.InBubble(t, func(t *testing.T) {
		host := starting(t, startTime)
		more := func(l runner.Limits) runner.Limits { l.Memory *= 2; return l }
		p := newPool(t, host, pool.Options{
			Stocks: stock(rstats, 1, 1),
			LimitsOf: func(name string) runner.Limits {
				require.Equal(t, "r", name)
				return more(runnertest.NewSpec().Limits)
			},
		})
		time.Sleep(settled)
		before := p.host.Started()
		require.Greater(t, p.run(in(rstats)).started, before, "it has less than it needs")
		time.Sleep(settled)
		before = p.host.Started()
		require.Equal(t, before, p.run(in(rstats), func(s *runner.Spec) { s.Limits = more(s.Limits) }).started)
	})
}
