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

	"notebox/environments/supervisor/tail"
	"notebox/runner"
)

const (
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
	name   string // that it was started with, or adopted by
	conn   net.Conn
	out    *io.PipeReader // the container's stdout
	log    tail.Tail      // the container's stderr
	exit   chan exitStatus
	cancel context.CancelFunc // of the wait for the exit
	once   sync.Once          // Close
	later  sync.Once          // the removal in the background

	mu      sync.Mutex
	kept    string // the name that Keep gives it; "" before
	renamed bool   // the daemon has said that it has that name
}

type exitStatus struct {
	code int
	err  error
}

// newSandbox begins to read the stream. starting ends what the daemon does not
// answer, and nothing else.
func newSandbox(starting context.Context, e *Engine, name string, stream types.HijackedResponse, condition container.WaitCondition) *sandbox {
	out, in := io.Pipe()
	ctx, cancel := context.WithCancel(context.Background())
	defer context.AfterFunc(starting, cancel)()
	s := &sandbox{engine: e, name: name, conn: stream.Conn, out: out, exit: make(chan exitStatus, 1), cancel: cancel}
	// The container removes itself, so the wait must be there before it ends.
	ended, failed := e.api.ContainerWait(ctx, name, condition)
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
func (s *sandbox) ID() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.renamed {
		return s.kept
	}
	return s.name
}

// names are all that the container may have. A removal by each in this order finds
// it, as it may only have changed from the first to the second meanwhile.
func (s *sandbox) names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kept == "" {
		return []string{s.name}
	}
	return []string{s.name, s.kept}
}

// Write implements runner.Sandbox.
func (s *sandbox) Write(p []byte) (int, error) { return s.conn.Write(p) }

// Read implements runner.Sandbox. If the daemon goes away, and not the
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

// Close implements runner.Sandbox. The program inside has no end of its input by that,
// but hears nothing any more.
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
	var all []error
	for _, name := range s.names() {
		all = append(all, s.engine.remove(ctx, name))
	}
	err := errors.Join(all...)
	if err != nil {
		s.later.Do(func() {
			s.engine.ending.Go(func() {
				for _, name := range s.names() {
					s.engine.removeUntilGone(name, false)
				}
			})
		})
	}
	return err
}
