package cells

import (
	"context"
	"fmt"
	"sync"

	"notebox/environments/supervisor/wire"
)

// cell is a runner.Sandbox.
type cell struct {
	worker *worker
	number uint32
	stream *wire.Stream

	asked sync.Once
	once  sync.Once
	gone  chan struct{} // closed when nothing is left of it
	left  error         // what is left all the same
}

// ID implements runner.Sandbox.
func (c *cell) ID() string { return fmt.Sprintf("%s-cell-%d", c.worker.sandbox.ID(), c.number) }

// Read implements runner.Sandbox.
func (c *cell) Read(p []byte) (int, error) { return c.stream.Read(p) }

// Write implements runner.Sandbox. It waits for the cell's reader.
func (c *cell) Write(p []byte) (int, error) { return c.stream.Write(p) }

// Close implements runner.Sandbox. A cell hears nothing any more, and ends by that.
func (c *cell) Close() error { return c.stream.Close() }

// Kill implements runner.Sandbox.
func (c *cell) Kill(ctx context.Context) error {
	c.Close()
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
