package intake

import (
	"context"
	"fmt"
	"os"
	"time"
)

const (
	// DiskRetry is when those come back whose files had no room: others' requests
	// are over by then.
	DiskRetry = 10 * time.Second
	// probeBytes is what a probe writes: a block of a file system, as less may have a
	// place if none is left.
	probeBytes = 4 << 10
)

// diskProbe tells whether files can be written to a folder now. If the disk hangs,
// one goroutine does, and not one for each call.
type diskProbe struct {
	folder string
	place  chan struct{} // has room for one: the probe that goes on
}

// ready returns nil if a file could be written, within ctx.
func (p *diskProbe) ready(ctx context.Context) error {
	select {
	case p.place <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("write to the temporary folder: no answer: %w", ctx.Err())
	}
	written := make(chan error, 1)
	go func() {
		defer func() { <-p.place }()
		written <- p.write()
	}()
	select {
	case err := <-written:
		return err
	case <-ctx.Done():
		return fmt.Errorf("write to the temporary folder: no answer: %w", ctx.Err())
	}
}

// write leaves nothing; what a process that dies leaves is swept with the workspaces.
func (p *diskProbe) write() error {
	f, err := os.CreateTemp(p.folder, workspacePrefix)
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(make([]byte, probeBytes))
	if closed := f.Close(); err == nil {
		err = closed
	}
	return err
}
