package cells_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/environments/supervisor/wire"
	"notebox/runner"
	"notebox/runner/cells"
	"notebox/runner/runnertest"
)

// workerTakes is how long a fake worker takes to start.
const workerTakes = 4 * time.Second

// fakeHost is a runner.Host whose workers are goroutines that speak the supervisor's part. In
// their cells is the program of a runnertest.Fake.
type fakeHost struct {
	runner.Host // nil: cells alone are started
	*runnertest.Fake

	users int // of each worker; 0 is enough for all
	// imports is how long each worker takes from its setup until it is up.
	imports time.Duration
	// failed is what each worker fails with; looked which walls its cells are without; words
	// what a cell that does not start has said.
	failed wire.Failed
	looked []wire.Missing
	words  string

	// still is the number of the worker that says nothing, if there is one.
	still atomic.Int32
	// deaf is that it reads nothing either.
	deaf atomic.Bool
	// silent is that no worker answers pings.
	silent bool
	// away is that the host does not answer.
	away atomic.Bool

	mu      sync.Mutex
	started int
	alive   []*fakeWorker // the oldest first
}

func (h *fakeHost) StartWorker(ctx context.Context, _ runner.Environment) (runner.Sandbox, []byte, runner.Walls, error) {
	select {
	case <-time.After(workerTakes):
	case <-ctx.Done():
		return nil, nil, runner.Walls{}, ctx.Err()
	}
	near, far := net.Pipe()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.started++
	w := &fakeWorker{Conn: near, host: h, id: fmt.Sprintf("worker-%d", h.started), far: far, link: wire.NewLink(far), closed: make(chan struct{}), cells: map[uint32]chan struct{}{}}
	h.alive = append(h.alive, w)
	go w.serve()
	mounts := func(runner.Limits, int) map[string]string { return nil }
	return w, nil, runner.Walls{FirstUser: 1000, Users: cmp.Or(h.users, 512), Seccomp: []byte("{}"), Mounts: mounts}, nil
}

// Ready fails if the host is away.
func (h *fakeHost) Ready(context.Context, runner.Environment) error {
	if h.away.Load() {
		return errors.New("the host is away")
	}
	return nil
}

// counts returns how many workers were started, and the ids of those that there are.
func (h *fakeHost) counts() (started int, alive []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, w := range h.alive {
		alive = append(alive, w.id)
	}
	return h.started, alive
}

// kill ends the worker of that number.
func (h *fakeHost) kill(number int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, w := range h.alive {
		if w.id == fmt.Sprintf("worker-%d", number) {
			w.far.Close()
		}
	}
}

// fakeWorker is a worker, and this side's stream to it.
type fakeWorker struct {
	net.Conn
	host *fakeHost
	id   string
	far  net.Conn
	link *wire.Link

	once   sync.Once
	closed chan struct{} // by this side

	mu    sync.Mutex
	cells map[uint32]chan struct{} // closed when the cell is to end
}

func (w *fakeWorker) serve() {
	_ = w.link.Serve(patient{w.far}, w.handle)
	w.far.Close()
	w.mu.Lock()
	for number := range w.cells {
		w.end(number)
	}
	w.mu.Unlock()
	w.host.mu.Lock()
	defer w.host.mu.Unlock()
	for i, other := range w.host.alive {
		if other == w {
			w.host.alive = append(w.host.alive[:i], w.host.alive[i+1:]...)
			return
		}
	}
}

// patient bears no longer silence than a worker does.
type patient struct{ net.Conn }

func (p patient) Read(b []byte) (int, error) {
	if err := p.SetReadDeadline(time.Now().Add(wire.Silence)); err != nil {
		return 0, err
	}
	return p.Conn.Read(b)
}

// end has a cell end. The lock is held.
func (w *fakeWorker) end(number uint32) {
	close(w.cells[number])
	delete(w.cells, number)
}

func (w *fakeWorker) handle(m wire.Message) error {
	if w.id == fmt.Sprintf("worker-%d", w.host.still.Load()) {
		if w.host.deaf.Load() {
			<-w.closed
		}
		return nil
	}
	switch m.Kind {
	case wire.KindPing:
		if !w.host.silent {
			return w.link.Send(wire.KindPing, 0, nil)
		}
	case wire.KindSetup:
		if w.host.failed.Message != "" {
			return errors.Join(w.link.SendJSON(wire.KindFailed, 0, w.host.failed), io.EOF)
		}
		time.AfterFunc(w.host.imports, func() { _ = w.link.SendJSON(wire.KindUp, 0, wire.Up{Version: wire.Version}) })
	case wire.KindOpen:
		closed := make(chan struct{})
		w.mu.Lock()
		w.cells[m.Cell] = closed
		w.mu.Unlock()
		go w.run(m.Cell, w.link.Stream(m.Cell), closed)
	case wire.KindKill:
		w.mu.Lock()
		w.end(m.Cell)
		w.mu.Unlock()
	case wire.KindLeave:
		return w.link.Send(wire.KindLeft, 0, nil)
	case wire.KindLook:
		return w.link.SendJSON(wire.KindLooked, m.Cell, wire.Looked{Missing: w.host.looked})
	case wire.KindWeigh:
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.link.SendJSON(wire.KindWeight, 0, wire.Measured{WorkerCharged: 100, WorkerPSS: 90, Cells: len(w.cells), CellsCharged: 30, Sampled: 2, SampledPSS: 20})
	}
	return nil
}

func (w *fakeWorker) run(number uint32, stream *wire.Stream, closed chan struct{}) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		code := 70
		if w.host.words == "" {
			code = w.host.Program(runnertest.Stream{ReadWriter: stream, Closed: closed})
		}
		_ = w.link.SendJSON(wire.KindEnded, number, wire.Ended{Code: code, Log: w.host.words})
	}()
	<-closed
	stream.Close()
	<-ended
	_ = w.link.SendJSON(wire.KindGone, number, wire.Gone{})
}

func (w *fakeWorker) ID() string { return w.id }

// Read returns the end of a worker that the kernel of its host has killed.
func (w *fakeWorker) Read(p []byte) (int, error) {
	n, err := w.Conn.Read(p)
	if errors.Is(err, io.EOF) {
		err = &runner.ExitError{Code: 137}
	}
	return n, err
}

func (w *fakeWorker) Close() error {
	w.once.Do(func() { close(w.closed) })
	return w.Conn.Close()
}

func (w *fakeWorker) Kill(context.Context) error { return w.Close() }

// onFake runs a test in a bubble, with an engine on a fake host.
func onFake(t *testing.T, o cells.Options, test func(*testing.T, *fakeHost, *cells.Engine)) {
	runnertest.InBubble(t, func(t *testing.T) {
		host := &fakeHost{Fake: runnertest.NewHost(t, nil)}
		o.Modules, o.Log = func(string) []string { return nil }, runnertest.Log(t)
		engine := cells.New(host, o)
		test(t, host, engine)
		require.NoError(t, engine.Close())
		synctest.Wait()
		_, alive := host.counts()
		require.Empty(t, alive)
	})
}
