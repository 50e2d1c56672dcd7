package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"notebox/executor"
	"notebox/runner"
	"notebox/runner/pool"
)

// DefaultProbeEvery is how long a good run proves that code can be run: longer
// than load balancers' questions are apart.
const DefaultProbeEvery = provenFor

// probeTimeout of the probe's own cell, in the sandbox. /readyz waits less.
const probeTimeout = 5 * time.Second

// probeCode is the smallest run that has a result.
const probeCode = "1+1"

// prober proves by a run that code can be run:
//
//  1. It has one run at a time, and one within every at most.
//  2. It takes a sandbox that waits. If none does, and others run or start, the
//     service is busy, which says nothing: what was found last holds.
//  3. It waits for no place: it is a Runner without admission.
//  4. One that ends too late for the answer still counts for the next.
type prober struct {
	runner   runner.Runner
	spec     runner.Spec
	every    time.Duration
	pool     func() pool.Stats // may be nil
	now      func() time.Time
	work     *sync.WaitGroup
	life     context.Context
	observer Observer

	mu    sync.Mutex
	going bool
	begun time.Time
	found error // of the last run that said something
}

// errProbeLate is found while a probe has not ended in time.
var errProbeLate = errors.New("a run to prove readiness does not end")

func (s *Server) newProber(r runner.Runner, every time.Duration) (*prober, error) {
	env := &s.Environments[0]
	document, err := executor.MakeNotebook([]string{probeCode}, nil, executor.KernelOf(env))
	if err != nil {
		return nil, fmt.Errorf("readiness: %w", err)
	}
	limits := executor.LimitsOf(*env, s.Limits)
	limits.Timeout = probeTimeout
	return &prober{
		runner: r, every: every, pool: s.pool, now: s.Now, work: &s.background, life: s.Executor.Life(), observer: s.observer,
		spec: runner.Spec{
			ID: "probe", Notebook: document, Limits: limits, StopOnError: true,
			Environment: executor.EnvironmentOf(*env),
		},
	}, nil
}

// check returns why code cannot be run, as far as runs have shown. It returns at
// ctx's end.
func (p *prober) check(ctx context.Context) error {
	ended := p.begin()
	if ended != nil {
		select {
		case <-ended:
		case <-ctx.Done():
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.going && p.found == nil {
		return errProbeLate
	}
	return p.found
}

// begin starts a probe if it is the time for one, or finds the one that goes on.
// What it returns is closed at the end; nil: there is none.
func (p *prober) begin() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.going || !p.begun.IsZero() && p.now().Sub(p.begun).Abs() < p.every || p.busy() {
		return nil
	}
	p.going, p.begun = true, p.now()
	ended := make(chan struct{})
	p.work.Go(func() {
		defer close(ended)
		err := p.run()
		p.mu.Lock()
		defer p.mu.Unlock()
		p.going = false
		if full := (*runner.Error)(nil); errors.As(err, &full) && full.Code == runner.CodeFull {
			return
		}
		p.found = err
		p.observer.Probed(err == nil)
	})
	return ended
}

func (p *prober) busy() bool {
	if p.pool == nil {
		return false
	}
	stats := p.pool()
	return stats.Warm == 0 && stats.Running+stats.Starting > 0
}

// run makes one. Its bounds are the runner's own: a sandbox's start, a run's time.
func (p *prober) run() error {
	spec := p.spec
	spec.WaitUntil = time.Now() // for room: not at all
	out, err := p.runner.Run(p.life, spec, discard{})
	switch {
	case err != nil:
		return err
	case out.Status != runner.StatusOK:
		return fmt.Errorf("a run to prove readiness ended with %s", out.Status)
	}
	return nil
}

// forget drops what was found: a caller's run has shown better since.
func (p *prober) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.found = nil
}

// discard is the Sink of a run that nobody looks at.
type discard struct{}

func (discard) Output(runner.Event) {}

func (discard) File(_ context.Context, _ string, content io.Reader) error {
	_, err := io.Copy(io.Discard, content)
	return err
}
