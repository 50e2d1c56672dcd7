package sidecar

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"notebox/environments/supervisor/wire"
	"notebox/runner"
	"notebox/runner/posture"
)

const (
	// callTimeout bounds a call that does no waiting.
	callTimeout = 20 * time.Second
	// retryAfter is when those come back who wanted a sandbox and got none: a container is
	// started anew in some seconds.
	retryAfter = 5 * time.Second
	// workerMemory, bytes, and workerPids bound supervisor and zygote, as with Docker.
	workerMemory, workerPids = 1 << 30, 1024
	awaitPause               = 100 * time.Millisecond
	// idPrefix is what the id of each worker begins with: the environment's name is in it, for
	// a later process to know its socket.
	idPrefix, idEnd = "worker-", "-of-"
)

// Options of an Engine.
type Options struct {
	Folder  string // of the sockets
	Service string // whose workers these are; never empty
	// Socket returns the name of an environment's socket, without the ending: as a rule the
	// language's. Environments that share an image share a socket.
	Socket func(env runner.Environment) string
}

// Engine is a runner.Host of containers that others have started.
type Engine struct {
	options       Options
	mine          sync.Map     // the ids of workers that this process looks after
	cores, memory atomic.Int64 // of a container as it said last; memory is 0 where there is no limit
}

// New returns an engine. It does not look for containers yet.
func New(o Options) *Engine { return &Engine{options: o} }

var _ runner.Host = (*Engine)(nil)

// Start implements runner.Engine: there are no containers of a run's own.
func (e *Engine) Start(context.Context, runner.Environment, runner.Limits) (runner.Sandbox, error) {
	return nil, &runner.Error{Code: runner.CodeUnavailable, Message: "this service cannot run that: it has no containers of a run's own", RetryAfter: retryAfter}
}

// Keep implements runner.Keeper. There is nothing to keep but cells, which runner/cells does.
func (e *Engine) Keep(context.Context, runner.Sandbox) (string, error) {
	return "", errors.New("keep a sandbox: it is no cell")
}

// Adopt implements runner.Keeper.
func (e *Engine) Adopt(_ context.Context, name string) (runner.Sandbox, error) {
	return nil, fmt.Errorf("%w: %q is no cell", runner.ErrNoSandbox, name)
}

// Ready implements runner.Engine.
func (e *Engine) Ready(ctx context.Context, env runner.Environment) error {
	_, err := e.ask(ctx, e.options.Socket(env), wire.Call{Do: wire.CallReady})
	return err
}

// Capacity returns the cores of the host, and the bytes of memory that a container of workers may
// have: 0 if it has no limit. It is of the one that said so last, see Ready.
func (e *Engine) Capacity() (cores int, memory int64) {
	return int(e.cores.Load()), e.memory.Load()
}

// Await waits until the container of an environment is there: it may start after the service.
func (e *Engine) Await(ctx context.Context, env runner.Environment) error {
	for {
		err := e.Ready(ctx, env)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(awaitPause):
		}
	}
}

// StartWorker implements runner.Host.
func (e *Engine) StartWorker(ctx context.Context, env runner.Environment) (runner.Sandbox, []byte, runner.Walls, error) {
	socket, token := e.options.Socket(env), wire.NewToken()
	id := idPrefix + strings.ToLower(rand.Text()) + idEnd + socket
	s, a, err := e.open(ctx, socket, wire.Call{Do: wire.CallStart, ID: id, Token: token})
	if err != nil {
		return nil, nil, runner.Walls{}, err
	}
	return s, token, runner.Walls{
		FirstUser: a.FirstUser,
		Users:     a.Users,
		Memory:    workerMemory,
		Pids:      workerPids,
		Masked:    posture.Masked(a.Cores),
		ReadOnly:  posture.ReadOnly,
		Sysctls:   posture.Sysctls(),
		Seccomp:   posture.Seccomp,
		Mounts:    posture.CellMounts,
	}, nil
}

// AttachWorker implements runner.Host.
func (e *Engine) AttachWorker(ctx context.Context, id string) (runner.Sandbox, []byte, error) {
	_, socket, ok := strings.Cut(id, idEnd)
	if !ok || !strings.HasPrefix(id, idPrefix) || socket != filepath.Base(socket) {
		return nil, nil, fmt.Errorf("%w: %q is no worker's", runner.ErrNoSandbox, id)
	}
	s, a, err := e.open(ctx, socket, wire.Call{Do: wire.CallAttach, ID: id})
	if err != nil {
		return nil, nil, err
	}
	return s, a.Token, nil
}

// Reap implements runner.Engine. A worker is no sandbox, so none is counted.
func (e *Engine) Reap(ctx context.Context) (int, error) {
	var keep []string
	e.mine.Range(func(id, _ any) bool {
		keep = append(keep, id.(string))
		return true
	})
	sockets, err := filepath.Glob(filepath.Join(e.options.Folder, "*"+socketEnding))
	if err != nil {
		return 0, err
	}
	var all []error
	for _, path := range sockets {
		_, err := e.ask(ctx, strings.TrimSuffix(filepath.Base(path), socketEnding), wire.Call{Do: wire.CallReap, Keep: keep})
		if !errors.Is(err, syscall.ECONNREFUSED) { // else it is the socket of a container that is no more
			all = append(all, err)
		}
	}
	return 0, errors.Join(all...)
}

// socketEnding is that of the names of sockets.
const socketEnding = ".sock"

// open opens the stream of a worker.
func (e *Engine) open(ctx context.Context, socket string, call wire.Call) (*sandbox, wire.Answer, error) {
	e.mine.Store(call.ID, true)
	conn, in, a, err := e.call(ctx, socket, call)
	if err != nil {
		e.mine.Delete(call.ID)
		return nil, a, err
	}
	return newSandbox(e, socket, call.ID, conn, in), a, nil
}

// ask makes a call that has no stream.
func (e *Engine) ask(ctx context.Context, socket string, call wire.Call) (wire.Answer, error) {
	conn, _, a, err := e.call(ctx, socket, call)
	if conn != nil {
		conn.Close()
	}
	return a, err
}

// call makes a call. The connection is open if there is no error.
func (e *Engine) call(ctx context.Context, socket string, call wire.Call) (net.Conn, *bufio.Reader, wire.Answer, error) {
	call.Service = e.options.Service
	if call.Do != wire.CallWait {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, callTimeout)
		defer cancel()
	}
	var a wire.Answer
	conn, err := new(net.Dialer).DialContext(ctx, "unix", filepath.Join(e.options.Folder, socket+socketEnding))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, a, unavailable("no container is there for this language", fmt.Errorf("%w: %w", runner.ErrNoImage, err))
	} else if err != nil {
		return nil, nil, a, unavailable("the sandboxes' container does not answer", err)
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	in := bufio.NewReader(conn)
	if err = wire.WriteLine(conn, call); err == nil {
		err = wire.ReadLine(in, &a)
	}
	switch {
	case !stop():
		err = unavailable("the sandboxes' container does not answer", ctx.Err())
	case err != nil:
		err = unavailable("the sandboxes' container does not answer", err)
	case a.Version != wire.Version:
		err = unavailable("the sandboxes' container is of another version", fmt.Errorf("its listener speaks version %d, not %d", a.Version, wire.Version))
	case a.Unknown:
		err = fmt.Errorf("%w: %s", runner.ErrNoSandbox, call.ID)
	case a.Error != "":
		err = unavailable("a sandbox could not be started", errors.New(a.Error))
	}
	if err != nil {
		conn.Close()
		return nil, nil, a, err
	}
	e.cores.Store(int64(a.Cores))
	e.memory.Store(a.Memory)
	return conn, in, a, nil
}

func unavailable(message string, err error) error {
	return &runner.Error{Code: runner.CodeUnavailable, Message: message, RetryAfter: retryAfter, Err: err}
}
