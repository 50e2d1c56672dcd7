package docker

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/docker/docker/client"
	"github.com/stretchr/testify/require"
)

// proxy stands before the daemon, so that tests can have it fail.
type proxy struct {
	host    string // for DOCKER_HOST
	forward http.Handler

	mu    sync.Mutex
	part  string // of the URL of the calls that are intercepted; "" for none
	act   interceptor
	conns []net.Conn // both ways
}

type interceptor func(w http.ResponseWriter, r *http.Request, forward http.Handler)

// newProxy starts one that passes everything on.
func newProxy(t *testing.T) *proxy {
	api, err := client.NewClientWithOpts(client.FromEnv)
	require.NoError(t, err)
	p := &proxy{}
	p.forward = &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.Out.URL.Scheme, r.Out.URL.Host = "http", "docker" },
		Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return p.track(api.Dialer()(ctx))
		}},
		FlushInterval: -1,
		ErrorHandler:  func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	socket := filepath.Join(t.TempDir(), "s")
	listener, err := net.Listen("unix", socket)
	require.NoError(t, err)
	server := httptest.NewUnstartedServer(p)
	server.Listener.Close()
	server.Listener = tracking{listener, p}
	server.Start()
	t.Cleanup(func() {
		p.breakConnections()
		server.Close()
		api.Close()
	})
	p.host = "unix://" + socket
	return p
}

// intercept has calls whose URL contains part taken by act.
func (p *proxy) intercept(part string, act interceptor) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.part, p.act = part, act
}

// ServeHTTP implements http.Handler.
func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	part, act := p.part, p.act
	p.mu.Unlock()
	if act != nil && strings.Contains(r.URL.String(), part) {
		act(w, r, p.forward)
		return
	}
	p.forward.ServeHTTP(w, r)
}

func (p *proxy) track(c net.Conn, err error) (net.Conn, error) {
	if err == nil {
		p.mu.Lock()
		p.conns = append(p.conns, c)
		p.mu.Unlock()
	}
	return c, err
}

// breakConnections closes all that there are now.
func (p *proxy) breakConnections() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		c.Close()
	}
	p.conns = nil
}

type tracking struct {
	net.Listener
	p *proxy
}

func (l tracking) Accept() (net.Conn, error) { return l.p.track(l.Listener.Accept()) }

// buffered returns a request that outlives the connection it came by.
func buffered(t *testing.T, r *http.Request) *http.Request {
	body, err := io.ReadAll(r.Body)
	require.NoError(t, err)
	r = r.Clone(context.WithoutCancel(r.Context()))
	r.Body = io.NopCloser(bytes.NewReader(body))
	return r
}

// discard is where an answer goes that nobody gets.
type discard struct{}

func (discard) Header() http.Header         { return http.Header{} }
func (discard) Write(p []byte) (int, error) { return len(p), nil }
func (discard) WriteHeader(int)             {}
