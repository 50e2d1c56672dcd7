package session_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/runner"
	"notebox/runner/admission"
	"notebox/runner/internal/conversation"
	"notebox/runner/internal/frame"
	"notebox/runner/pool"
	"notebox/runner/runnertest"
	"notebox/runner/session"
)

// sessionsTest is sessions on a Fake, in a bubble, which has no goroutine at its end.
type sessionsTest struct {
	t         *testing.T
	host      *runnertest.Fake
	pool      *pool.Pool
	admission *admission.Admission
	all       *session.Sessions
	opened    int
}

type sessionsOptions struct {
	pool     pool.Options
	sessions session.Options
	places   int
}

func newSessions(t *testing.T, host *runnertest.Fake, change ...func(*sessionsOptions)) *sessionsTest {
	o := sessionsOptions{places: 4}
	for _, c := range change {
		c(&o)
	}
	s := &sessionsTest{t: t, host: host}
	o.pool.Log, o.pool.Limits, o.sessions.Log = runnertest.Log(t), runnertest.NewSpec().Limits, runnertest.Log(t)
	s.pool = pool.New(host.Engine("test"), o.pool)
	s.admission = admission.New(s.pool, admission.Limits{
		MaxRunning: o.places, MaxWaiting: 10, MaxWait: time.Minute,
	})
	s.all = session.New(s.pool, s.admission, o.sessions)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
		defer cancel()
		require.NoError(t, s.all.Close(ctx))
		require.NoError(t, s.pool.Close(ctx))
		require.Empty(t, host.Sandboxes(""), "nothing is left of sessions that are closed")
	})
	return s
}

func (s *sessionsTest) spec(change ...func(*runner.SessionSpec)) runner.SessionSpec {
	s.opened++
	spec := runner.SessionSpec{
		ID: fmt.Sprintf("session-%d", s.opened), Owner: "owner", Environment: runner.Environment{Name: "fake", Image: "fake"},
		Limits: runnertest.NewSpec().Limits, TTL: 10 * time.Hour, Idle: 5 * time.Hour,
	}
	for _, c := range change {
		c(&spec)
	}
	return spec
}

func (s *sessionsTest) open(change ...func(*runner.SessionSpec)) runner.Session {
	s.t.Helper()
	session, err := s.all.Open(s.t.Context(), s.spec(change...))
	require.NoError(s.t, err)
	return session
}

// do makes a run in a session.
func (s *sessionsTest) do(ctx context.Context, session runner.Session, cells ...string) (*runner.Outcome, error) {
	sink := runnertest.NewRecorder(s.t)
	defer sink.Seal()
	spec := runnertest.NewSpec(cells...)
	spec.Environment, spec.Limits.Timeout = runner.Environment{}, runnertest.SpecTimeout
	return session.Run(ctx, spec, sink)
}

// endedRun is a run that has come to its end.
type endedRun struct {
	out *runner.Outcome
	err error
}

// goDo is do in the background.
func (s *sessionsTest) goDo(ctx context.Context, session runner.Session, cells ...string) <-chan endedRun {
	ended := make(chan endedRun, 1)
	go func() {
		out, err := s.do(ctx, session, cells...)
		ended <- endedRun{out: out, err: err}
	}()
	return ended
}

// requireGone requires that a session is over for this reason.
func (s *sessionsTest) requireGone(session runner.Session, reason runner.GoneReason) {
	s.t.Helper()
	synctest.Wait()
	_, err := s.all.Find(session.Info().Owner, session.Info().ID)
	end := (*runner.GoneError)(nil)
	require.ErrorAs(s.t, err, &end)
	require.Equal(s.t, reason, end.Reason)
	_, err = s.do(s.t.Context(), session, runnertest.CellHello)
	require.ErrorAs(s.t, err, &end)
	require.Equal(s.t, reason, end.Reason)
}

func TestOpenRefusals(t *testing.T) {
	failure := errors.New("the disk is gone")
	for _, c := range []struct {
		desc    string
		program runnertest.Program
		options func(*sessionsOptions)
		before  int // sessions that are open
		spec    func(*runner.SessionSpec)
		code    runner.Code // "" for an error that callers cannot act upon
		message string
		retry   time.Duration
		took    time.Duration
	}{
		{desc: "no image", spec: func(s *runner.SessionSpec) { s.Environment.Image = runnertest.FakeMissing }, code: runner.CodeUnavailable, message: "start a sandbox"},
		{desc: "no TTL", spec: func(s *runner.SessionSpec) { s.TTL = 0 }, message: "a TTL"},
		{desc: "an id that is taken", before: 1, spec: func(s *runner.SessionSpec) { s.ID = "session-1" }, message: "it is open"},
		{
			desc: "too many", before: 2, options: func(o *sessionsOptions) { o.sessions.MaxSessions = 2 },
			code: runner.CodeFull, message: "room for, which is 2", retry: 5 * time.Hour,
		},
		{
			desc: "too many of the owner", before: 2, spec: func(s *runner.SessionSpec) { s.MaxOwned = 2 },
			code: runner.CodeShare, message: "2 sessions open and may have 2", retry: 5 * time.Hour,
		},
		{
			desc: "no room", before: 2, options: func(o *sessionsOptions) { o.pool.MaxSandboxes = 2 },
			code: runner.CodeFull, message: "no room", retry: 10 * time.Second, took: session.MaxWait,
		},
		{desc: "never kept", program: inSession(nil, nil), code: runner.CodeUnavailable, retry: 5 * time.Second, message: "took too long", took: pool.DefaultStartTimeout},
		{
			desc: "variables that no kernel starts with", code: runner.CodeEnv, message: "these variables",
			program: inSession(func(to io.Writer) {
				_ = frame.WriteJSON(to, frame.KindFailed, frame.Failed{Message: "RuntimeError: secret", Env: true})
			}, nil),
		},
		{desc: "another answer", code: runner.CodeUnavailable, retry: 5 * time.Second, message: "frame 'E' where no job runs", program: inSession(func(to io.Writer) { _ = frame.Write(to, frame.KindEvent, []byte("{}")) }, nil)},
		{desc: "a sandbox that ends", code: runner.CodeUnavailable, retry: 5 * time.Second, message: "ended by itself", program: runnertest.ExitsAtOnce(1)},
		{
			desc: "an input that cannot be read", message: failure.Error(), spec: func(s *runner.SessionSpec) {
				s.Inputs = []runner.Input{{Path: "a", Open: func() (io.ReadCloser, error) { return io.NopCloser(runnertest.FailingReader{Err: failure}), nil }}}
			},
		},
		{
			desc: "an input too large", message: "no room left", spec: func(s *runner.SessionSpec) {
				s.Limits.DataSize, s.Inputs = 3, []runner.Input{runnertest.TextInput("a", "four")}
			},
		},
	} {
		t.Run(c.desc, func(t *testing.T) {
			runnertest.InBubble(t, func(t *testing.T) {
				host := runnertest.NewHost(t, c.program)
				options := c.options
				if options == nil {
					options = func(*sessionsOptions) {}
				}
				s := newSessions(t, host, options)
				for range c.before {
					s.open()
				}
				change := c.spec
				if change == nil {
					change = func(*runner.SessionSpec) {}
				}
				begun := time.Now()
				_, err := s.all.Open(t.Context(), s.spec(change))
				require.ErrorContains(t, err, c.message)
				require.NotContains(t, err.Error(), "secret")
				require.Equal(t, c.took, time.Since(begun))
				if failure := (*runner.Error)(nil); c.code != "" {
					runnertest.RequireCode(t, c.code, err)
					require.ErrorAs(t, err, &failure)
					require.Equal(t, c.retry, failure.RetryAfter)
				}
				require.Len(t, s.all.List("owner"), c.before)
				synctest.Wait()
				require.Len(t, host.Sandboxes(""), c.before, "nothing is left")
				require.Equal(t, pool.Stats{Sessions: c.before, Sandboxes: c.before}, s.pool.Stats())
			})
		})
	}
}

func TestOpenCancelled(t *testing.T) {
	for _, c := range []struct {
		desc    string
		program runnertest.Program
		slow    bool
	}{
		{"while it is started", nil, true},
		{"while it gets ready", runnertest.NeverReady, false},
		{"while it reads nothing", runnertest.Deaf, false},
		{"before it is kept", inSession(nil, nil), false},
	} {
		t.Run(c.desc, func(t *testing.T) {
			runnertest.InBubble(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
				defer cancel()
				host := runnertest.NewHost(t, c.program)
				host.SlowStart = c.slow
				s := newSessions(t, host)
				begun := time.Now()
				_, err := s.all.Open(ctx, s.spec())
				require.ErrorIs(t, err, context.DeadlineExceeded)
				require.Equal(t, 3*time.Second, time.Since(begun))
				require.Empty(t, s.all.List("owner"))
				time.Sleep(time.Hour)
				require.Empty(t, host.Sandboxes(""))
			})
		})
	}
}

// TestSessionTakesAWarmSandbox, which is replaced, and counted as no run.
func TestSessionTakesAWarmSandbox(t *testing.T) {
	runnertest.InBubble(t, func(t *testing.T) {
		const settled = time.Minute // by then, the pool has what it is to have
		python := runner.Environment{Name: "python", Image: "python"}
		host := runnertest.NewHost(t, nil)
		host.OnStart = func(context.Context, runner.Environment) error { time.Sleep(time.Second); return nil }
		s := newSessions(t, host, func(o *sessionsOptions) {
			o.pool.Stocks = []pool.StockOptions{{Environment: python, Min: 1, Max: 1}}
		})
		time.Sleep(settled)
		begun := time.Now()
		session := s.open(func(spec *runner.SessionSpec) { spec.Environment = python })
		require.Zero(t, time.Since(begun), "it was there")
		time.Sleep(settled)
		require.Equal(t, pool.Stats{Size: 1, Warm: 1, Sessions: 1, Sandboxes: 2}, s.pool.Stats())

		host.End(host.Sandboxes("")[1]) // the one that waits now
		require.NoError(t, session.Close(t.Context()))
		synctest.Wait()
		require.Zero(t, s.pool.Stats().Sessions)
	})
}

// TestSessionEnded: who opened a session is told of its end, once, when it has no sandbox
// any more.
func TestSessionEnded(t *testing.T) {
	runnertest.InBubble(t, func(t *testing.T) {
		host := runnertest.NewHost(t, nil)
		s := newSessions(t, host)
		var ended atomic.Int32
		tell := func(spec *runner.SessionSpec) { spec.Ended = func() { ended.Add(1) } }
		closed, left := s.open(tell), s.open(tell)
		require.Zero(t, ended.Load())
		require.NoError(t, closed.Close(t.Context()))
		require.EqualValues(t, 1, ended.Load())
		time.Sleep(6 * time.Hour)
		s.requireGone(left, runner.GoneIdle)
		require.EqualValues(t, 2, ended.Load())
		_, err := s.all.Open(t.Context(), s.spec(tell, func(spec *runner.SessionSpec) { spec.Environment.Image = runnertest.FakeMissing }))
		require.Error(t, err)
		require.EqualValues(t, 2, ended.Load(), "there was none")
	})
}

func TestSessionStats(t *testing.T) {
	runnertest.InBubble(t, func(t *testing.T) {
		s := newSessions(t, runnertest.NewHost(t, nil), func(o *sessionsOptions) { o.places = 1 })
		a, b := s.open(), s.open()
		s.open()
		first := s.goDo(t.Context(), a, runnertest.CellSleep)
		synctest.Wait()
		second := s.goDo(t.Context(), a, runnertest.CellHello)
		third := s.goDo(t.Context(), b, runnertest.CellHello)
		synctest.Wait()
		require.Equal(t, session.Stats{Open: 3, Running: 1, Idle: 1, Waiting: 2, Opened: 3, Ended: map[runner.GoneReason]int{}}, s.all.Stats())
		require.Equal(t, 1, s.admission.Running())
		require.Equal(t, 1, s.admission.Waiting(), "one that waits for its session takes no place")
		require.Equal(t, 3, s.pool.Stats().Sessions)
		require.Zero(t, s.pool.Stats().Running)
		require.Equal(t, runner.StatusTimeout, (<-first).out.Status)
		require.Equal(t, runner.StatusOK, (<-second).out.Status)
		require.Equal(t, runner.StatusOK, (<-third).out.Status)
		require.NoError(t, a.Close(t.Context()))
		require.Equal(t, session.Stats{Open: 2, Idle: 2, Opened: 3, Ended: map[runner.GoneReason]int{runner.GoneClosed: 1}}, s.all.Stats())
	})
}

func TestSessionQueueIsBounded(t *testing.T) {
	runnertest.InBubble(t, func(t *testing.T) {
		s := newSessions(t, runnertest.NewHost(t, nil))
		session := s.open()
		for range runner.MaxSessionWaiting + 1 {
			s.goDo(t.Context(), session, runnertest.CellSleep)
		}
		synctest.Wait()
		require.Equal(t, runner.MaxSessionWaiting, session.Info().Waiting)
		_, err := s.do(t.Context(), session, runnertest.CellSleep)
		runnertest.RequireCode(t, runner.CodeFull, err)
		require.NoError(t, session.Close(t.Context()))
	})
}

func TestEviction(t *testing.T) {
	needRun := func(s *sessionsTest) error {
		_, err := s.admission.Run(s.t.Context(), runnertest.NewSpec(runnertest.CellHello), runnertest.NewRecorder(s.t))
		return err
	}
	needSession := func(s *sessionsTest) error {
		_, err := s.all.Open(s.t.Context(), s.spec())
		return err
	}
	for _, c := range []struct {
		desc    string
		idle    time.Duration // of the first session; the second is used just before
		need    func(*sessionsTest) error
		evicted bool
		full    bool
	}{
		{"for a run", 2 * time.Minute, needRun, true, false},
		{"for a session", 2 * time.Minute, needSession, true, false},
		{"for a session, as none has been idle for long", 30 * time.Second, needSession, false, true},
		{"for a run that waits until one has", 30 * time.Second, needRun, true, false},
	} {
		t.Run(c.desc, func(t *testing.T) {
			runnertest.InBubble(t, func(t *testing.T) {
				s := newSessions(t, runnertest.NewHost(t, nil), func(o *sessionsOptions) { o.pool.MaxSandboxes = 3 })
				longest, other, busy := s.open(), s.open(), s.open()
				running := s.goDo(t.Context(), busy, runnertest.CellHello)
				<-running
				time.Sleep(c.idle)
				for _, session := range []runner.Session{other, busy} {
					_, err := s.do(t.Context(), session, runnertest.CellHello)
					require.NoError(t, err)
				}
				err := c.need(s)
				if c.full {
					runnertest.RequireCode(t, runner.CodeFull, err)
				} else {
					require.NoError(t, err)
				}
				if c.evicted {
					s.requireGone(longest, runner.GoneEvicted)
				}
				for _, session := range []runner.Session{other, busy} {
					_, err := s.do(t.Context(), session, runnertest.CellHello)
					require.NoError(t, err)
				}
			})
		})
	}
}

// TestSessionTimes: calls that use a session keep it, and those that look at it do not.
func TestSessionTimes(t *testing.T) {
	runnertest.InBubble(t, func(t *testing.T) {
		s := newSessions(t, runnertest.NewHost(t, nil))
		session := s.open(func(spec *runner.SessionSpec) { spec.Idle = time.Hour })
		for range 5 {
			time.Sleep(59 * time.Minute)
			_, _, err := session.List(t.Context(), "", false)
			require.NoError(t, err)
		}
		_, err := session.Write(t.Context(), "a", strings.NewReader("content"))
		require.NoError(t, err)
		_, content, err := session.Read(t.Context(), "a")
		require.NoError(t, err)
		time.Sleep(2 * time.Hour)
		require.Len(t, s.all.List("owner"), 1, "it is being read")
		require.NoError(t, content.Close())
		time.Sleep(59 * time.Minute)
		_, err = s.all.Find("owner", session.Info().ID)
		require.NoError(t, err)
		require.Equal(t, 59*time.Minute, time.Since(session.Info().LastUsed))
		time.Sleep(time.Minute)
		s.requireGone(session, runner.GoneIdle)

		session = s.open(func(spec *runner.SessionSpec) { spec.TTL, spec.Idle = time.Hour, 0 })
		time.Sleep(time.Hour)
		s.requireGone(session, runner.GoneExpired)
		time.Sleep(25 * time.Hour)
		_, err = s.all.Find("owner", session.Info().ID)
		require.ErrorIs(t, err, runner.ErrNoSession, "its end is forgotten")
	})
}

// TestSlowSink: file operations go on while a run's Sink takes nothing.
func TestSlowSink(t *testing.T) {
	runnertest.InBubble(t, func(t *testing.T) {
		host := runnertest.NewHost(t, nil)
		host.On("talk", func(k *runnertest.Kernel) {
			for range 1000 {
				k.Print(strings.Repeat("x", 1000))
			}
		})
		s := newSessions(t, host)
		session := s.open()
		sink := runnertest.NewRecorder(t)
		stuck := make(chan struct{})
		sink.OnOutput = func(runner.Event) { <-stuck }
		spec := runnertest.NewSpec("talk")
		spec.Limits.Output = 8 << 20
		ended := make(chan *runner.Outcome, 1)
		go func() {
			out, err := session.Run(t.Context(), spec, sink)
			if err != nil {
				t.Error(err)
			}
			ended <- out
		}()
		synctest.Wait()
		_, err := session.Write(t.Context(), "a", strings.NewReader("content"))
		require.NoError(t, err)
		_, _, err = session.List(t.Context(), "", true)
		require.NoError(t, err)
		time.Sleep(runnertest.SpecTimeout + time.Minute)
		close(stuck)
		require.Equal(t, runner.StatusOK, (<-ended).Status, "the sandbox was in time")
		_, err = s.do(t.Context(), session, runnertest.CellHello)
		require.NoError(t, err)
	})
}

// TestSinkThatStoresNothing: a file that is never stored ends neither the session nor holds its turn.
func TestSinkThatStoresNothing(t *testing.T) {
	runnertest.InBubble(t, func(t *testing.T) {
		host := runnertest.NewHost(t, nil)
		host.On("write", func(k *runnertest.Kernel) { k.Files["a.txt"] = "content" })
		s := newSessions(t, host)
		session := s.open()
		sink := runnertest.NewRecorder(t)
		sink.OnFile = func(ctx context.Context, _ string, _ io.Reader) error {
			<-ctx.Done()
			return ctx.Err()
		}
		begun := time.Now()
		out, err := session.Run(t.Context(), runnertest.NewSpec("write"), sink)
		require.NoError(t, err)
		require.Equal(t, conversation.CollectTimeout, time.Since(begun).Truncate(time.Second))
		require.Equal(t, runner.StatusOK, out.Status)
		require.Len(t, out.Skipped, 1)
		require.Equal(t, "/mnt/data/a.txt", out.Skipped[0].Path)
		_, err = s.do(t.Context(), session, runnertest.CellHello)
		require.NoError(t, err)
	})
}

// sessionNetwork says what it serves, and when that is over.
type sessionNetwork struct {
	serves chan string
	over   chan struct{}
}

func (*sessionNetwork) CA() []byte { return []byte("the CA") }

func (n *sessionNetwork) Serve(ctx context.Context, id string, l net.Listener) {
	defer close(n.over)
	n.serves <- id
	for {
		c, err := l.Accept()
		if err != nil {
			break
		}
		go func() {
			_, _ = io.Copy(c, c)
			_ = c.Close()
		}()
	}
	<-ctx.Done()
}

// TestSessionNetwork: it is there from the session's begin to its end, whatever runs.
func TestSessionNetwork(t *testing.T) {
	runnertest.InBubble(t, func(t *testing.T) {
		said, answered := make(chan frame.Session, 1), make(chan string, 10)
		program := inSession(kept, func(to io.Writer, kind frame.Kind, payload []byte) {
			switch {
			case kind == frame.KindInterrupt: // a connection of what lives in the background
				channelFrame(to, 'o', 1, "")
				channelFrame(to, 'd', 1, "hello")
			case kind == frame.KindChannel:
				answered <- string(payload[:1]) + string(payload[5:])
			}
		})
		host := runnertest.NewHost(t, func(stream runnertest.Stream) int {
			inner := stream
			inner.ReadWriter = &sessionSpy{stream.ReadWriter, said}
			return program(inner)
		})
		s := newSessions(t, host)
		network := &sessionNetwork{serves: make(chan string, 1), over: make(chan struct{})}
		session := s.open(func(spec *runner.SessionSpec) { spec.Network = network })
		require.Equal(t, session.Info().ID, <-network.serves)
		require.True(t, session.Info().Network)
		require.Equal(t, "the CA", (<-said).Network.CA)
		require.NoError(t, session.Interrupt(t.Context()))
		require.Equal(t, "dhello", <-answered)
		require.NoError(t, session.Close(t.Context()))
		<-network.over
	})
}

// sessionSpy notes the session frame of a stream.
type sessionSpy struct {
	io.ReadWriter
	said chan<- frame.Session
}

func (s *sessionSpy) Read(p []byte) (int, error) {
	n, err := s.ReadWriter.Read(p)
	if hello, bad := frame.Decode[frame.Session](frame.KindSession, p[:n]); bad == nil && hello.Token != nil {
		s.said <- hello
	}
	return n, err
}

// TestSessionThatCloses: what waits does not run any more, whatever runs.
func TestSessionThatCloses(t *testing.T) {
	for _, cell := range []string{runnertest.CellSleep, runnertest.CellStubborn} {
		runnertest.InBubble(t, func(t *testing.T) { requireCloses(t, cell) })
	}
}

func requireCloses(t *testing.T, cell string) {
	host, ran := runnertest.NewHost(t, nil), false
	host.On("late", func(*runnertest.Kernel) { ran = true })
	s := newSessions(t, host)
	session := s.open()
	running := s.goDo(t.Context(), session, cell)
	synctest.Wait()
	waiting := s.goDo(t.Context(), session, "late")
	synctest.Wait()
	begun := time.Now()
	require.NoError(t, session.Close(t.Context()))
	require.Less(t, time.Since(begun), time.Second)
	for _, ended := range []<-chan endedRun{running, waiting} {
		r := <-ended
		require.NoError(t, r.err)
		require.Equal(t, runner.StatusCancelled, r.out.Status)
	}
	require.False(t, ran)
	s.requireGone(session, runner.GoneClosed)
}
