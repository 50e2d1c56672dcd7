package sidecar

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"syscall"
	"time"

	"notebox/environments/supervisor/wire"
	"notebox/runner"
)

const (
	// exitTimeout is how long a listener may take to tell the exit code after the stream has
	// ended.
	exitTimeout = 5 * time.Second
)

// sandbox is a runner.Sandbox: the stream of one worker.
type sandbox struct {
	engine     *Engine
	socket, id string
	conn       net.Conn
	in         *bufio.Reader
	exit       chan exit          // has one element, which stays there
	cancel     context.CancelFunc // of the wait for that
	once       sync.Once          // Close
}

type exit struct {
	wire.Answer
	err error
}

func newSandbox(e *Engine, socket, id string, conn net.Conn, in *bufio.Reader) *sandbox {
	ctx, cancel := context.WithCancel(context.Background())
	s := &sandbox{engine: e, socket: socket, id: id, conn: conn, in: in, exit: make(chan exit, 1), cancel: cancel}
	go func() {
		a, err := e.ask(ctx, socket, wire.Call{Do: wire.CallWait, ID: id})
		s.exit <- exit{a, err}
	}()
	return s
}

// ID implements runner.Sandbox.
func (s *sandbox) ID() string { return s.id }

// Write implements runner.Sandbox.
func (s *sandbox) Write(p []byte) (int, error) {
	n, err := s.conn.Write(p)
	return n, s.why(err)
}

// Read implements runner.Sandbox.
func (s *sandbox) Read(p []byte) (int, error) {
	n, err := s.in.Read(p)
	return n, s.why(err)
}

// why makes of the end of the stream that of the worker.
func (s *sandbox) why(err error) error {
	if err == nil || errors.Is(err, net.ErrClosed) {
		return err
	}
	select {
	case e := <-s.exit:
		s.exit <- e
		if e.err == nil {
			return &runner.ExitError{Code: e.Code, Log: e.Log}
		}
		err = errors.Join(err, e.err)
	case <-time.After(exitTimeout):
		if errors.Is(err, io.EOF) {
			return &runner.ExitError{Code: -1}
		}
	}
	return unavailable("the sandboxes' container went away", err)
}

// Close implements runner.Sandbox.
func (s *sandbox) Close() error {
	s.once.Do(func() {
		s.conn.Close()
		s.cancel()
	})
	return nil
}

// Kill implements runner.Sandbox. A container that is gone has taken the worker along.
func (s *sandbox) Kill(ctx context.Context) error {
	s.Close()
	end := wire.Call{Do: wire.CallEnd, ID: s.id}
	_, err := s.engine.ask(ctx, s.socket, end)
	if errors.Is(err, syscall.ECONNRESET) || errors.Is(err, io.EOF) { // it is just ending
		_, err = s.engine.ask(ctx, s.socket, end)
	}
	if errors.Is(err, runner.ErrNoSandbox) || errors.Is(err, runner.ErrNoImage) || errors.Is(err, syscall.ECONNREFUSED) {
		err = nil
	}
	if err == nil {
		s.engine.mine.Delete(s.id)
	}
	return err
}
