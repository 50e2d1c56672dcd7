package storagetest

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"notebox/tests/logged"
)

const (
	// startTimeout is for a machine that does much else: each starts in a second or two.
	startTimeout = 2 * time.Minute

	// stopTimeout is longer than idle connections hold a server that ends.
	stopTimeout = 30 * time.Second

	// Linux gives out 32768 and above.
	firstPort, lastPort = 20000, 32000

	// maxPortLooks is far more than there are tests at one time.
	maxPortLooks = 1000

	// portTries bounds how often another process may take the port that was free.
	portTries = 5
)

// Server is one server program that a test has started.
type Server struct {
	// Endpoint is the address that it answers at: http://127.0.0.1:12345.
	Endpoint string

	port      int
	name      string
	command   func(port int) *exec.Cmd
	answers   func() error                    // nil: it answers over HTTP
	stopping  func(ctx context.Context) error // while it still runs
	started   func(ctx context.Context) error // when it answers again
	variables map[string]string
	url       func(container string) string

	mu      sync.Mutex
	count   int
	running *process
}

// process is one life of the server.
type process struct {
	command *exec.Cmd
	ended   chan struct{}
	output  *logged.Buffer // what it prints
}

// URL names a container or bucket of its own for each call; it is not there yet.
func (s *Server) URL(testing.TB) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count++
	return s.url(fmt.Sprintf("notebox-%d", s.count))
}

// Getenv gives the variables that let a Store in.
func (s *Server) Getenv(name string) string { return s.variables[name] }

// Environment are the variables that Getenv gives, for another process.
func (s *Server) Environment() map[string]string { return maps.Clone(s.variables) }

// With is Getenv with some variables changed; those that are empty are not set.
func (s *Server) With(changed map[string]string) func(string) string {
	return func(name string) string {
		if value, ok := changed[name]; ok {
			return value
		}
		return s.variables[name]
	}
}

// begin starts a server on a free port, to end with the test.
func (s *Server) begin(t testing.TB) {
	t.Helper()
	for range portTries {
		s.port = freePort(t)
		t.Cleanup(s.kill) // before the port is another's
		s.Endpoint = "http://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port))
		if s.run(t) {
			return
		}
	}
	t.Fatalf("%s does not start: %s", s.name, s.running.output)
}

// Start starts the server again, after Stop, and waits until it answers.
func (s *Server) Start(t testing.TB) {
	t.Helper()
	for end := time.Now().Add(startTimeout); !s.run(t); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s does not start again: %s", s.name, s.running.output)
		}
	}
	if s.started != nil {
		ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
		defer cancel()
		if err := s.started(ctx); err != nil {
			t.Fatalf("%s: %v", s.name, err)
		}
	}
}

// Stop ends the server. It may write down what it has: Azurite keeps its list of
// containers in memory for seconds.
func (s *Server) Stop(t testing.TB) {
	t.Helper()
	if s.stopping != nil {
		ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
		defer cancel()
		if err := s.stopping(ctx); err != nil {
			t.Fatalf("%s: %v", s.name, err)
		}
	}
	_ = s.running.command.Process.Signal(syscall.SIGTERM)
	select {
	case <-s.running.ended:
	case <-time.After(stopTimeout):
	}
	s.kill()
}

// run reports whether the server answers. It is false if it has ended: the port may be
// another's.
func (s *Server) run(t testing.TB) bool {
	t.Helper()
	p := &process{command: s.command(s.port), ended: make(chan struct{}), output: &logged.Buffer{}}
	p.command.Stdout, p.command.Stderr = p.output, p.output
	p.command.SysProcAttr = group()
	if err := p.command.Start(); err != nil {
		t.Fatalf("%s: %v", s.name, err)
	}
	go func() {
		_ = p.command.Wait()
		close(p.ended)
	}()
	s.running = p
	answers := s.answers
	if answers == nil {
		client := &http.Client{Timeout: 5 * time.Second}
		defer client.CloseIdleConnections()
		answers = func() error {
			reply, err := client.Get(s.Endpoint + "/")
			if err != nil {
				return err
			}
			return reply.Body.Close()
		}
	}
	for end := time.Now().Add(startTimeout); time.Now().Before(end); {
		if answers() == nil {
			return p.alive(t)
		}
		select {
		case <-p.ended:
			return false
		case <-time.After(20 * time.Millisecond):
		}
	}
	s.kill()
	t.Fatalf("%s does not answer: %s", s.name, p.output)
	return false
}

// alive: what has answered could be another process that took the port.
func (p *process) alive(t testing.TB) bool {
	t.Helper()
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// kill ends the server and what it has started, and waits for it.
func (s *Server) kill() {
	if s.running == nil {
		return
	}
	select {
	case <-s.running.ended:
	default:
		_ = syscall.Kill(-s.running.command.Process.Pid, syscall.SIGKILL)
		<-s.running.ended
	}
}

// freePort takes a port for the test: below those that the system gives out by itself, so
// that none who asks it for any port gets this one, also while the server is stopped; and
// with a lock, for the tests of other packages.
func freePort(t testing.TB) int {
	t.Helper()
	for range maxPortLooks {
		port := firstPort + rand.IntN(lastPort-firstPort)
		path := filepath.Join(os.TempDir(), "notebox-test-port-"+strconv.Itoa(port))
		lock, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			continue // another user's
		}
		listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil || syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
			_ = lock.Close()
			if err == nil {
				_ = listener.Close()
			}
			continue
		}
		_ = listener.Close()
		t.Cleanup(func() {
			_ = os.Remove(path)
			_ = lock.Close()
		})
		return port
	}
	t.Fatal("no port is free")
	return 0
}

// installed is the path of what scripts/stores.sh has installed.
func installed(t testing.TB, path string) string {
	t.Helper()
	folder, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for !exists(filepath.Join(folder, "go.mod")) {
		if folder == filepath.Dir(folder) {
			t.Fatal("the test does not run within notebox's source")
		}
		folder = filepath.Dir(folder)
	}
	full := filepath.Join(folder, ".stores", path)
	if !exists(full) {
		t.Fatalf("%s is missing: run scripts/stores.sh, which installs it", full)
	}
	return full
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
