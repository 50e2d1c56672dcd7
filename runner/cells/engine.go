package cells

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"notebox/runner"
)

// closeTimeout bounds the removal of workers when the engine closes.
const closeTimeout = 15 * time.Second

// Options of an Engine.
type Options struct {
	// Modules are what a worker imports ahead for an environment, by its name.
	Modules func(environment string) []string
	Log     *slog.Logger
}

// Engine is a runner.Engine of cells in workers of a Host.
type Engine struct {
	host    runner.Host
	options Options

	mu      sync.Mutex
	workers map[string]*starting // by image
	closed  bool
}

// starting is a worker that starts, or has started.
type starting struct {
	done   chan struct{}
	worker *worker
	err    error
}

// New returns an engine on a host. It starts nothing yet.
func New(host runner.Host, o Options) *Engine {
	return &Engine{host: host, options: o, workers: map[string]*starting{}}
}

// suits reports whether runs of an environment can be cells. Packages of a caller are never
// imported in a zygote; other kernels than Python's are started by no fork.
func suits(env runner.Environment) bool {
	return env.Kernel.Spec() == runner.PythonKernel && !env.Kernel.Packages
}

// Start implements runner.Engine.
func (e *Engine) Start(ctx context.Context, env runner.Environment, limits runner.Limits) (runner.Sandbox, error) {
	if !suits(env) {
		return e.host.Start(ctx, env, limits)
	}
	w, err := e.worker(ctx, env)
	if err != nil {
		return nil, err
	}
	return w.open(ctx, limits)
}

// worker returns the one for an environment's image, which is started if there is none.
func (e *Engine) worker(ctx context.Context, env runner.Environment) (*worker, error) {
	e.mu.Lock()
	s := e.workers[env.Image]
	switch {
	case e.closed:
		e.mu.Unlock()
		return nil, errors.New("cells: the engine is closed")
	case s == nil:
		s = &starting{done: make(chan struct{})}
		e.workers[env.Image] = s
		go e.start(s, env)
	}
	e.mu.Unlock()
	select {
	case <-s.done:
		return s.worker, s.err
	case <-ctx.Done():
		return nil, unavailable("starting a sandbox took too long", ctx.Err())
	}
}

// start starts a worker on a context of its own: whoever asked first may give up, and others
// wait for it too.
func (e *Engine) start(s *starting, env runner.Environment) {
	forget := func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		if e.workers[env.Image] == s {
			delete(e.workers, env.Image)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	s.worker, s.err = startWorker(ctx, e.host, env, e.options, forget)
	if s.err != nil {
		forget()
	}
	close(s.done)
}

// Reap implements runner.Engine.
func (e *Engine) Reap(ctx context.Context) (int, error) { return e.host.Reap(ctx) }

// Ready implements runner.Engine.
func (e *Engine) Ready(ctx context.Context, env runner.Environment) error {
	return e.host.Ready(ctx, env)
}

// Close removes the workers, and all cells with them.
func (e *Engine) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	e.mu.Lock()
	e.closed = true
	all := e.workers
	e.mu.Unlock()
	var errs []error
	for _, s := range all {
		select {
		case <-s.done:
			if s.worker != nil {
				errs = append(errs, s.worker.sandbox.Kill(ctx))
			}
		case <-ctx.Done():
			errs = append(errs, ctx.Err())
		}
	}
	return errors.Join(errs...)
}
