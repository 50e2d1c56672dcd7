package docker

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"github.com/docker/docker/api/types"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/pkg/stdcopy"

	"notebox/runner"
)

const (
	logTail = 8 << 10 // bytes of stderr that are kept: a Python traceback
	// exitTimeout is how long the daemon may take to tell the exit code after
	// the stream has ended.
	exitTimeout = 5 * time.Second
	// sigtermed is the exit code of a program that SIGTERM ended. No code in a sandbox
	// can send it to the harness: it is a daemon that ends, or `docker stop`.
	sigtermed = 128 + 15
)

// sandbox is a runner.Sandbox: one attached container.
type sandbox struct {
	engine *Engine
	name   string
	conn   net.Conn
	out    *io.PipeReader // the container's stdout
	log    tail           // the container's stderr
	exit   chan exitStatus
	cancel context.CancelFunc // of the wait for the exit
	once   sync.Once          // Close
	later  sync.Once          // the removal in the background
}

type exitStatus struct {
	code int
	err  error
}

// newSandbox begins to read the stream. starting ends what the daemon does not
// answer, and nothing else.
func newSandbox(starting context.Context, e *Engine, name string, stream types.HijackedResponse) *sandbox {
	out, in := io.Pipe()
	ctx, cancel := context.WithCancel(context.Background())
	defer context.AfterFunc(starting, cancel)()
	s := &sandbox{engine: e, name: name, conn: stream.Conn, out: out, exit: make(chan exitStatus, 1), cancel: cancel}
	// The container removes itself, so the wait must be there before it ends.
	ended, failed := e.api.ContainerWait(ctx, name, container.WaitConditionNextExit)
	go func() {
		select {
		case r := <-ended:
			s.exit <- exitStatus{code: int(r.StatusCode)}
		case err := <-failed:
			s.exit <- exitStatus{err: err}
		}
	}()
	go func() {
		_, err := stdcopy.StdCopy(in, &s.log, stream.Reader)
		if err == nil || errors.Is(err, net.ErrClosed) {
			err = io.EOF
		}
		in.CloseWithError(err)
	}()
	return s
}

// ID implements runner.Sandbox.
func (s *sandbox) ID() string { return s.name }

// Write implements runner.Sandbox.
func (s *sandbox) Write(p []byte) (int, error) { return s.conn.Write(p) }

// Read implements runner.Sandbox. Where the daemon goes away, and not the
// program inside, the error is a runner.Error.
func (s *sandbox) Read(p []byte) (int, error) {
	n, err := s.out.Read(p)
	if err == nil || errors.Is(err, io.ErrClosedPipe) {
		return n, err
	}
	select {
	case e := <-s.exit:
		s.exit <- e
		if e.err == nil {
			exit := &runner.ExitError{Code: e.code, Log: s.log.String()}
			if e.code == sigtermed {
				return n, unavailable("the Docker daemon ended the sandbox", exit)
			}
			return n, exit
		}
		err = errors.Join(err, e.err)
	case <-time.After(exitTimeout):
		if err == io.EOF {
			return n, &runner.ExitError{Code: -1, Log: s.log.String()}
		}
	}
	return n, unavailable("the Docker daemon went away", err)
}

// Close implements runner.Sandbox: it ends the stream, which ends the program
// inside before long; Kill makes sure.
func (s *sandbox) Close() error {
	s.once.Do(func() {
		s.conn.Close()
		s.out.CloseWithError(net.ErrClosed)
		s.cancel()
	})
	return nil
}

// Kill implements runner.Sandbox.
func (s *sandbox) Kill(ctx context.Context) error {
	// First: the daemon does not end a container whose output nobody takes.
	s.Close()
	err := s.engine.remove(ctx, s.name)
	if err != nil {
		s.later.Do(func() { s.engine.removeLater(s.name) })
	}
	return err
}

// tail keeps the last logTail bytes that were written to it.
type tail struct {
	mu   sync.Mutex
	data []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.data = append(t.data, p...)
	if over := len(t.data) - logTail; over > 0 {
		t.data = append(t.data[:0], t.data[over:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.data)
}
