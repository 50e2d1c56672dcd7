package dependencies

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
	"golang.org/x/sync/singleflight"

	"notebox/environments"
	"notebox/runner"
)

// Layers gives environments their packages.
type Layers struct {
	options Options
	log     *slog.Logger
	origin  string              // of packages, in all names: the settings, and whether there are builds
	keeping *semaphore.Weighted // a lock of who makes room and commits; waiting for it heeds a context
	asking  singleflight.Group  // of installers for their hosts, by the keys of sources
	writing sync.Mutex          // of HostsFile
	waiting waiting

	mu      sync.Mutex
	bases   map[string]base   // the images of environments, by reference
	names   map[string]*name  // of sets
	layers  map[string]*layer // by their own name; an environment's own by "base " and its ID
	under   map[string]*install
	sources map[string]*source // by environment and image
	work    sync.WaitGroup
}

// base is an environment's own image.
type base struct {
	id     string
	looked time.Time
}

// layer is one that is there.
type layer struct {
	Image
	users  int // that have it now
	looked time.Time
	told   time.Time // when the daemon was told of its use
	stays  time.Time // when it could not be removed, last
	// held is true if a container was made of it when this process began: it is of a
	// session that goes on, which none of users counts.
	held bool
	// leaving is closed when it was removed, or could not be; nil if nobody tries.
	leaving chan struct{}
}

// name is what a set is known by.
type name struct {
	layer *layer
	used  time.Time
}

// Request is one for an environment with packages.
type Request struct {
	Environment environments.Environment
	Base        runner.Environment // what it is started from without packages
	Set         Set
	Owner       string // who asks, for fairness
	ID          string // of the request's run, for logs
	// Text hears what the installer says, in whole lines, from when the request comes in.
	// It must not wait. It is not called after Get has returned. May be nil.
	Text func(string)
	// Ran is called for each sandbox that ran for the request, with what Run returned and
	// the time from its call to its answer; also after Get has returned. May be nil.
	Ran func(*runner.Outcome, error, time.Duration, runner.Limits)
}

// Layer is what a request is given. Release must be called when its sandbox is gone: the
// layer is not removed before.
type Layer struct {
	Environment runner.Environment
	Packages    []environments.Package // that were installed for it
	Cached      bool                   // they were there before
	Took        time.Duration          // to install them, or to find out

	release func()
}

// NewLayer returns a Layer as others than Layers may give one.
func NewLayer(env runner.Environment, packages []environments.Package, took time.Duration, release func()) *Layer {
	return &Layer{Environment: env, Packages: packages, Took: took, release: release}
}

// Release says that the layer is not used any more. It may be called again.
func (l *Layer) Release() { l.release() }

// New returns Layers that know what is kept. images are the references of the
// environments' images: what was made from another is removed.
func New(ctx context.Context, o Options, images []string) (*Layers, error) {
	o.Timeout, o.MaxWaiting = cmp.Or(o.Timeout, DefaultTimeout), cmp.Or(o.MaxWaiting, DefaultMaxWaiting)
	o.MaxSize, o.MaxLayers, o.MaxTotal = cmp.Or(o.MaxSize, DefaultMaxSize), cmp.Or(o.MaxLayers, DefaultMaxLayers), cmp.Or(o.MaxTotal, DefaultMaxTotal)
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	if o.Observe == nil {
		o.Observe = func(string) {}
	}
	l := &Layers{
		options: o, log: o.Log, origin: hash(append(o.settings(), strconv.FormatBool(o.Builds))...),
		bases: map[string]base{}, names: map[string]*name{}, layers: map[string]*layer{},
		under: map[string]*install{}, sources: map[string]*source{}, keeping: semaphore.NewWeighted(1),
		waiting: waiting{most: o.MaxWaiting, owners: map[string]int{}},
	}
	if err := errors.Join(os.RemoveAll(o.TempDir), os.MkdirAll(o.TempDir, 0o700)); err != nil {
		return nil, fmt.Errorf("dependencies: temporary folder: %w", err)
	}
	return l, l.load(ctx, images)
}

// Parse is Parse with the operator's policy.
func (l *Layers) Parse(of environments.Dependencies, entries []string) (Set, error) {
	return Parse(of, entries, l.options.Policy)
}

// Allowed are the only packages that requests may ask for; nil: all.
func (l *Layers) Allowed() []string { return l.options.Allow }

// Wait returns when no installation goes on, or with ctx's error.
func (l *Layers) Wait(ctx context.Context) error {
	done := make(chan struct{})
	go func() { l.work.Wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Get returns the environment of a request with its packages: at once if they are
// known, else when they are installed. The end of ctx is the end of the wait, and of an
// installation that nobody else waits for. The error is a *Failure if the set cannot be
// had, and a *runner.Error if a caller can do something about it: of CodeFull if too
// many wait, and of CodeShare if too many of the owner's do.
func (l *Layers) Get(ctx context.Context, r Request) (*Layer, error) {
	began := time.Now()
	key, err := l.key(ctx, r)
	if err != nil {
		return nil, err
	}
	if found := l.known(ctx, key, r); found != nil {
		found.Took = time.Since(began)
		l.options.Observe(resultCached)
		return found, nil
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	leave, err := l.waiting.enter(r.Owner)
	if err != nil {
		return nil, err
	}
	defer leave()
	return l.join(ctx, key, r)
}

// key names a set: by all that decides what comes of it.
func (l *Layers) key(ctx context.Context, r Request) (string, error) {
	base, err := l.base(ctx, r.Base.Image)
	if err != nil {
		return "", err
	}
	return hash("set", r.Environment.Name, base, l.origin, r.Set.Notation, strings.Join(r.Set.Entries, "\n")), nil
}

// base is the ID of an environment's own image. It is looked at again now and then: an image
// that was built anew under its name has other layers. If the daemon does not answer,
// what was there holds.
func (l *Layers) base(ctx context.Context, ref string) (string, error) {
	l.mu.Lock()
	known := l.bases[ref]
	l.mu.Unlock()
	if known.id != "" && time.Since(known.looked) < lookEvery {
		return known.id, nil
	}
	ctx, cancel := context.WithTimeout(ctx, imagesTime)
	defer cancel()
	id, err := l.options.Images.ID(ctx, ref)
	switch {
	case errors.Is(err, ErrNoImage):
		return "", &runner.Error{Code: runner.CodeUnavailable, Message: "the sandbox image is missing", RetryAfter: unreachableRetry, Err: err}
	case err != nil && known.id != "":
		return known.id, nil
	case err != nil:
		return "", fmt.Errorf("dependencies: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.bases[ref] = base{id, time.Now()}
	return id, nil
}

// known returns the layer of a set that is there, or nil.
func (l *Layers) known(ctx context.Context, key string, r Request) *Layer {
	l.mu.Lock()
	n := l.names[key]
	for n != nil && n.layer.leaving != nil { // it may stay
		leaving := n.layer.leaving
		l.mu.Unlock()
		select {
		case <-leaving:
		case <-ctx.Done():
			return nil
		}
		l.mu.Lock()
		n = l.names[key]
	}
	if n == nil {
		l.mu.Unlock()
		return nil
	}
	now := time.Now()
	it := n.layer
	it.users++ // nobody removes it meanwhile
	look, touch := now.Sub(it.looked) > lookEvery, now.Sub(it.told) > touchEvery
	n.used, it.Used = now, now
	l.mu.Unlock()
	if look && l.gone(ctx, it) {
		l.release(it)
		return nil
	}
	if touch {
		l.touch(ctx, it, key)
	}
	return l.give(it, r, true, 0)
}

// gone looks whether an image was removed by others, and forgets it then.
func (l *Layers) gone(ctx context.Context, it *layer) bool {
	ctx, cancel := context.WithTimeout(ctx, imagesTime)
	defer cancel()
	_, err := l.options.Images.ID(ctx, it.Ref)
	l.mu.Lock()
	defer l.mu.Unlock()
	if !errors.Is(err, ErrNoImage) { // if the daemon does not answer, the run will say so
		it.looked = time.Now()
		return false
	}
	l.log.Warn("a layer of packages is gone; it is installed again", "environment", it.Environment, "ref", it.Ref)
	l.drop(it)
	return true
}

// drop forgets a layer. The lock is held.
func (l *Layers) drop(it *layer) {
	maps.DeleteFunc(l.names, func(_ string, n *name) bool { return n.layer == it })
	maps.DeleteFunc(l.layers, func(_ string, other *layer) bool { return other == it })
}

// touch tells the daemon that a layer is used, as a later process is to know.
func (l *Layers) touch(ctx context.Context, it *layer, key string) {
	l.mu.Lock()
	it.told = time.Now()
	l.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, imagesTime)
	defer cancel()
	if err := l.options.Images.Alias(ctx, it.Ref, key); err != nil {
		l.log.Warn("it is not recorded that a layer is used", "ref", it.Ref, "error", err)
	}
}

// give makes the answer of a layer whose users count the request.
func (l *Layers) give(it *layer, r Request, cached bool, took time.Duration) *Layer {
	env := r.Base
	if it.Layer != "" {
		env.Image = it.Ref
		env.Kernel.Packages = true
		variables := map[string]string{}
		maps.Copy(variables, env.Kernel.Env)
		maps.Copy(variables, r.Environment.Dependencies.Env)
		env.Kernel.Env = variables
		env.Kernel.WarmUp = append(r.Set.modules(env.Kernel.Name), env.Kernel.WarmUp...)
	}
	return &Layer{
		Environment: env, Packages: it.Packages, Cached: cached, Took: took,
		release: sync.OnceFunc(func() { l.release(it) }),
	}
}

func (l *Layers) release(it *layer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	it.users--
}
