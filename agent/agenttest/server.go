package agenttest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// maxRequest bounds a request's body: several images, as base64.
const maxRequest = 64 << 20

// Server is a scripted model. Its zero value is not usable; see Start.
type Server struct {
	script   Script
	listener net.Listener
	http     *http.Server

	mu       sync.Mutex
	faults   map[[2]int]int // that a dialogue's turn has had
	requests []Request
	failures []string
	count    int // of ids
}

// Start serves a script on address, "127.0.0.1:0" for a free port of loopback.
func Start(address string, script Script) (*Server, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	s := &Server{script: script, listener: listener, faults: map[[2]int]int{}}
	s.http = &http.Server{Handler: s, ReadHeaderTimeout: time.Minute}
	go func() { _ = s.http.Serve(listener) }()
	return s, nil
}

// TB is the part of testing.TB that New needs.
type TB interface {
	Helper()
	Cleanup(func())
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// New serves dialogues until the test ends, which fails if a request was not as the
// script or the protocol wants it.
func New(t TB, dialogues ...Dialogue) *Server {
	t.Helper()
	s, err := Start("127.0.0.1:0", Script{Dialogues: dialogues})
	if err != nil {
		t.Fatalf("start the scripted model: %v", err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close the scripted model: %v", err)
		}
		for _, f := range s.Failures() {
			t.Errorf("scripted model: %s", f)
		}
	})
	return s
}

// URL is what OPENAI_BASE_URL is set to, http://127.0.0.1:PORT/v1.
func (s *Server) URL() string { return s.Root() + "/v1" }

// Root is the same without a path, as Anthropic's clients want it.
func (s *Server) Root() string { return "http://" + s.listener.Addr().String() }

// Close ends the server and every connection.
func (s *Server) Close() error { return s.http.Close() }

// Requests are those that were understood, in the order in which they came.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.requests...)
}

// Failures are requests that the script or the protocol does not have.
func (s *Server) Failures() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.failures...)
}

// ServeHTTP implements http.Handler. GET /requests and GET /failures, as JSON, are for
// tests in other languages.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		s.tell(w, r)
		return
	}
	protocol := protocolOf(r.URL.Path)
	if protocol == nil || r.Method != http.MethodPost {
		http.NotFound(w, r)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
	if err != nil {
		return // the client is gone
	}
	req, err := protocol.read(r, body)
	if err == nil {
		req.Path, req.Header, req.Body = r.URL.Path, r.Header.Clone(), body
		err = req.check()
	}
	if err != nil {
		s.refuse(w, protocol, err)
		return
	}
	s.mu.Lock()
	s.requests = append(s.requests, *req)
	s.mu.Unlock()
	turn, fault, err := s.find(req)
	if err != nil {
		s.refuse(w, protocol, err)
		return
	}
	s.answer(w, r, protocol, req, turn, fault)
}

func (s *Server) tell(w http.ResponseWriter, r *http.Request) {
	var v any
	switch {
	case r.URL.Path == "/requests":
		v = s.Requests()
	case r.URL.Path == "/failures":
		v = append([]string{}, s.Failures()...)
	case strings.HasSuffix(r.URL.Path, "/models"):
		v = map[string]any{"object": "list", "data": []any{}}
	default:
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

// refuse answers a request that should not have come.
func (s *Server) refuse(w http.ResponseWriter, p protocol, err error) {
	s.mu.Lock()
	s.failures = append(s.failures, err.Error())
	s.mu.Unlock()
	status := http.StatusBadRequest
	if errors.Is(err, errNoKey) {
		status = http.StatusUnauthorized
	}
	writeError(w, p, Fault{Status: status, Message: err.Error()})
}

// find is the turn that a request is answered with, or the fault that comes before.
func (s *Server) find(req *Request) (*Turn, *Fault, error) {
	for i := range s.script.Dialogues {
		d := &s.script.Dialogues[i]
		if d.Model != "" && d.Model != req.Model || !strings.Contains(req.Question(), d.Question) {
			continue
		}
		n := req.turn()
		if d.Repeat {
			n = min(n, len(d.Turns)-1)
		}
		var turn *Turn
		if n < len(d.Turns) {
			turn = &d.Turns[n]
		}
		if req.NoTools && d.WithoutTools != nil && (turn == nil || len(turn.Calls) > 0) {
			n, turn = len(d.Turns), d.WithoutTools
		}
		if turn == nil {
			return nil, nil, fmt.Errorf("the script has no turn %d for %q", n+1, req.Question())
		}
		if req.NoTools && len(turn.Calls) > 0 {
			return nil, nil, fmt.Errorf("turn %d for %q calls a tool, and the request forbids that", n+1, req.Question())
		}
		return turn, s.fault(i, n, turn), turn.fits(req)
	}
	return nil, nil, fmt.Errorf("the script of model %q has no dialogue for %q", req.Model, req.Question())
}

func (s *Server) fault(dialogue, turn int, t *Turn) *Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.faults[[2]int{dialogue, turn}]
	if n == len(t.Faults) {
		return nil
	}
	s.faults[[2]int{dialogue, turn}]++
	return &t.Faults[n]
}

func (t *Turn) fits(req *Request) error {
	text := req.Text()
	for _, want := range t.Expect {
		if !strings.Contains(text, want) {
			return fmt.Errorf("the request does not contain %q: %s", want, text)
		}
	}
	for _, not := range t.Absent {
		if strings.Contains(text, not) {
			return fmt.Errorf("the request contains %q, which it must not", not)
		}
	}
	return nil
}

// id returns a new one with a prefix.
func (s *Server) id(prefix string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count++
	return fmt.Sprintf("%s%024d", prefix, s.count)
}
