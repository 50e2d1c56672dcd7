package runnertest

import (
	"context"
	"io"
	"net"
	"strings"
	"sync"

	"notebox/runner"
)

// fakeSessionPrefix is what the ID of a sandbox begins with that is kept.
const fakeSessionPrefix = "session-"

var _ runner.Keeper = (*fakeEngine)(nil)

// Keep implements runner.Keeper.
func (e *fakeEngine) Keep(_ context.Context, s runner.Sandbox) (string, error) {
	e.host.mu.Lock()
	defer e.host.mu.Unlock()
	f, ok := s.(*fakeSandbox)
	if !ok || e.host.sandboxes[f.id] == nil {
		return "", runner.ErrNoSandbox
	}
	if !strings.HasPrefix(f.id, fakeSessionPrefix) {
		delete(e.host.sandboxes, f.id)
		delete(e.known, f.id)
		f.id = fakeSessionPrefix + f.id
		e.host.sandboxes[f.id], e.known[f.id] = f, true
	}
	f.far.keep()
	return f.id, nil
}

// Adopt implements runner.Keeper.
func (e *fakeEngine) Adopt(ctx context.Context, name string) (runner.Sandbox, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	e.host.mu.Lock()
	defer e.host.mu.Unlock()
	old := e.host.sandboxes[name]
	if old == nil || old.engine.service != e.service || !old.far.isKept() {
		return nil, runner.ErrNoSandbox
	}
	s := &fakeSandbox{engine: e, near: old.far.attach(), fakeBody: old.fakeBody}
	e.host.sandboxes[name], e.known[name] = s, true
	return s, nil
}

// line is a program's end of its stream. That of a sandbox which is kept outlives
// those who hold the other end: what is written meanwhile is lost.
type line struct {
	mu      sync.Mutex
	changed sync.Cond
	conn    net.Conn // nil: nobody is attached
	kept    bool
	over    bool
}

func newLine() (near net.Conn, l *line) {
	near, far := net.Pipe()
	l = &line{conn: far}
	l.changed.L = &l.mu
	return near, l
}

func (l *line) isKept() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.kept
}

func (l *line) keep() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.kept = true
}

// release has the stream end with who holds its other end.
func (l *line) release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.kept = false; l.conn == nil {
		l.over = true
	}
	l.changed.Broadcast()
}

// attach returns a new other end; the old one is closed.
func (l *line) attach() net.Conn {
	near, far := net.Pipe()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn != nil {
		l.conn.Close()
	}
	l.conn = far
	l.changed.Broadcast()
	return near
}

// Read implements io.Reader.
func (l *line) Read(p []byte) (int, error) {
	for {
		l.mu.Lock()
		for l.conn == nil && !l.over {
			l.changed.Wait()
		}
		conn := l.conn
		l.mu.Unlock()
		if conn == nil {
			return 0, io.EOF
		}
		n, err := conn.Read(p)
		if err == nil || !l.lost(conn) {
			return n, err
		}
	}
}

// Write implements io.Writer.
func (l *line) Write(p []byte) (int, error) {
	l.mu.Lock()
	conn, over := l.conn, l.over
	l.mu.Unlock()
	if over {
		return 0, io.ErrClosedPipe
	}
	if conn == nil {
		return len(p), nil
	}
	n, err := conn.Write(p)
	if err != nil && l.lost(conn) {
		return len(p), nil
	}
	return n, err
}

// lost reports whether the program goes on without this connection.
func (l *line) lost(conn net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.kept || l.over {
		return false
	}
	if l.conn == conn {
		l.conn = nil
	}
	return true
}

// Close ends the stream from this side.
func (l *line) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
	if l.conn != nil {
		l.conn.Close()
	}
	l.changed.Broadcast()
}
