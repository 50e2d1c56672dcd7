package dependencies

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"notebox/runner"
)

// install is one installation, and who waits for it.
type install struct {
	ctx    context.Context
	cancel context.CancelFunc
	done   chan struct{}

	// Under the lock of Layers:
	waiters map[*waiter]bool

	// After done:
	layer *layer
	took  time.Duration
	err   error

	telling sync.Mutex // of the waiters' Text
}

// install does the work, and hands the layer to everybody who waits.
func (l *Layers) install(in *install, key string, r Request) {
	began := time.Now()
	defer in.cancel()
	it, err := l.make(in, key, r)
	in.took, in.err = time.Since(began), err
	l.report(r, in, it)

	l.mu.Lock()
	if l.under[key] == in {
		delete(l.under, key)
	}
	if err == nil {
		it.users += len(in.waiters) - 1 // make has counted one, for this moment
		in.layer = it
	}
	close(in.done)
	l.mu.Unlock()
}

func (l *Layers) report(r Request, in *install, it *layer) {
	log := l.log.With("run", r.ID, "owner", r.Owner, "environment", r.Environment.Name, "took", in.took)
	failure := (*Failure)(nil)
	switch {
	case in.err == nil:
		l.options.Observe(resultOK)
		log.Info("packages installed", "asked", len(r.Set.Entries), "packages", len(it.Packages), "bytes", it.Bytes)
	case errors.As(in.err, &failure):
		l.options.Observe(resultFailed)
		log.Info("packages cannot be installed", "error", failure.Name)
	case in.ctx.Err() != nil:
		l.options.Observe(resultFailed)
		log.Info("an installation was cancelled")
	default:
		l.options.Observe(resultError)
		log.Warn("packages were not installed", "error", in.err)
	}
}

// make installs a set and keeps it. The layer's users count one.
func (l *Layers) make(in *install, key string, r Request) (it *layer, err error) {
	src, err := l.sourceOf(in.ctx, r)
	if err != nil {
		return nil, err
	}
	if err := src.reach(in.ctx); err != nil {
		return nil, err
	}
	request := map[string]any{
		"phase": "install", "dependencies": r.Set.Entries, "builds": l.options.Builds, "max_bytes": l.options.MaxSize,
	}
	s := l.newSink(func(text string) { l.tell(in, text) })
	err = l.run(in.ctx, r, request, src.network, s, func(out *runner.Outcome, err error) error {
		defer s.remove()
		if err = l.take(in, src, s, out, err); err == nil {
			it, err = l.keep(in, key, r, s)
		}
		return err
	})
	return it, err
}

// keep makes a layer of what was fetched, or finds the same.
func (l *Layers) keep(in *install, key string, r Request, got *sink) (*layer, error) {
	base, err := l.base(in.ctx, r.Base.Image)
	if err != nil {
		return nil, err
	}
	if err := l.keeping.Acquire(in.ctx, 1); err != nil {
		return nil, err
	}
	defer l.keeping.Release(1)
	if len(got.packages) == 0 {
		return l.adopt(in.ctx, key, "base "+base, func() (*layer, error) {
			return &layer{Image: Image{Ref: r.Base.Image, Base: base}}, nil
		})
	}
	own := hash("layer", r.Environment.Name, base, l.origin, fmt.Sprint(got.packages), got.sum)
	return l.adopt(in.ctx, key, own, func() (*layer, error) { return l.commit(in.ctx, own, base, r, got) })
}

// adopt gives a layer the name of a set. It makes the layer first if there is none. keeping
// is held.
func (l *Layers) adopt(ctx context.Context, key, own string, make func() (*layer, error)) (*layer, error) {
	l.mu.Lock()
	it := l.layers[own]
	if it != nil {
		it.users++
	}
	l.mu.Unlock()
	if it != nil && l.gone(ctx, it) {
		it = nil
	}
	if it == nil {
		var err error
		if it, err = make(); err != nil {
			return nil, err
		}
		it.users = 1
	}
	naming, cancel := context.WithTimeout(context.WithoutCancel(ctx), imagesTime) // else it was made for nothing
	defer cancel()
	err := l.options.Images.Alias(naming, it.Ref, key)
	now := time.Now()
	l.mu.Lock()
	it.Used, it.looked, it.told = now, now, now
	l.layers[own] = it
	if err != nil { // it has its own name, and is found by the next that comes to it
		it.users--
		l.mu.Unlock()
		return nil, fmt.Errorf("dependencies: name a layer: %w", err)
	}
	l.names[key] = &name{it, now}
	l.mu.Unlock()
	l.trim(ctx, it)
	return it, nil
}

// commit makes a layer. keeping is held. It waits for the daemon even if ctx has ended, as
// the daemon goes on: an image that comes to be when nobody looks is counted by nobody.
func (l *Layers) commit(ctx context.Context, own, base string, r Request, got *sink) (*layer, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := l.makeRoom(ctx, 1, got.bytes); err != nil {
		return nil, err
	}
	content, err := os.Open(got.archive)
	if err != nil {
		return nil, fmt.Errorf("dependencies: %w", err)
	}
	defer content.Close()
	committing, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitTime)
	defer cancel()
	image := Image{Layer: own, Environment: r.Environment.Name, Base: base, Packages: got.packages, Bytes: got.bytes}
	if image.Ref, err = l.options.Images.Commit(committing, r.Base.Image, own, content, image); err != nil {
		l.undo(ctx, own)
		return nil, fmt.Errorf("dependencies: keep a layer: %w", err)
	}
	return &layer{Image: image}, nil
}

// undo takes away what a commit that failed has made all the same.
func (l *Layers) undo(ctx context.Context, own string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), imagesTime)
	defer cancel()
	if err := l.options.Images.Forget(ctx, own); err != nil {
		l.log.Warn("a layer that was not finished may be left until the next start", "error", err)
	}
}

// take reads what an installer has left, or says why there is nothing.
func (l *Layers) take(in *install, src *source, s *sink, out *runner.Outcome, err error) error {
	if err == nil {
		err = l.outcome(in.ctx, out, s)
	}
	if err == nil {
		s.packages, err = decodePackages(s.resolved)
	}
	if err == nil && len(s.packages) > 0 && s.archive == "" {
		err = errors.New("dependencies: the installer names packages and gives none")
	}
	if unavailable := (*runner.Error)(nil); errors.As(err, &unavailable) && unavailable.Err == errUnreachable {
		err = src.unreached(in.ctx, s.raised.Message)
	}
	return err
}
