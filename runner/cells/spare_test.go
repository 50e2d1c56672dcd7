package cells_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/environments/supervisor/wire"
	"notebox/runner"
	"notebox/runner/cells"
	"notebox/runner/internal/conversation"
	"notebox/runner/pool"
	"notebox/runner/runnertest"
)

// settled is long enough for the spare worker to be up.
const settled = 10 * time.Second

func fakeEnvironment(owner string) runner.Environment {
	return runner.Environment{Name: "fake", Image: "fake", Owner: owner}
}

// startCell starts one, and returns its worker and how long that took.
func startCell(t *testing.T, e *cells.Engine, owner string) (s runner.Cell, took time.Duration) {
	begun := time.Now()
	started, err := e.Start(t.Context(), fakeEnvironment(owner), runner.DefaultLimits())
	require.NoError(t, err)
	return started.(runner.Cell), time.Since(begun)
}

// TestSpare: the next worker is up before the one in use is missed.
func TestSpare(t *testing.T) {
	onFake(t, cells.Options{Runs: 3}, func(t *testing.T, host *fakeHost, e *cells.Engine) {
		first, took := startCell(t, e, "")
		require.Equal(t, workerTakes, took)
		time.Sleep(settled)
		require.Equal(t, 1, e.Stats().Workers[cells.WorkerSpare])

		host.kill(1)
		time.Sleep(settled) // nobody comes for a while
		_, err := first.Read(make([]byte, 1))
		require.ErrorIs(t, err, runner.ErrWithOthers)
		runnertest.RequireCode(t, runner.CodeUnavailable, err)
		require.Equal(t, 1, e.Stats().Lost)
		next, took := startCell(t, e, "")
		require.Zero(t, took)
		require.Equal(t, "worker-2", next.Worker())
		time.Sleep(settled)

		for range 2 {
			_, _ = startCell(t, e, "")
		}
		renewed, took := startCell(t, e, "")
		require.Zero(t, took, "a worker that has served its time makes way at once")
		require.Equal(t, "worker-3", renewed.Worker())
		require.Equal(t, 1, e.Stats().Workers[cells.WorkerEnding], "with its cells")
		time.Sleep(settled)
		started, _ := host.counts()
		require.Equal(t, 4, started)
	})
}

// TestAhead: who asks first for a language finds its worker there, and the next one too.
func TestAhead(t *testing.T) {
	onFake(t, cells.Options{}, func(t *testing.T, host *fakeHost, e *cells.Engine) {
		other := fakeEnvironment("")
		other.Image = "other"
		e.Ahead([]runner.Environment{fakeEnvironment(""), other})
		time.Sleep(time.Hour) // longer than a worker stays that nobody uses
		started, alive := host.counts()
		require.Equal(t, 2, started)
		require.Len(t, alive, 2)
		for range 2 {
			_, took := startCell(t, e, "")
			require.Zero(t, took)
			time.Sleep(settled)
		}
		host.kill(2) // which is the other language's
		time.Sleep(settled)
		started, alive = host.counts()
		require.Len(t, alive, 3, "a worker with cells, and one of each that waits: %d were started", started)
	})
}

// TestAFullWorkerMakesWay: if cells have all its ids, the next one is in another worker.
func TestAFullWorkerMakesWay(t *testing.T) {
	onFake(t, cells.Options{}, func(t *testing.T, host *fakeHost, e *cells.Engine) {
		const each = 3
		host.users = wire.ZygoteIDs + 2*each
		for i := range 2 * each {
			s, _ := startCell(t, e, "")
			require.Equal(t, fmt.Sprintf("worker-%d", 1+i/each), s.Worker())
		}
	})
}

// TestABusyHost: a worker may take longer to come up than it bears silence.
func TestABusyHost(t *testing.T) {
	onFake(t, cells.Options{}, func(t *testing.T, host *fakeHost, e *cells.Engine) {
		host.imports = wire.Silence + wire.PingInterval
		_, took := startCell(t, e, "")
		require.Equal(t, workerTakes+host.imports, took)
	})
}

// TestAWorkerStandsStill: one that answers pings, and then says nothing, makes way for its spare;
// not if the host says nothing either.
func TestAWorkerStandsStill(t *testing.T) {
	onFake(t, cells.Options{}, func(t *testing.T, host *fakeHost, e *cells.Engine) {
		first, _ := startCell(t, e, "")
		time.Sleep(time.Hour)
		require.Zero(t, e.Stats().Lost)
		host.away.Store(true)
		host.still.Store(1)
		time.Sleep(time.Hour)
		require.Zero(t, e.Stats().Lost)
		host.away.Store(false)
		begun := time.Now()
		_, err := first.Read(make([]byte, 1))
		require.ErrorContains(t, err, "it has said nothing for 10s")
		require.ErrorAs(t, err, new(*runner.Error))
		require.LessOrEqual(t, time.Since(begun), wire.StandsStill+wire.PingInterval)
		require.Equal(t, 1, e.Stats().Lost)
		next, took := startCell(t, e, "")
		require.Zero(t, took)
		require.Equal(t, "worker-2", next.Worker())
	})
}

// TestAWorkerThatReadsNothing: also who waits to write to it goes on, and nobody else waits. Not in
// a bubble, whose time stands still while somebody waits for a lock.
func TestAWorkerThatReadsNothing(t *testing.T) {
	t.Parallel()
	host := &fakeHost{Fake: runnertest.NewHost(t, nil)}
	e := cells.New(host, cells.Options{Modules: func(string) []string { return nil }, Log: runnertest.Log(t), SpareAfter: time.Nanosecond})
	_, _ = startCell(t, e, "")
	time.Sleep(workerTakes + time.Second)
	host.deaf.Store(true)
	host.still.Store(1)
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() { _, _ = e.Start(t.Context(), fakeEnvironment(""), runner.DefaultLimits()) })
	}
	all.Go(func() { _ = e.Stats() })
	begun := time.Now()
	all.Wait()
	require.Less(t, time.Since(begun), wire.StandsStill+time.Minute)
	require.Eventually(t, func() bool { return e.Stats().Lost == 1 }, time.Minute, time.Millisecond)
	next, _ := startCell(t, e, "")
	require.Equal(t, "worker-2", next.Worker())
	require.NoError(t, e.Close())
}

// TestAWorkerIsSilent: a worker of an older program answers no pings, and is not removed.
func TestAWorkerIsSilent(t *testing.T) {
	onFake(t, cells.Options{}, func(t *testing.T, host *fakeHost, e *cells.Engine) {
		host.silent = true
		_, _ = startCell(t, e, "")
		time.Sleep(time.Minute)
		require.Zero(t, e.Stats().Lost)
	})
}

// TestWithoutASpare a worker that has served its time goes on until the next one is up.
func TestWithoutASpare(t *testing.T) {
	onFake(t, cells.Options{Runs: 1}, func(t *testing.T, _ *fakeHost, e *cells.Engine) {
		_, _ = startCell(t, e, "")
		again, took := startCell(t, e, "")
		require.Zero(t, took)
		require.Equal(t, "worker-1", again.Worker())
		time.Sleep(workerTakes)
		next, took := startCell(t, e, "")
		require.Zero(t, took)
		require.Equal(t, "worker-2", next.Worker())
	})
}

// TestSpareThatWaits is not older by that.
func TestSpareThatWaits(t *testing.T) {
	onFake(t, cells.Options{Age: time.Hour}, func(t *testing.T, host *fakeHost, e *cells.Engine) {
		_, _ = startCell(t, e, "")
		time.Sleep(59 * time.Minute)
		host.kill(1)
		synctest.Wait()
		_, _ = startCell(t, e, "")
		time.Sleep(30 * time.Minute)
		s, _ := startCell(t, e, "")
		require.Equal(t, "worker-2", s.Worker())
	})
}

func TestIdleWorkersEnd(t *testing.T) {
	onFake(t, cells.Options{}, func(t *testing.T, host *fakeHost, e *cells.Engine) {
		s, _ := startCell(t, e, "")
		time.Sleep(time.Hour)
		_, alive := host.counts()
		require.Len(t, alive, 2, "with a cell it is not idle")
		require.NoError(t, s.Kill(t.Context()))
		time.Sleep(11 * time.Minute)
		_, alive = host.counts()
		require.Equal(t, []string{"worker-2"}, alive, "the spare one")
		time.Sleep(11 * time.Minute)
		_, alive = host.counts()
		require.Empty(t, alive)
		_, took := startCell(t, e, "")
		require.Equal(t, workerTakes, took)
	})
}

// TestOwnersAreApart: each has a worker of its own, the first of which is the spare one.
func TestOwnersAreApart(t *testing.T) {
	onFake(t, cells.Options{}, func(t *testing.T, host *fakeHost, e *cells.Engine) {
		workers := map[string]string{}
		for _, owner := range []string{"a", "b", "c"} {
			for range 2 {
				s, took := startCell(t, e, owner)
				if owner != "a" {
					require.Zero(t, took, "the spare one is nobody's before")
				}
				if other, known := workers[owner]; known {
					require.Equal(t, other, s.Worker())
				}
				workers[owner] = s.Worker()
			}
			time.Sleep(settled)
		}
		require.Len(t, map[string]bool{workers["a"]: true, workers["b"]: true, workers["c"]: true}, 3)
		_, alive := host.counts()
		require.Len(t, alive, 4)
	})
}

// TestManyOwners: those who have no cell make way.
func TestManyOwners(t *testing.T) {
	onFake(t, cells.Options{}, func(t *testing.T, host *fakeHost, e *cells.Engine) {
		stays, _ := startCell(t, e, "stays")
		for owner := range 26 {
			s, _ := startCell(t, e, string(rune('a'+owner)))
			require.NoError(t, s.Kill(t.Context()))
			time.Sleep(settled)
		}
		_, alive := host.counts()
		require.LessOrEqual(t, len(alive), 10)
		require.Contains(t, alive, stays.Worker(), "it has a cell")
	})
}

// TestOwnersOfRuns: the pool says whose a sandbox is.
func TestOwnersOfRuns(t *testing.T) {
	for _, apart := range []bool{false, true} {
		onFake(t, cells.Options{}, func(t *testing.T, _ *fakeHost, e *cells.Engine) {
			p := pool.New(e, pool.Options{PerOwner: apart, Log: runnertest.Log(t)})
			workers := map[string]bool{}
			for _, owner := range []string{"a", "b", "a"} {
				c, err := p.TakeSession(t.Context(), owner, fakeEnvironment(""), runner.DefaultLimits(), time.Time{})
				require.NoError(t, err)
				workers[c.Sandbox.(runner.Cell).Worker()] = true
				p.Done(c, false)
			}
			require.Equal(t, map[bool]int{false: 1, true: 2}[apart], len(workers))
			require.NoError(t, p.Close(t.Context()))
		})
	}
}

// TestRunsOfALostWorker: what nobody has seen anything of is run again.
func TestRunsOfALostWorker(t *testing.T) {
	const dies = "dies"
	for _, c := range []struct {
		desc      string
		cells     []string
		network   runner.Network
		deaths    int
		want      string // what is printed; "": the run fails
		wantTries int
	}{
		{desc: "nothing was seen", cells: []string{dies, runnertest.CellHello}, deaths: 1, want: "hello\n", wantTries: 2},
		{desc: "something was printed", cells: []string{runnertest.CellHello, dies}, deaths: 1, wantTries: 1},
		{desc: "it has a network", cells: []string{dies, runnertest.CellHello}, network: noNetwork{}, deaths: 1, wantTries: 1},
		{desc: "the next one is lost too", cells: []string{dies, runnertest.CellHello}, deaths: 2, wantTries: 2},
	} {
		t.Run(c.desc, func(t *testing.T) {
			onFake(t, cells.Options{}, func(t *testing.T, host *fakeHost, e *cells.Engine) {
				tries := 0
				host.On(dies, func(k *runnertest.Kernel) {
					if tries++; tries <= c.deaths {
						host.kill(tries)
						k.Wait(false)
					}
				})
				spec := runnertest.NewSpec(c.cells...)
				spec.Network = c.network
				sink := runnertest.NewRecorder(t)
				out, err := runnertest.Once(t.Context(), e, runnertest.Log(t), spec, sink)
				sink.Seal()
				require.Equal(t, c.wantTries, tries)
				if c.want == "" {
					runnertest.RequireCode(t, runner.CodeUnavailable, err)
					require.ErrorIs(t, err, runner.ErrWithOthers)
					require.Equal(t, tries == 1, errors.Is(err, conversation.ErrSeen))
					return
				}
				require.NoError(t, err)
				require.Equal(t, runner.StatusOK, out.Status)
				printed, err := runnertest.StreamedText(sink.Events())
				require.NoError(t, err)
				require.Equal(t, c.want, printed)
			})
		})
	}
}

// noNetwork reaches nothing.
type noNetwork struct{}

func (noNetwork) Serve(ctx context.Context, _ string, _ net.Listener) { <-ctx.Done() }
func (noNetwork) CA() []byte                                          { return nil }

func TestProbe(t *testing.T) {
	for _, c := range []struct {
		desc string
		host func(*fakeHost)
		wall string // "": none is missing
		why  string
	}{
		{desc: "all are there", host: func(*fakeHost) {}},
		{
			desc: "the supervisor sees that one is not there", wall: "seccomp", why: "no filter",
			host: func(h *fakeHost) { h.looked = []wire.Missing{{Wall: wire.WallSeccomp, Why: "no filter"}} },
		},
		{
			desc: "the supervisor cannot build one", wall: "user_namespace", why: "operation not permitted",
			host: func(h *fakeHost) {
				h.failed = wire.Failed{Message: "clone: operation not permitted", Wall: wire.WallUser}
			},
		},
		{
			desc: "the zygote cannot build one", wall: "files", why: "mount: Permission denied",
			host: func(h *fakeHost) {
				h.failed = wire.Failed{Message: "zygote: PermissionError: mount: Permission denied\nmissing wall: files\n"}
			},
		},
		{
			desc: "the cell cannot build one", wall: "proc", why: "exit code 70",
			host: func(h *fakeHost) { h.words = "OSError: mount\nmissing wall: proc\n" },
		},
		{
			desc: "nobody knows", wall: "worker", why: "no space left",
			host: func(h *fakeHost) { h.failed = wire.Failed{Message: "no space left\nmissing wall: of_china"} },
		},
	} {
		t.Run(c.desc, func(t *testing.T) {
			onFake(t, cells.Options{}, func(t *testing.T, host *fakeHost, e *cells.Engine) {
				c.host(host)
				err := e.Probe(t.Context(), fakeEnvironment(""), runner.DefaultLimits())
				if c.wall == "" {
					require.NoError(t, err)
					return
				}
				missing := (*cells.NoCells)(nil)
				require.ErrorAs(t, err, &missing)
				require.Equal(t, c.wall, missing.Wall)
				require.Contains(t, cells.Walls(), missing.Wall)
				require.NotEmpty(t, missing.Do)
				require.ErrorContains(t, err, c.why)
				require.ErrorContains(t, err, missing.Do)
			})
		})
	}
}

// TestStats: what was measured is there at the next reading.
func TestStats(t *testing.T) {
	onFake(t, cells.Options{}, func(t *testing.T, _ *fakeHost, e *cells.Engine) {
		for range 4 {
			_, _ = startCell(t, e, "")
		}
		before := e.Stats()
		require.Equal(t, 4, before.Cells)
		require.Equal(t, 1, before.Workers[cells.WorkerUsed])
		require.Zero(t, before.CellsCharged)
		synctest.Wait()
		now := e.Stats()
		require.EqualValues(t, 30, now.CellsCharged)
		require.EqualValues(t, 40, now.CellsPSS, "of four, by what two have")
		require.EqualValues(t, 100, now.WorkersCharged)
		require.EqualValues(t, 90, now.WorkersPSS)
	})
}
