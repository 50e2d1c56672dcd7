package cells

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"notebox/environments/supervisor/wire"
	"notebox/runner"
)

// errNotAdopted is that nobody has asked yet for a cell that an earlier process has kept.
var errNotAdopted = errors.New("cells: the cell was not adopted")

// keptMark is in the name of a cell that is kept, cellMark in that of another one: between
// the worker's and its number.
const keptMark, cellMark = "-session-", "-cell-"

// cell is one of a worker's, as long as it is there.
type cell struct {
	worker *worker
	number uint32
	kept   atomic.Bool
	// inherited is that an earlier process has kept it.
	inherited bool

	asked sync.Once
	once  sync.Once
	gone  chan struct{} // closed when nothing is left of it
	left  error         // what is left all the same

	asking sync.Mutex // one asks for it at a time

	mu     sync.Mutex
	stream *wire.Stream
	answer chan wire.Message // nil: none is awaited
}

func newCell(w *worker, number uint32) *cell {
	return &cell{worker: w, number: number, stream: w.link.Stream(number), gone: make(chan struct{})}
}

func (c *cell) id() string {
	mark := cellMark
	if c.kept.Load() {
		mark = keptMark
	}
	return fmt.Sprintf("%s%s%d", c.worker.sandbox.ID(), mark, c.number)
}

// parseKept takes the name of a kept cell apart.
func parseKept(name string) (worker string, number uint32, ok bool) {
	worker, digits, ok := strings.Cut(name, keptMark)
	if !ok {
		return "", 0, false
	}
	_, err := fmt.Sscanf(digits, "%d", &number)
	return worker, number, err == nil && fmt.Sprint(number) == digits
}

func (c *cell) current() *wire.Stream {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stream
}

// ask sends a message to the worker, and returns the answer.
func (c *cell) ask(ctx context.Context, kind wire.Kind) (wire.Message, error) {
	c.asking.Lock()
	defer c.asking.Unlock()
	answer := make(chan wire.Message, 1)
	c.mu.Lock()
	c.answer = answer
	c.mu.Unlock()
	if err := c.worker.link.Send(kind, c.number, nil); err != nil {
		return wire.Message{}, err
	}
	select {
	case m := <-answer:
		return m, nil
	case <-c.gone:
		return wire.Message{}, runner.ErrNoSandbox
	case <-c.worker.ended:
		return wire.Message{}, c.worker.failure()
	case <-ctx.Done():
		return wire.Message{}, ctx.Err()
	}
}

// answered takes the worker's answer, before what it sends after that.
func (c *cell) answered(m wire.Message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.answer == nil {
		return
	}
	if m.Kind == wire.KindHere {
		c.stream = c.worker.link.Stream(c.number)
	}
	c.answer <- m
	c.answer = nil
}

// keep has the cell outlive this process.
func (c *cell) keep(ctx context.Context) error {
	if c.kept.Load() {
		return nil
	}
	_, err := c.ask(ctx, wire.KindKeep)
	c.kept.Store(err == nil)
	return err
}

// attach begins its stream anew, and ends the one that there was.
func (c *cell) attach(ctx context.Context) (*sandbox, error) {
	c.current().Close()
	if _, err := c.ask(ctx, wire.KindAttach); err != nil {
		return nil, err
	}
	return newSandbox(c), nil
}

func (c *cell) kill(ctx context.Context) error {
	c.current().Close()
	c.asked.Do(func() { _ = c.worker.link.Send(wire.KindKill, c.number, nil) }) // if it fails, all cells end
	select {
	case <-c.gone:
		return c.left
	case <-ctx.Done():
		return fmt.Errorf("kill a cell: %w", ctx.Err())
	}
}

func (c *cell) leave(left error) {
	c.once.Do(func() {
		c.left = left
		close(c.gone)
	})
}

var _ runner.Cell = (*sandbox)(nil)

// sandbox is a runner.Cell: one stream to a cell.
type sandbox struct {
	cell   *cell
	stream *wire.Stream
	pace   pace
}

func newSandbox(c *cell) *sandbox { return &sandbox{cell: c, stream: c.current()} }

// ID implements runner.Sandbox.
func (s *sandbox) ID() string { return s.cell.id() }

// Worker implements runner.Cell.
func (s *sandbox) Worker() string { return s.cell.worker.sandbox.ID() }

// Read implements runner.Sandbox.
func (s *sandbox) Read(p []byte) (int, error) {
	n, err := s.stream.Read(p)
	s.pace.moved(n, s.cell.worker.others)
	return n, err
}

// Write implements runner.Sandbox. It waits for the cell's reader.
func (s *sandbox) Write(p []byte) (int, error) {
	n, err := s.stream.Write(p)
	s.pace.moved(n, s.cell.worker.others)
	return n, err
}

// Close implements runner.Sandbox. The worker is not told. A harness of single use that hears
// nothing any more ends by itself; a cell that is kept goes on.
func (s *sandbox) Close() error { return s.stream.Close() }

// Kill implements runner.Sandbox.
func (s *sandbox) Kill(ctx context.Context) error {
	s.Close()
	return s.cell.kill(ctx)
}
