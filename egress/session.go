package egress

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// connectTime bounds resolving a name and connecting to one of its addresses: a
	// program that waits longer has mostly given up.
	connectTime = 30 * time.Second
	// idleTime is how long a connection waits for its next request, on either side.
	idleTime = 60 * time.Second
	// maxHeader of a request or a response, bytes: some cookies are large.
	maxHeader = 256 << 10
	// maxHost of a host in an answer or the log, bytes: what a name can have.
	maxHost = 255
	// maxConnections of one run to the outside at one time, those that are being made
	// included: what its channels and maxIdle come to, and some whose programs gave up.
	maxConnections = 128
	// maxIdle connections to web servers are kept for the next request.
	maxIdle = 16
)

// session is all that goes on for one run.
type session struct {
	proxy   *Proxy
	run     string
	ctx     context.Context // until the end of the run
	left    atomic.Int64    // bytes
	forward *httputil.ReverseProxy

	mu      sync.Mutex
	conns   map[*countedConn]struct{} // to the outside
	dialing int                       // that are being connected
	ended   bool
	work    sync.WaitGroup // whatever was entered
}

// Serve answers the connections of one run until ctx ends or Accept fails, and
// returns when nothing of it goes on. Every connection to the outside is closed
// then. How many there are at one time is up to the listener.
func (p *Proxy) Serve(ctx context.Context, run string, connections net.Listener) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := &session{proxy: p, run: run, ctx: ctx, conns: map[*countedConn]struct{}{}}
	s.left.Store(p.maxBytes)
	transport := s.transport()
	s.forward = s.reverseProxy(transport)
	server := newServer(s, s.noteState)
	server.BaseContext = func(net.Listener) context.Context { return ctx }
	defer context.AfterFunc(ctx, func() { server.Close() })()
	_ = server.Serve(connections) // its end is the run's
	cancel()
	server.Close()
	s.end()
	transport.CloseIdleConnections()
}

// newServer returns a server of requests that programs send.
func newServer(h http.Handler, noteState func(net.Conn, http.ConnState)) *http.Server {
	return &http.Server{
		Handler:                      h,
		ConnState:                    noteState,
		ReadHeaderTimeout:            idleTime,
		IdleTimeout:                  idleTime,
		MaxHeaderBytes:               maxHeader,
		DisableGeneralOptionsHandler: true,
		ErrorLog:                     log.New(io.Discard, "", 0),
	}
}

// noteState counts the goroutines of the server's connections. A connection that
// was hijacked is its handler's.
func (s *session) noteState(_ net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		s.work.Add(1) // before Serve returns, and so before Wait
	case http.StateClosed, http.StateHijacked:
		s.work.Done()
	}
}

// enter reports whether something may begin; work.Done is then to be called.
func (s *session) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ended {
		s.work.Add(1)
	}
	return !s.ended
}

// end closes what is open, and returns when nothing goes on.
func (s *session) end() {
	s.mu.Lock()
	s.ended = true
	s.mu.Unlock()
	s.hangUp()
	s.work.Wait()
}

// hangUp closes every connection to the outside.
func (s *session) hangUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		c.Conn.Close()
	}
	clear(s.conns)
}

// ServeHTTP answers one request to the proxy.
func (s *session) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !s.enter() {
		return
	}
	defer s.work.Done()
	switch {
	case r.Method == http.MethodConnect:
		connect := s.tunnel
		if s.proxy.credential(&url.URL{Scheme: "https", Host: r.URL.Host}) != nil {
			connect = s.intercept
		}
		if err := connect(w, r); err != nil {
			s.refuse(w, r.URL.Host, err)
		}
	case r.URL.Scheme == "http" && r.URL.Host != "":
		s.pass(w, r)
	default:
		s.refuse(w, r.Host, &refusal{status: http.StatusBadRequest,
			text: "this is a proxy, which takes CONNECT, and requests for http:// URLs"})
	}
}

// pass sends a request on to the host of its URL.
func (s *session) pass(w http.ResponseWriter, r *http.Request) {
	err := s.proxy.allow(withPort(r.URL.Host, portOf[r.URL.Scheme]))
	if err == nil {
		err = s.spend(0)
	}
	if err == nil {
		err = s.proxy.credential(r.URL).check(r)
	}
	if err != nil {
		s.refuse(w, r.URL.Host, err)
		return
	}
	s.forward.ServeHTTP(w, r)
}

// withPort adds a port if there is none.
func withPort(host, port string) string {
	if _, _, err := net.SplitHostPort(host); err == nil {
		return host
	}
	return net.JoinHostPort(bare(host), port)
}

// refuse answers instead of the destination. Of that the log gets the host alone.
func (s *session) refuse(w http.ResponseWriter, host string, err error) {
	if s.ctx.Err() != nil {
		return // nobody is there
	}
	r, host := explain(err), host[:min(len(host), maxHost)]
	level := slog.LevelDebug
	var certificate *tls.CertificateVerificationError                   // of a host that the proxy itself speaks TLS to
	if errors.Is(err, errCredentials) || errors.As(err, &certificate) { // which the operator alone can mend
		level = slog.LevelWarn
	}
	s.proxy.log.Log(s.ctx, level, "no connection for a run", "run", s.run, "host", host, "status", r.status, "error", err)
	r.answer(w, host)
}

// dial connects to the outside, for as long as the run goes on.
func (s *session) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if !s.enter() {
		return nil, net.ErrClosed
	}
	defer s.work.Done()
	if err := s.spend(0); err != nil {
		return nil, err
	}
	if err := s.reserve(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, connectTime)
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	conn, err := s.proxy.dialer.DialContext(ctx, network, address)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dialing--
	if err != nil {
		return nil, err
	}
	counted := &countedConn{Conn: conn, session: s}
	if s.ended {
		conn.Close()
		return nil, net.ErrClosed
	}
	s.conns[counted] = struct{}{}
	return counted, nil
}

// reserve takes a place for a connection that is to be made. A request whose program
// has gone does not end the connecting for it, so that the number of programs'
// connections bounds nothing.
func (s *session) reserve() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dialing+len(s.conns) >= maxConnections {
		return &refusal{status: http.StatusServiceUnavailable, text: "the run has too many connections at this time"}
	}
	s.dialing++
	return nil
}

// spend takes bytes off what the run may move.
func (s *session) spend(n int) error {
	left := s.left.Add(int64(-n))
	if left > 0 {
		return nil
	}
	if left+int64(n) > 0 { // it was these
		s.hangUp()
	}
	return &refusal{status: http.StatusForbidden, text: "the run has moved as many bytes as it may"}
}

// countedConn is a connection to the outside.
type countedConn struct {
	net.Conn
	session *session
}

func (c *countedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if e := c.session.spend(n); e != nil && err == nil {
		err = e
	}
	return n, err
}

func (c *countedConn) Write(p []byte) (int, error) {
	if err := c.session.spend(len(p)); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}

func (c *countedConn) Close() error {
	c.session.mu.Lock()
	delete(c.session.conns, c)
	c.session.mu.Unlock()
	return c.Conn.Close()
}

func (c *countedConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}
