package docker

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http/httptrace"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/system"
	"github.com/docker/docker/client"

	"notebox/runner"
	"notebox/runner/posture"
)

const (
	// callTimeout bounds one call of the daemon's API that does no waiting.
	callTimeout = 20 * time.Second
	// createTimeout is longer: a container that is being created is waited for,
	// as it cannot be called off.
	createTimeout = 2 * time.Minute
	// minCPUs is the daemon's own lower bound of cores.
	minCPUs = 0.01
	// namePrefix is what the name of each container begins with.
	namePrefix = "notebox-"
	// retryAfter is when those come back who wanted a sandbox and got none: a
	// daemon restarts in some seconds.
	retryAfter = 5 * time.Second
)

var (
	// errUnanswered is the cause if the daemon may have made a container and did
	// not say so.
	errUnanswered = errors.New("no answer")
	// errNotAsked is the cause if there was no daemon to make one.
	errNotAsked = errors.New("no connection")
)

// Options of an Engine.
type Options struct {
	ServiceID string // whose containers these are; never empty
	Layers    string // whose images with packages are used, which services may share; "": ServiceID
	Runtime   string // OCI runtime: "runc", "runsc", "kata", …; "" is the daemon's default
	// Fleeting has a sandbox end as soon as this process does. Without it a sandbox that may be
	// a session waits for another process, or for 30 s of silence.
	Fleeting bool
	Users    Users // that sandboxes have; the zero value is a default for the daemon
	Log      *slog.Logger
}

// Engine is a runner.Engine on a Docker daemon.
type Engine struct {
	api     *client.Client
	options Options
	cores   atomic.Int64 // of the daemon's host; 0 before it has said so

	mu      sync.Mutex
	known   map[string]ids // of the containers that this process looks after, by name
	users   Users          // of all sandboxes; zero before it is known
	others  []ids          // of other containers, when they were last looked at
	next    map[int]int    // where the next user is sought, by how many ids it is to have
	ending  sync.WaitGroup // starts that go on, and removals in the background
	closing chan struct{}  // closed by Close
}

// New returns an engine on the daemon that the environment names (DOCKER_HOST
// and its companions). It does not talk to it yet.
func New(o Options) (*Engine, error) {
	api, err := client.NewClientWithOpts(client.FromEnv, client.WithAPIVersionNegotiation())
	if err != nil {
		return nil, fmt.Errorf("docker client: %w", err)
	}
	return &Engine{api: api, options: o, known: map[string]ids{}, users: o.Users, next: map[int]int{}, closing: make(chan struct{})}, nil
}

// Close waits for what goes on in the background, or for ctx, and lets the
// connections go. It is called once.
func (e *Engine) Close(ctx context.Context) error {
	close(e.closing)
	done := make(chan struct{})
	go func() { e.ending.Wait(); close(done) }()
	select {
	case <-done:
	case <-ctx.Done():
	}
	return e.api.Close()
}

// Start implements runner.Engine. The daemon may answer late, or never: then
// what it makes is removed in the background.
func (e *Engine) Start(ctx context.Context, env runner.Environment, limits runner.Limits) (runner.Sandbox, error) {
	if err := posture.Check(limits); err != nil {
		return nil, err
	}
	return e.begin(ctx, func(name, id string) (*sandbox, error) {
		config := containerConfig(env, e.labels(id, env))
		config.StdinOnce = e.options.Fleeting
		err := e.createAlone(ctx, name, idsEach, config, func(user int) *container.HostConfig {
			return hostConfig(limits, e.options.Runtime, user, int(e.cores.Load()))
		})
		if err != nil {
			return nil, err
		}
		return e.run(ctx, name)
	})
}

func (e *Engine) labels(id string, env runner.Environment) map[string]string {
	return map[string]string{LabelService: e.options.ServiceID, labelSandbox: id, labelEnvironment: env.Name}
}

// begin has start make a container by a new name. If it does so too late, or fails, what it
// has made is removed in the background.
func (e *Engine) begin(ctx context.Context, start func(name, id string) (*sandbox, error)) (runner.Sandbox, error) {
	id := strings.ToLower(rand.Text())
	name := namePrefix + id
	return e.await(ctx, func() (*sandbox, error) {
		e.look(name, ids{})
		s, err := start(name, id)
		if err != nil {
			e.removeCreated(name, err)
		}
		return s, err
	}, func(s *sandbox) {
		s.Close()
		e.removeCreated(name, nil)
	})
}

// await returns the sandbox that open returns, or the end of ctx: a daemon that hangs does
// so without regard to ctx. unwanted is given a sandbox that comes after that.
func (e *Engine) await(ctx context.Context, open func() (*sandbox, error), unwanted func(*sandbox)) (runner.Sandbox, error) {
	type answer struct {
		s   *sandbox
		err error
	}
	answers := make(chan answer)
	e.ending.Go(func() {
		s, err := open()
		select {
		case answers <- answer{s, err}:
		case <-ctx.Done():
			if err == nil {
				unwanted(s)
			}
		}
	})
	select {
	case a := <-answers:
		if a.err != nil {
			return nil, e.explain(a.err)
		}
		return a.s, nil
	case <-ctx.Done():
		return nil, e.explain(ctx.Err())
	}
}

// run attaches to a container that was created, and starts it.
func (e *Engine) run(ctx context.Context, name string) (*sandbox, error) {
	s, err := e.attach(ctx, name, container.WaitConditionNextExit)
	if err != nil {
		return nil, err
	}
	if err := e.api.ContainerStart(ctx, name, container.StartOptions{}); err != nil {
		s.Close()
		return nil, fmt.Errorf("start container: %w", err)
	}
	return s, nil
}

// attach opens a stream to a container. exit is the end that is waited for.
func (e *Engine) attach(ctx context.Context, name string, exit container.WaitCondition) (*sandbox, error) {
	stream, err := e.api.ContainerAttach(ctx, name, container.AttachOptions{Stream: true, Stdin: true, Stdout: true, Stderr: true})
	if err != nil {
		return nil, fmt.Errorf("attach to container: %w", err)
	}
	return newSandbox(ctx, e, name, stream, exit), nil
}

// create waits for the daemon's answer even if ctx has ended: a container
// whose creation nobody waits for comes to be when it has been looked for already.
func (e *Engine) create(ctx context.Context, name string, c *container.Config, h *container.HostConfig) error {
	creating, cancel := context.WithTimeout(context.WithoutCancel(ctx), createTimeout)
	defer cancel()
	var connected atomic.Bool
	creating = httptrace.WithClientTrace(creating, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected.Store(true) }})
	_, err := e.api.ContainerCreate(creating, c, h, nil, nil, name)
	if errdefs.IsNotFound(err) {
		return imageMissing(err)
	}
	if err != nil && !connected.Load() {
		return fmt.Errorf("create container: %w: %w", errNotAsked, err)
	}
	if errors.Is(err, context.DeadlineExceeded) || client.IsErrConnectionFailed(err) {
		return fmt.Errorf("create container: %w: %w", errUnanswered, err)
	}
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("create container: %w", err)
	}
	return nil
}

// CanGive says why the daemon would refuse sandboxes with these limits, or nil.
func (e *Engine) CanGive(ctx context.Context, l runner.Limits) error {
	info, err := e.info(ctx)
	if err != nil {
		return err
	}
	if l.CPUs > float64(info.NCPU) || l.CPUs < minCPUs {
		return fmt.Errorf("sandboxes of %g cores: the Docker daemon has %d, and gives from %g", l.CPUs, info.NCPU, minCPUs)
	}
	if l.Memory > info.MemTotal {
		return fmt.Errorf("sandboxes of %d bytes of memory: the Docker daemon's host has %d", l.Memory, info.MemTotal)
	}
	// A name with a dot or a path is a containerd shim's, which no daemon lists.
	if r := e.options.Runtime; r != "" && !strings.ContainsAny(r, "./") {
		if _, ok := info.Runtimes[r]; !ok {
			return fmt.Errorf("the Docker daemon has no runtime %q; it has %s", r, strings.Join(slices.Sorted(maps.Keys(info.Runtimes)), ", "))
		}
	}
	return nil
}

// Capacity returns the cores and the bytes of memory of the daemon's host.
func (e *Engine) Capacity(ctx context.Context) (cores int, memory int64, err error) {
	info, err := e.info(ctx)
	return info.NCPU, info.MemTotal, err
}

// CgroupV1 reports whether the daemon's host counts memory by the first version of control
// groups, in which a sandbox's limit leaves out the buffers of its sockets.
func (e *Engine) CgroupV1(ctx context.Context) (bool, error) {
	info, err := e.info(ctx)
	return info.CgroupVersion == "1", err
}

func (e *Engine) info(ctx context.Context) (system.Info, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	info, err := e.api.Info(ctx)
	if err != nil {
		return system.Info{}, e.explain(err)
	}
	e.cores.Store(int64(info.NCPU))
	return info, nil
}

// Ready implements runner.Engine.
func (e *Engine) Ready(ctx context.Context, env runner.Environment) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	_, err := e.api.ImageInspect(ctx, env.Image)
	if errdefs.IsNotFound(err) {
		return imageMissing(err)
	}
	return e.explain(err)
}

// explain makes a runner.Error of what the daemon did not do: it is away, hangs, ends,
// or has no room on its disk, and all of that may be over soon. What it refuses to
// do for our asking is a fault of ours.
func (e *Engine) explain(err error) error {
	return explain(err, "starting a sandbox took too long", "the Docker daemon does not start sandboxes")
}

// explain takes the public words for what took too long, and for what failed.
func explain(err error, late, message string) error {
	switch {
	case err == nil, errors.As(err, new(*runner.Error)), errors.Is(err, runner.ErrNoSandbox), errdefs.IsInvalidArgument(err), errors.Is(err, context.Canceled):
		return err
	case client.IsErrConnectionFailed(err):
		message = "the Docker daemon does not answer"
	case errors.Is(err, context.DeadlineExceeded):
		message = late
	}
	return unavailable(message, err)
}

func imageMissing(err error) error {
	return unavailable("the sandbox image is missing: build it with `notebox image build`", fmt.Errorf("%w: %w", runner.ErrNoImage, err))
}

func unavailable(message string, err error) error {
	return &runner.Error{Code: runner.CodeUnavailable, Message: message, RetryAfter: retryAfter, Err: err}
}
