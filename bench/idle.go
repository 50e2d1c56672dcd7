package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net/http"
	"time"
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

// poolState is the pool in the answer of GET /readyz.
type poolState struct {
	Warm      int `json:"warm"`
	Starting  int `json:"starting"`
	Size      int `json:"size"`
	Removing  int `json:"removing"`
	Sessions  int `json:"sessions"`  // open, whether or not they run
	Sandboxes int `json:"sandboxes"` // all that exist: starting, warm, running, of sessions, being removed
}

// idle: the pool is full, and nothing is started, running or removed.
func (p poolState) idle() bool {
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
	return p.idle(), fmt.Sprintf("%+v", *p), nil
}

func (s *service) pool(ctx context.Context) (*poolState, error) {
	ctx, cancel := context.WithTimeout(ctx, pollTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+"/readyz", nil)
	if err != nil {
		return nil, err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	var answer struct {
		Status string     `json:"status"`
		Detail string     `json:"detail"` // of a 503
		Pool   *poolState `json:"pool"`
	}
	if err := json.NewDecoder(res.Body).Decode(&answer); err != nil {
		return nil, fmt.Errorf("GET /readyz: %w", err)
	}
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("GET /readyz: %s %s", res.Status, answer.Detail)
	}
	if answer.Pool == nil {
		return nil, fmt.Errorf("GET /readyz tells nothing of a pool")
	}
	return answer.Pool, nil
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
