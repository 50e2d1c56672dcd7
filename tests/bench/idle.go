package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"notebox/client"
)

const (
	// idleTimeout is for a full pool on a machine that starts one at a time.
	idleTimeout = 2 * time.Minute
	idlePoll    = 20 * time.Millisecond
	// quietTime is how long the machine is left alone before a run: what a start
	// or a removal leaves for the daemon to do is done by then.
	quietTime = 100 * time.Millisecond
	pollTime  = 10 * time.Second // of one question
	// busyCores is what an idle machine may spend: a daemon or two, and the pings
	// of a pool. The cheapest load takes half a core.
	busyCores = 0.2
)

// atRest: the pool is full, and nothing is started, running or removed.
func atRest(p client.Pool) bool {
	return p.Warm >= p.Size && p.Starting == 0 && p.Removing == 0 && p.Sandboxes == p.Warm+p.Sessions
}

// awaitIdle waits until the service has nothing to do.
func (s *service) awaitIdle(ctx context.Context) error {
	for deadline := time.Now().Add(idleTimeout); ; {
		idle, state, err := s.isIdle(ctx)
		if idle {
			return nil
		}
		if time.Now().After(deadline) {
			return errors.Join(fmt.Errorf("the service is not idle after %s: %s", idleTimeout, state), err)
		}
		if err := sleep(ctx, idlePoll); err != nil {
			return err
		}
	}
}

// isIdle also says in words what it found, for the case that it stays so.
func (s *service) isIdle(ctx context.Context) (idle bool, state string, err error) {
	p, err := s.pool(ctx)
	if err != nil {
		return false, "its state is not known", err
	}
	if p.Size != s.size {
		return false, fmt.Sprintf("a pool of %d was asked for, and it has one of %d", s.size, p.Size), nil
	}
	return atRest(*p), fmt.Sprintf("%+v", *p), nil
}

func (s *service) pool(ctx context.Context) (*client.Pool, error) {
	ctx, cancel := context.WithTimeout(ctx, pollTime)
	defer cancel()
	p, err := s.client().Ready(ctx)
	if err == nil && p == nil {
		err = errors.New("GET /readyz tells nothing of a pool")
	}
	return p, err
}

// awaitQuiet waits until the machine has nothing else to do: its CPU time is counted
// as ours.
func (b *bench) awaitQuiet(ctx context.Context) error {
	if b.quick {
		return nil
	}
	for deadline := time.Now().Add(idleTimeout); ; {
		cores, err := b.idleCPU(ctx, time.Second)
		if err != nil || cores <= busyCores {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("something else keeps %.2f cores of this machine busy: the figures would be wrong", cores)
		}
		log.Printf("waiting: something else keeps %.2f cores busy", cores)
	}
}

// idleCPU is what the machine spends in that time, in cores.
func (b *bench) idleCPU(ctx context.Context, d time.Duration) (float64, error) {
	before, err := readCPU()
	if err != nil {
		return 0, err
	}
	if err := sleep(ctx, d); err != nil {
		return 0, err
	}
	after, err := readCPU()
	return round(after.since(before).busy/d.Seconds(), 4), err
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
