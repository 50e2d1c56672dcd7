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
)

const (
	// closeTimeout bounds the removal of workers when the engine closes.
	closeTimeout = 30 * time.Second
	// DefaultRuns and DefaultAge are when a worker is renewed. Its cells have one layout of
	// addresses and one secret of hashes, which a thousand runs or an hour tell little of;
	// and what a zygote collects goes with it.
	DefaultRuns, DefaultAge = 1000, time.Hour
	// DefaultSpareAfter lets the runs that waited for a worker come first.
	DefaultSpareAfter = 3 * time.Second
	// lookEvery is how often the engine looks what is missing, or is not used any more.
	lookEvery = time.Second
	// aheadAfter is how long an engine has been there when it starts workers that nobody has asked
	// for yet.
	aheadAfter = 5 * time.Second
	// failedPause is how long no spare worker is started after one did not start.
	failedPause = 30 * time.Second
	// idleTime is how long a worker stays that has no cell: as long as a by-use stock of the
	// pool does. Its kind's spare one stays as long after the last worker.
	idleTime = 10 * time.Minute
	// manyWorkers in use are so many that one without a cell ends when another begins. Each
	// takes a block of ids, of which the default range has 67.
	manyWorkers = 8
)

// Options of an Engine.
type Options struct {
	// Modules are what a worker imports ahead for an environment with PythonKernel, by its name.
	Modules func(environment string) []string
	Runs    int           // cells of a worker; 0 is DefaultRuns
	Age     time.Duration // of a worker; 0 is DefaultAge
	// SpareAfter is how long a worker has been in use when a spare one is started beside it;
	// 0 is DefaultSpareAfter.
	SpareAfter time.Duration
	Log        *slog.Logger

	late   func() // is called if a cell takes long to begin
	others *others
}

// Engine is a runner.Engine of cells in workers of a Host.
type Engine struct {
	host    runner.Host
	options Options

	mu      sync.Mutex
	workers map[place]*starting  // that take cells
	spares  map[kind]*starting   // that have had no cell, and are nobody's yet
	earlier map[string]*starting // that take no cells any more, or are of earlier processes, by their ids
	failed  map[kind]time.Time   // when one did not start
	used    map[kind]time.Time   // when there was one that took cells
	lost    int                  // workers that ended by themselves
	ahead   []runner.Environment // that always have a worker
	adopted map[*cell]bool
	begun   time.Time
	closed  bool
	calming sync.Mutex      // held while workers are told
	closing context.Context // of starts
	close   context.CancelFunc
	work    sync.WaitGroup // starts, and ends of workers that were renewed
}

// kind is what workers have in common that are alike.
type kind struct{ image, kernel string }

// place is whose cells a worker has.
type place struct {
	kind
	owner string
}

func placeOf(env runner.Environment) place {
	return place{kind{env.Image, env.Kernel.Spec()}, env.Owner}
}

// starting is a worker that starts, or has started.
type starting struct {
	env    runner.Environment
	taken  time.Time // it is a place's since then; under the engine's lock
	done   chan struct{}
	worker *worker
	err    error
}

// New returns an engine on a host. It starts no worker yet.
func New(host runner.Host, o Options) *Engine {
	o.Runs, o.Age, o.SpareAfter = cmp.Or(o.Runs, DefaultRuns), cmp.Or(o.Age, DefaultAge), cmp.Or(o.SpareAfter, DefaultSpareAfter)
	e := &Engine{host: host, options: o, workers: map[place]*starting{}, spares: map[kind]*starting{}, failed: map[kind]time.Time{}, used: map[kind]time.Time{}, earlier: map[string]*starting{}, adopted: map[*cell]bool{}, begun: time.Now()}
	e.options.late, e.options.others = e.calm, new(others)
	e.closing, e.close = context.WithCancel(context.Background())
	e.work.Go(e.watch)
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
			return newSandbox(c), nil
		}
	}
}

// worker returns the one that an environment's cells are in: if there is none that takes any,
// the spare one, or one that is started.
func (e *Engine) worker(ctx context.Context, env runner.Environment) (*worker, error) {
	at := placeOf(env)
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		return nil, errors.New("cells: the engine is closed")
	}
	s := e.workers[at]
	if s != nil && s.started() {
		switch worn := s.worker.worn(e.options); {
		case s.worker.isSick(), s.worker.isFull(), worn && e.spares[at.kind].started():
			e.leave(at)
			s = nil
		case worn: // it takes cells until the next one is up
			e.prepare(env)
		}
	}
	if s == nil {
		s = e.next(at, env)
	}
	e.mu.Unlock()
	select {
	case <-s.done:
		return s.worker, s.err
	case <-ctx.Done():
		return nil, unavailable("starting a sandbox took too long", ctx.Err())
	}
}

// next has a place's next worker be the spare one, or one that is started now. The lock is
// held.
func (e *Engine) next(at place, env runner.Environment) *starting {
	s := e.spares[at.kind]
	delete(e.spares, at.kind)
	if s == nil {
		s = e.start(env)
	}
	e.crowded()
	e.workers[at], s.taken = s, time.Now()
	return s
}

// leave has a place's worker take no cells any more: it ends with its last one. The lock is
// held.
func (e *Engine) leave(at place) {
	s := e.workers[at]
	delete(e.workers, at)
	e.retire(s)
}

func (e *Engine) retire(s *starting) {
	e.earlier[s.worker.sandbox.ID()] = s
	e.work.Go(s.worker.retire)
}

// start starts a worker on a context of its own: whoever asked first may give up, and others
// wait for it too. The lock is held.
func (e *Engine) start(env runner.Environment) *starting {
	s := &starting{env: env, done: make(chan struct{})}
	e.work.Go(func() {
		defer close(s.done)
		ctx, cancel := context.WithTimeout(e.closing, startTimeout)
		defer cancel()
		s.worker, s.err = startWorker(ctx, e.host, env, e.options, func(lost bool) { e.forget(s, lost) })
		if s.err != nil {
			e.forget(s, false)
			e.mu.Lock()
			defer e.mu.Unlock()
			e.failed[placeOf(env).kind] = time.Now()
			if s.taken.IsZero() && !e.closed { // who waits for one says so
				e.options.Log.Warn("a spare worker of cells does not start", "image", env.Image, "error", s.err)
			}
		}
	})
	return s
}

// forget drops a worker that has ended.
func (e *Engine) forget(s *starting, lost bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if lost {
		e.lost++
	}
	maps.DeleteFunc(e.workers, func(_ place, other *starting) bool { return other == s })
	maps.DeleteFunc(e.spares, func(_ kind, other *starting) bool { return other == s })
	maps.DeleteFunc(e.earlier, func(_ string, other *starting) bool { return other == s })
}

// all are the workers that there are. The lock is held.
func (e *Engine) all() []*starting {
	return slices.Concat(slices.Collect(maps.Values(e.workers)), slices.Collect(maps.Values(e.spares)), slices.Collect(maps.Values(e.earlier)))
}

// started reports whether there is a worker that is up.
func (s *starting) started() bool {
	if s == nil {
		return false
	}
	select {
	case <-s.done:
		return s.err == nil
	default:
		return false
	}
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
	for _, s := range e.workers {
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
			s.worker, s.err = attachWorker(ctx, e.host, id, e.options, func(lost bool) { e.forget(s, lost) })
			if s.err != nil {
				e.forget(s, false)
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
	all := e.all()
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
