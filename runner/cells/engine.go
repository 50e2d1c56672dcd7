package cells

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"notebox/runner"
	"notebox/runner/internal/conversation"
)

const (
	// closeTimeout bounds the removal of workers when the engine closes.
	closeTimeout = 30 * time.Second
	// DefaultRuns and DefaultAge are when a worker is renewed. Its cells have one layout of
	// addresses and one secret of hashes, which a thousand runs or an hour tell little of;
	// and what a zygote collects goes with it.
	DefaultRuns, DefaultAge = 1000, time.Hour
)

// Options of an Engine.
type Options struct {
	// Modules are what a worker imports ahead for an environment with PythonKernel, by its name.
	Modules func(environment string) []string
	Runs    int           // cells of a worker; 0 is DefaultRuns
	Age     time.Duration // of a worker; 0 is DefaultAge
	Log     *slog.Logger
}

// Engine is a runner.Engine of cells in workers of a Host.
type Engine struct {
	host    runner.Host
	options Options

	mu      sync.Mutex
	workers map[string]*starting // that take cells, by image
	renewed map[string]*starting // that are to take their place
	earlier map[string]*starting // that take no cells any more, or are of earlier processes, by their ids
	adopted map[*cell]bool
	closed  bool
	closing context.Context // of starts
	close   context.CancelFunc
	work    sync.WaitGroup // starts, and ends of workers that were renewed
}

// starting is a worker that starts, or has started.
type starting struct {
	done   chan struct{}
	worker *worker
	err    error
}

// New returns an engine on a host. It starts nothing yet.
func New(host runner.Host, o Options) *Engine {
	o.Runs, o.Age = cmp.Or(o.Runs, DefaultRuns), cmp.Or(o.Age, DefaultAge)
	e := &Engine{host: host, options: o, workers: map[string]*starting{}, renewed: map[string]*starting{}, earlier: map[string]*starting{}, adopted: map[*cell]bool{}}
	e.closing, e.close = context.WithCancel(context.Background())
	return e
}

// suits reports whether runs of an environment can be cells. Packages of a caller are never
// imported in a zygote, and are in an image of their own.
func suits(env runner.Environment) bool { return !env.Kernel.Packages }

// Start implements runner.Engine.
func (e *Engine) Start(ctx context.Context, env runner.Environment, limits runner.Limits) (runner.Sandbox, error) {
	if !suits(env) {
		return e.host.Start(ctx, env, limits)
	}
	for {
		w, err := e.worker(ctx, env)
		if err != nil {
			return nil, err
		}
		c, err := w.open(ctx, limits)
		if !errors.Is(err, errRetired) {
			if err != nil {
				return nil, err
			}
			return &sandbox{c, c.current()}, nil
		}
	}
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
		s = e.start(env)
		e.workers[env.Image] = s
	case s.started() && s.worker.isSick():
		e.earlier[s.worker.sandbox.ID()] = s
		e.work.Go(s.worker.retire)
		s = e.start(env)
		e.workers[env.Image] = s
	case s.started() && s.worker.worn(e.options) && e.renewed[env.Image] == nil:
		e.renew(env, s)
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
// wait for it too. The lock is held.
func (e *Engine) start(env runner.Environment) *starting {
	s := &starting{done: make(chan struct{})}
	e.work.Go(func() {
		defer close(s.done)
		ctx, cancel := context.WithTimeout(e.closing, startTimeout)
		defer cancel()
		s.worker, s.err = startWorker(ctx, e.host, env, e.options, func() { e.forget(env.Image, s) })
		if s.err != nil {
			e.forget(env.Image, s)
		}
	})
	return s
}

// renew has another worker take the place of one that has served its time. Until that is up
// the old one takes cells; then it ends with its last one. The lock is held.
func (e *Engine) renew(env runner.Environment, old *starting) {
	s := e.start(env)
	e.renewed[env.Image] = s
	e.work.Go(func() {
		<-s.done
		e.mu.Lock()
		delete(e.renewed, env.Image)
		replaced := s.err == nil && e.workers[env.Image] == old && !e.closed
		if replaced {
			e.workers[env.Image] = s
			e.earlier[old.worker.sandbox.ID()] = old
		}
		e.mu.Unlock()
		switch {
		case replaced:
			old.worker.retire()
		case s.err == nil: // the old one has ended, and another was started already
			s.worker.retire()
		default:
			e.options.Log.Warn("a worker of cells could not be renewed; the old one goes on", "image", env.Image, "error", s.err)
		}
	})
}

func (e *Engine) forget(image string, s *starting) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.workers[image] == s {
		delete(e.workers, image)
	}
	maps.DeleteFunc(e.earlier, func(_ string, other *starting) bool { return other == s })
}

// started reports whether a worker is up.
func (s *starting) started() bool {
	select {
	case <-s.done:
		return s.err == nil
	default:
		return false
	}
}

// Probe says why cells of an environment are not possible on this host, or nil. A cell that
// is ready has all its walls: what does not build one of them ends.
func (e *Engine) Probe(ctx context.Context, env runner.Environment, limits runner.Limits) error {
	s, err := e.Start(ctx, env, limits)
	if err != nil {
		return err
	}
	env.Kernel.WarmUp = nil
	err = conversation.New(s, e.options.Log).AwaitReady(ctx, env.Kernel, nil)
	return errors.Join(err, s.Kill(ctx))
}

var _ runner.Keeper = (*Engine)(nil)

// Keep implements runner.Keeper.
func (e *Engine) Keep(ctx context.Context, s runner.Sandbox) (string, error) {
	mine, ok := s.(*sandbox)
	if !ok {
		return e.host.Keep(ctx, s)
	}
	if err := mine.cell.keep(ctx); err != nil {
		return "", unavailable("a sandbox could not be kept", err)
	}
	return mine.ID(), nil
}

// Adopt implements runner.Keeper.
func (e *Engine) Adopt(ctx context.Context, name string) (runner.Sandbox, error) {
	id, number, ok := parseKept(name)
	if !ok {
		return e.host.Adopt(ctx, name)
	}
	w, err := e.find(ctx, id)
	if err != nil {
		return nil, err
	}
	c := w.cell(number)
	if c == nil || !c.kept.Load() {
		return nil, fmt.Errorf("%w: %q is no session's", runner.ErrNoSandbox, name)
	}
	s, err := c.attach(ctx)
	if err != nil {
		return nil, err
	}
	e.mu.Lock()
	e.adopted[c] = true
	e.mu.Unlock()
	return s, nil
}

// find returns a worker by its id: one of this process's, or one of an earlier process, which
// it comes to.
func (e *Engine) find(ctx context.Context, id string) (*worker, error) {
	e.mu.Lock()
	for _, s := range slices.Concat(slices.Collect(maps.Values(e.workers)), slices.Collect(maps.Values(e.renewed))) {
		if s.started() && s.worker.sandbox.ID() == id {
			e.mu.Unlock()
			return s.worker, nil
		}
	}
	s := e.earlier[id]
	if s == nil {
		s = &starting{done: make(chan struct{})}
		e.earlier[id] = s
		e.work.Go(func() {
			defer close(s.done)
			ctx, cancel := context.WithTimeout(e.closing, startTimeout)
			defer cancel()
			forget := func() { e.forget("", s) }
			if s.worker, s.err = attachWorker(ctx, e.host, id, e.options, forget); s.err != nil {
				forget()
			}
		})
	}
	e.mu.Unlock()
	select {
	case <-s.done:
		return s.worker, s.err
	case <-ctx.Done():
		return nil, unavailable("adopting a sandbox took too long", ctx.Err())
	}
}

// Reap implements runner.Engine. A worker of an earlier process is one, and so is each cell
// that it has kept and nobody has adopted.
func (e *Engine) Reap(ctx context.Context) (int, error) {
	reaped, err := e.host.Reap(ctx)
	e.mu.Lock()
	earlier := slices.Collect(maps.Values(e.earlier))
	e.mu.Unlock()
	errs := []error{err}
	for _, s := range earlier {
		if !s.started() {
			continue
		}
		for _, c := range s.worker.all() {
			e.mu.Lock()
			adopted := e.adopted[c]
			e.mu.Unlock()
			if c.inherited && !adopted {
				errs = append(errs, c.kill(ctx))
				reaped++
			}
		}
	}
	return reaped, errors.Join(errs...)
}

// Ready implements runner.Engine.
func (e *Engine) Ready(ctx context.Context, env runner.Environment) error {
	return e.host.Ready(ctx, env)
}

// Close removes the workers, and all cells with them; but a worker with cells that are kept
// stays with these.
func (e *Engine) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	e.mu.Lock()
	e.closed = true
	e.close()
	all := slices.Concat(slices.Collect(maps.Values(e.workers)), slices.Collect(maps.Values(e.renewed)), slices.Collect(maps.Values(e.earlier)))
	e.mu.Unlock()
	var errs []error
	for _, s := range all {
		select {
		case <-s.done:
			if s.worker != nil {
				errs = append(errs, s.worker.close())
			}
		case <-ctx.Done():
			errs = append(errs, ctx.Err())
		}
	}
	e.work.Wait()
	return errors.Join(errs...)
}
