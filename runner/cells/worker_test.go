package cells

import (
	"context"
	"io"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/environments/supervisor/wire"
	"notebox/runner"
)

const patience, tick = 10 * time.Second, time.Millisecond

// fakeHost has one worker, whose supervisor the test is.
type fakeHost struct {
	runner.Host
	sandbox *fakeSandbox
	token   []byte
}

func newFakeHost(t *testing.T) (host *fakeHost, supervisor net.Conn) {
	service, supervisor := net.Pipe()
	t.Cleanup(func() { service.Close(); supervisor.Close() })
	return &fakeHost{sandbox: &fakeSandbox{Conn: service}, token: wire.NewToken()}, supervisor
}

func (h *fakeHost) AttachWorker(context.Context, string) (runner.Sandbox, []byte, error) {
	return h.sandbox, h.token, nil
}

type fakeSandbox struct {
	net.Conn
	end            error // what Read returns at the end
	closed, killed atomic.Int32
}

func (s *fakeSandbox) Read(p []byte) (int, error) {
	n, err := s.Conn.Read(p)
	if err != nil && s.end != nil {
		err = s.end
	}
	return n, err
}

func (s *fakeSandbox) ID() string { return "worker" }

func (s *fakeSandbox) Close() error {
	s.closed.Add(1)
	return s.Conn.Close()
}

func (s *fakeSandbox) Kill(context.Context) error {
	s.killed.Add(1)
	return s.Close()
}

// TestWhoGivesUpLeavesTheWorker: who comes to a worker of an earlier process, and does not get
// to it in time, does not remove it with the cells that were kept.
func TestWhoGivesUpLeavesTheWorker(t *testing.T) {
	host, supervisor := newFakeHost(t)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		said := make([]byte, 2*wire.TokenSize)
		_, _ = io.ReadFull(supervisor, said)
		_, _ = supervisor.Write(said[wire.TokenSize:])
		cancel() // and it says nothing more
	}()
	forgotten := make(chan struct{})
	_, err := attachWorker(ctx, host, "worker", Options{Log: slog.New(slog.DiscardHandler)}, func(bool) { close(forgotten) })
	require.Error(t, err)
	<-forgotten
	require.Eventually(t, func() bool { return host.sandbox.closed.Load() == 3 }, patience, tick, "by the end of the context, by who gives up, and by the end of the stream")
	require.Zero(t, host.sandbox.killed.Load())
}

// TestWorkerThatHasEnded has no sandboxes, also if it was there a moment ago.
func TestWorkerThatHasEnded(t *testing.T) {
	host, supervisor := newFakeHost(t)
	host.sandbox.end = &runner.ExitError{Code: 137}
	go func() {
		_, _ = io.ReadFull(supervisor, make([]byte, 2*wire.TokenSize))
		supervisor.Close()
	}()
	_, err := attachWorker(t.Context(), host, "worker", Options{Log: slog.New(slog.DiscardHandler)}, func(bool) {})
	require.ErrorIs(t, err, runner.ErrNoSandbox)
}

// TestUpTwice: a supervisor that says a thing again does not end the service.
func TestUpTwice(t *testing.T) {
	host, supervisor := newFakeHost(t)
	w := newWorker(host.sandbox, Options{Log: slog.New(slog.DiscardHandler)})
	up := make(chan struct{})
	go w.serve(sync.OnceFunc(func() { close(up) }), func(bool) {})
	link := wire.NewLink(supervisor)
	for range 2 {
		require.NoError(t, link.SendJSON(wire.KindUp, 0, wire.Up{Version: wire.Version}))
		require.NoError(t, link.SendJSON(wire.KindResume, 0, wire.Resumed{}))
	}
	<-up
	supervisor.Close()
	<-w.ended
}

// TestNoTwoHaveTheSameIDs: a number whose ids a cell has that is still there is passed over.
func TestNoTwoHaveTheSameIDs(t *testing.T) {
	host, supervisor := newFakeHost(t)
	w := newWorker(host.sandbox, Options{Log: slog.New(slog.DiscardHandler)})
	w.walls = runner.Walls{FirstUser: 100, Users: 6, Mounts: func(runner.Limits, int) map[string]string { return nil }}
	go w.serve(func() {}, func(bool) {})
	go func() { _, _ = io.Copy(io.Discard, supervisor) }()
	first, err := w.open(t.Context(), runner.DefaultLimits())
	require.NoError(t, err)
	second, err := w.open(t.Context(), runner.DefaultLimits())
	require.NoError(t, err)
	require.ElementsMatch(t, []int{102, 104}, []int{w.user(first.number), w.user(second.number)})
	_, err = w.open(t.Context(), runner.DefaultLimits())
	require.ErrorAs(t, err, new(*runner.Error), "all are taken")
	require.NoError(t, wire.NewLink(supervisor).SendJSON(wire.KindGone, second.number, wire.Gone{}))
	<-second.gone
	third, err := w.open(t.Context(), runner.DefaultLimits())
	require.NoError(t, err)
	require.Greater(t, third.number, second.number)
	require.Equal(t, w.user(second.number), w.user(third.number))
	supervisor.Close()
	<-w.ended
}
