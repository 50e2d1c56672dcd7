package runnertest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"notebox/runner"
)

// FakeMissing is the image that a Fake does not have; it has every other.
const FakeMissing = "missing"

// Program is what runs in a sandbox of a Fake. It ends when its stream is
// closed, and returns its exit code.
type Program func(Stream) int

// Stream is a Program's side of a sandbox.
type Stream struct {
	io.ReadWriter
	Closed <-chan struct{} // for programs that neither read nor write

	id   string // of the sandbox
	room int64  // of /mnt/data, bytes
}

// Fake is a host of sandboxes that are goroutines. The zero value is not one;
// see NewFake. Its fields are set before its first sandbox is started.
type Fake struct {
	// Program runs in each sandbox; NewFake sets the honest one.
	Program Program
	// SlowStart has Start wait for the end of its context.
	SlowStart bool
	// HangAtKill has Kill wait for the end of its context, and fail.
	HangAtKill bool
	// OnStart is called at the begin of each Start, which an error of it ends.
	OnStart func(context.Context, runner.Environment) error
	// OnKill is called at the begin of each Kill, which an error of it ends.
	OnKill func(context.Context) error
	// WarmUp is how long a sandbox is importing, if it has something to import
	// and nobody hurries it.
	WarmUp time.Duration

	mu        sync.Mutex
	cells     map[string]Cell
	sandboxes map[string]*fakeSandbox // by ID
	started   int
	notes     notes
}

// NewFake returns a host whose sandboxes know the cells of the suite.
func NewFake() *Fake {
	f := &Fake{
		cells: maps.Clone(suiteCells), sandboxes: map[string]*fakeSandbox{},
		notes: notes{warmed: map[string][]string{}, hurried: map[string]bool{}},
	}
	maps.Copy(f.cells, sessionCells)
	f.Program = f.serve
	return f
}

// On teaches the host what a cell with this source does, or a command of a session.
func (f *Fake) On(source string, c Cell) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cells[source] = c
}

// cell returns what a cell does, or nil.
func (f *Fake) cell(source string) Cell {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.cells[source]
}

// Engine returns an engine as a new process of that service would have it.
func (f *Fake) Engine(service string) runner.Engine {
	return &fakeEngine{host: f, service: service, known: map[string]bool{}}
}

// Started returns how many sandboxes there were so far.
func (f *Fake) Started() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.started
}

// Sandboxes returns the IDs of the sandboxes that a service has now; "" is for
// all services.
func (f *Fake) Sandboxes(service string) (ids []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for id, s := range f.sandboxes {
		if service == "" || s.engine.service == service {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// Close ends every sandbox, also those that hang at Kill.
func (f *Fake) Close() {
	for _, id := range f.Sandboxes("") {
		f.mu.Lock()
		s := f.sandboxes[id]
		f.mu.Unlock()
		if s != nil {
			_ = s.end(context.Background())
		}
	}
}

// fakeEngine is a runner.Engine.
type fakeEngine struct {
	host    *Fake
	service string
	known   map[string]bool // under the host's lock
}

// Start implements runner.Engine.
func (e *fakeEngine) Start(ctx context.Context, env runner.Environment, l runner.Limits) (runner.Sandbox, error) {
	if e.host.SlowStart {
		<-ctx.Done()
	}
	if e.host.OnStart != nil {
		if err := e.host.OnStart(ctx, env); err != nil {
			return nil, err
		}
	}
	if err := errors.Join(ctx.Err(), e.Ready(ctx, env)); err != nil {
		return nil, err
	}
	near, line := newLine()
	e.host.mu.Lock()
	defer e.host.mu.Unlock()
	e.host.started++
	s := &fakeSandbox{engine: e, near: near, fakeBody: &fakeBody{
		id: fmt.Sprintf("fake-%d", e.host.started), far: line, closed: make(chan struct{}), ended: make(chan struct{}),
	}}
	e.host.sandboxes[s.id], e.known[s.id] = s, true
	e.host.notes.most = max(e.host.notes.most, len(e.host.sandboxes))
	go s.run(s.id, l.DataSize)
	return s, nil
}

// Ready implements runner.Engine.
func (e *fakeEngine) Ready(_ context.Context, env runner.Environment) error {
	if env.Image == FakeMissing {
		return &runner.Error{Code: runner.CodeUnavailable, Message: "there is no such sandbox"}
	}
	return nil
}

// Reap implements runner.Engine.
func (e *fakeEngine) Reap(ctx context.Context) (int, error) {
	var left []*fakeSandbox
	e.host.mu.Lock()
	for id, s := range e.host.sandboxes {
		if s.engine.service == e.service && !e.known[id] {
			left = append(left, s)
		}
	}
	e.host.mu.Unlock()
	for i, s := range left {
		if err := s.Kill(ctx); err != nil {
			return i, err
		}
	}
	return len(left), nil
}

// fakeSandbox is a runner.Sandbox.
type fakeSandbox struct {
	engine *fakeEngine
	near   net.Conn
	*fakeBody
}

// fakeBody is a sandbox, whoever holds its stream.
type fakeBody struct {
	id     string        // under the host's lock, once the program runs
	far    *line         // the program's end
	close  sync.Once     // closed
	closed chan struct{} // the stream is, for good
	ended  chan struct{} // the program has
	code   int           // after ended
}

func (s *fakeSandbox) run(id string, room int64) {
	s.code = s.engine.host.Program(Stream{s.far, s.closed, id, room})
	s.forget()
	close(s.ended)
	s.far.Close()
}

// forget is what AutoRemove is for a container: one that has ended is gone.
func (s *fakeSandbox) forget() {
	s.engine.host.mu.Lock()
	defer s.engine.host.mu.Unlock()
	delete(s.engine.host.sandboxes, s.id)
}

// ID implements runner.Sandbox.
func (s *fakeSandbox) ID() string {
	s.engine.host.mu.Lock()
	defer s.engine.host.mu.Unlock()
	return s.id
}

// Read implements runner.Sandbox.
func (s *fakeSandbox) Read(p []byte) (int, error) {
	n, err := s.near.Read(p)
	if errors.Is(err, io.EOF) {
		<-s.ended
		err = &runner.ExitError{Code: s.code, Log: "the last words of " + s.ID()}
	}
	return n, err
}

// Write implements runner.Sandbox.
func (s *fakeSandbox) Write(p []byte) (int, error) { return s.near.Write(p) }

// Close implements runner.Sandbox.
func (s *fakeSandbox) Close() error {
	if !s.far.isKept() {
		s.close.Do(func() { close(s.closed) })
	}
	return s.near.Close()
}

// Kill implements runner.Sandbox.
func (s *fakeSandbox) Kill(ctx context.Context) error {
	if s.engine.host.HangAtKill {
		<-ctx.Done()
		return ctx.Err()
	}
	if s.engine.host.OnKill != nil {
		if err := s.engine.host.OnKill(ctx); err != nil {
			return err
		}
	}
	return s.end(ctx)
}

func (s *fakeSandbox) end(ctx context.Context) error {
	s.far.release()
	s.Close()
	select {
	case <-s.ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
