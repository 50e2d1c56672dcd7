package storage

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
)

const (
	// readyTimeout bounds one probe: what takes longer for one byte is not ready.
	readyTimeout = 5 * time.Second

	// probeKey is one for all processes: whatever dies, it leaves one object at most.
	// Below runs/, as all that is ours, and no key that RunKey makes.
	probeKey = runsPrefix + "/=probe"
)

// probes lets one probe run at a time. If a disk hangs, its goroutine hangs too, and
// those who ask must not add one each.
type probes struct {
	life    context.Context // the Store's
	mu      sync.Mutex
	running *probe
}

type probe struct {
	done chan struct{}
	err  error // may be read when done is closed
}

// Ready reports whether the store can be written now, by writing a small object and
// removing it. It answers within 5 seconds, and calls at the same time share one probe.
func (s *Store) Ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	p := s.probes.join(s.tryWrite)
	select {
	case <-p.done:
		if p.err != nil {
			return fmt.Errorf("storage: not ready: %w", shown(p.err))
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("storage: not ready: no answer: %w", ctx.Err())
	}
}

// join returns the probe that is running, or starts one.
func (p *probes) join(try func(context.Context) error) *probe {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running != nil {
		return p.running
	}
	started := &probe{done: make(chan struct{})}
	p.running = started
	go func() {
		ctx, cancel := context.WithTimeout(p.life, readyTimeout)
		defer cancel()
		err := try(ctx)
		p.mu.Lock()
		p.running = nil
		p.mu.Unlock()
		started.err = err
		close(started.done)
	}()
	return started
}

func (s *Store) tryWrite(ctx context.Context) error {
	if _, err := s.put(ctx, probeKey, strings.NewReader("notebox"), probeKey); err != nil {
		return err
	}
	if err := s.remove(ctx, probeKey); err != nil && !errors.Is(err, ErrNotFound) {
		return err // not found: another process's probe removed it
	}
	return nil
}
