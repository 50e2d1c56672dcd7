package egress

import (
	"bufio"
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/tests/logged"
)

// patience is how long a busy machine may take for anything.
const patience = 30 * time.Second

// resolverFunc is a Resolver that says what a test wants.
type resolverFunc func(host string) ([]netip.Addr, error)

func (f resolverFunc) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	return f(host)
}

// names are those of the tests: 127.0.0.2 stands for a public address, by an
// exception for that address.
func names(host string) ([]netip.Addr, error) {
	addrs := map[string][]string{
		"public.test":   {"127.0.0.2"},
		"loopback.test": {"127.0.0.1"},
		"v6.test":       {"::1"},
		"mapped.test":   {"::ffff:127.0.0.1"},
		"metadata.test": {"169.254.169.254"},
		"private.test":  {"10.0.0.1"},
		"both.test":     {"127.0.0.1", "127.0.0.2"},
		"service.test":  {"127.0.0.2"},
		"empty.test":    {},
	}[host]
	if addrs == nil && host != "empty.test" {
		return nil, &net.DNSError{Err: "no such host 10.1.2.3", Name: host, IsNotFound: true}
	}
	var all []netip.Addr
	for _, a := range addrs {
		all = append(all, netip.MustParseAddr(a))
	}
	return all, nil
}

// site is a server on all loopback addresses that counts its requests.
type site struct {
	*httptest.Server
	hits atomic.Int64
}

func newSite(t *testing.T, secure bool, h http.HandlerFunc) *site {
	s := new(site)
	listener, err := net.Listen("tcp", "[::]:0")
	if err != nil { // there is no IPv6
		listener, err = net.Listen("tcp", "0.0.0.0:0")
	}
	require.NoError(t, err)
	s.Server = &httptest.Server{Listener: listener, Config: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.hits.Add(1)
		h(w, r)
	})}}
	if secure {
		s.StartTLS()
	} else {
		s.Start()
	}
	t.Cleanup(s.Close)
	return s
}

func (s *site) port() string {
	_, port, _ := net.SplitHostPort(s.Listener.Addr().String())
	return port
}

// at is a URL of the site under a host of the tests.
func (s *site) at(host, path string) string {
	scheme := "http"
	if s.TLS != nil {
		scheme = "https"
	}
	return scheme + "://" + net.JoinHostPort(host, s.port()) + path
}

// served is a run's proxy on a real port.
type served struct {
	t       *testing.T
	proxy   *Proxy
	address string
	cancel  context.CancelFunc
	ended   chan struct{}
	logged  *logged.Buffer
}

// serve is a proxy that lets requests reach every host of the tests on these
// sites' ports.
func serve(t *testing.T, o Options, sites ...*site) *served {
	t.Helper()
	var entries []string
	for _, s := range sites {
		entries = append(entries, "*:"+s.port())
	}
	s := &served{t: t, ended: make(chan struct{}), logged: new(logged.Buffer)}
	var err error
	if o.Hosts == nil {
		o.Hosts, err = ParseHosts(entries)
		require.NoError(t, err)
	}
	if o.Resolver == nil {
		o.Resolver = resolverFunc(names)
	}
	o.Exceptions = append(o.Exceptions, "127.0.0.2/32")
	o.Log = slog.New(slog.NewTextHandler(s.logged, &slog.HandlerOptions{Level: slog.LevelDebug}))
	p, err := New(o)
	require.NoError(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	s.proxy, s.address, s.cancel = p, listener.Addr().String(), cancel
	go func() {
		defer close(s.ended)
		p.Serve(ctx, "run_1", listener)
	}()
	t.Cleanup(s.end)
	return s
}

// end ends the run, and returns when its proxy has ended.
func (s *served) end() {
	s.cancel()
	select {
	case <-s.ended:
	case <-time.After(patience):
		s.t.Error("the proxy goes on after the end of its run")
	}
}

func (s *served) client(ca ...*x509.Certificate) *http.Client {
	pool := x509.NewCertPool()
	for _, c := range ca {
		pool.AddCert(c)
	}
	transport := &http.Transport{
		Proxy:           http.ProxyURL(&url.URL{Scheme: "http", Host: s.address}),
		TLSClientConfig: &tls.Config{RootCAs: pool, ServerName: "example.com"},
	}
	s.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: patience}
}

// connect sends CONNECT and returns the connection with the answer's status.
func (s *served) connect(to string) (net.Conn, *bufio.Reader, int) {
	s.t.Helper()
	c, err := net.Dial("tcp", s.address)
	require.NoError(s.t, err)
	s.t.Cleanup(func() { c.Close() })
	require.NoError(s.t, c.SetDeadline(time.Now().Add(patience)))
	fmt.Fprintf(c, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", to, to)
	r := bufio.NewReader(c)
	res, err := http.ReadResponse(r, &http.Request{Method: http.MethodConnect})
	require.NoError(s.t, err)
	return c, r, res.StatusCode
}

func body(t *testing.T, res *http.Response, err error) (int, string) {
	t.Helper()
	require.NoError(t, err)
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return res.StatusCode, string(raw)
}

func TestForward(t *testing.T) {
	o := newSite(t, false, func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		w.Header().Set("X-Seen", fmt.Sprintf("%s %s %s %v", r.Method, r.Host, r.RequestURI, r.Header["X-Forwarded-For"]))
		for _, hop := range []string{"Proxy-Authorization", "Proxy-Connection", "X-Hop", "Connection"} {
			if r.Header.Get(hop) != "" {
				w.Header().Set("X-Leaked", hop)
			}
		}
		w.Header().Set("Content-Encoding", r.Header.Get("Accept-Encoding"))
		w.WriteHeader(http.StatusTeapot)
		_, _ = w.Write(raw)
	})
	s := serve(t, Options{}, o)
	req, err := http.NewRequest(http.MethodPut, o.at("public.test", "/a%2Fb?c=d"), strings.NewReader("content"))
	require.NoError(t, err)
	for name, value := range map[string]string{
		"Proxy-Authorization": "Basic eDp5", "Proxy-Connection": "keep-alive", "Connection": "X-Hop", "X-Hop": "1",
		"X-Forwarded-For": "192.0.2.1", "Accept-Encoding": "br",
	} {
		req.Header.Set(name, value)
	}
	res, err := s.client().Do(req)
	status, content := body(t, res, err)
	require.Equal(t, http.StatusTeapot, status)
	require.Equal(t, "content", content)
	require.Equal(t, "PUT public.test:"+o.port()+" /a%2Fb?c=d [192.0.2.1]", res.Header.Get("X-Seen"))
	require.Empty(t, res.Header.Get("X-Leaked"))
	require.Equal(t, "br", res.Header.Get("Content-Encoding"))
}

func TestTunnelTLS(t *testing.T) {
	big := make([]byte, 5<<20)
	_, _ = rand.Read(big)
	o := newSite(t, true, func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write(big) })
	s := serve(t, Options{}, o)
	res, err := s.client(o.Certificate()).Get(o.at("public.test", "/"))
	status, content := body(t, res, err)
	require.Equal(t, http.StatusOK, status)
	require.True(t, content == string(big))
}

// TestTunnelHalfClose: the end of one direction is passed on, and the other goes on.
func TestTunnelHalfClose(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.2:0")
	require.NoError(t, err)
	defer listener.Close()
	go func() {
		c, err := listener.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		all, _ := io.ReadAll(c)
		_, _ = io.WriteString(c, strings.ToUpper(string(all)))
	}()
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	hosts, err := ParseHosts([]string{"127.0.0.2:" + port})
	require.NoError(t, err)
	s := serve(t, Options{Hosts: hosts})
	c, r, status := s.connect("127.0.0.2:" + port)
	require.Equal(t, http.StatusOK, status)
	_, err = io.WriteString(c, "hello")
	require.NoError(t, err)
	require.NoError(t, c.(*net.TCPConn).CloseWrite())
	got, err := io.ReadAll(r)
	require.NoError(t, err)
	require.Equal(t, "HELLO", string(got))
}

func TestUpgrade(t *testing.T) {
	o := newSite(t, false, func(w http.ResponseWriter, r *http.Request) {
		c, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer c.Close()
		_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		_, _ = io.Copy(c, buffered)
	})
	s := serve(t, Options{}, o)
	c, err := net.Dial("tcp", s.address)
	require.NoError(t, err)
	defer c.Close()
	require.NoError(t, c.SetDeadline(time.Now().Add(patience)))
	fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n", o.at("public.test", "/"))
	r := bufio.NewReader(c)
	res, err := http.ReadResponse(r, nil)
	require.NoError(t, err)
	require.Equal(t, http.StatusSwitchingProtocols, res.StatusCode)
	_, _ = io.WriteString(c, "ping")
	got := make([]byte, 4)
	_, err = io.ReadFull(r, got)
	require.NoError(t, err)
	require.Equal(t, "ping", string(got))
	s.end() // and the connection with it
	_, err = r.ReadByte()
	require.Error(t, err)
}

// TestRefused is the policy: what is not public is not reached, by name or by
// address, whatever its form, with either way of asking.
func TestRefused(t *testing.T) {
	o := newSite(t, false, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "secret") })
	s := serve(t, Options{}, o)
	for _, c := range []struct {
		host   string
		status int
	}{
		{"127.0.0.1", 403}, {"127.1.2.3", 403}, {"localhost", 502}, {"loopback.test", 403}, {"LOOPBACK.test.", 502},
		{"v6.test", 403}, {"mapped.test", 403}, {"metadata.test", 403}, {"private.test", 403},
		{"0.0.0.0", 403}, {"10.0.0.1", 403}, {"172.16.0.1", 403}, {"192.168.1.1", 403}, {"169.254.169.254", 403},
		{"100.64.0.1", 403}, {"192.0.0.192", 403}, {"198.18.0.1", 403}, {"224.0.0.1", 403}, {"240.0.0.1", 403},
		{"255.255.255.255", 403}, {"168.63.129.16", 403},
		{"::", 403}, {"::1", 403}, {"::ffff:127.0.0.1", 403}, {"::ffff:10.0.0.1", 403}, {"::127.0.0.1", 403},
		{"64:ff9b::127.0.0.1", 403}, {"64:ff9b::a9fe:a9fe", 403}, {"64:ff9b:1::7f00:1", 403},
		{"2002:7f00:1::", 403}, {"2001:0:7f00:1::", 403}, {"fc00::1", 403}, {"fd00:ec2::254", 403}, {"fe80::1", 403},
		{"ff02::1", 403}, {"2001:db8::1", 403}, {"100::1", 403},
		// No resolver knows these forms of an address.
		{"2130706433", 502}, {"0x7f000001", 502}, {"0177.0.0.1", 502}, {"127.1", 502},
		{"nowhere.test", 502}, {"empty.test", 502},
	} {
		t.Run(c.host, func(t *testing.T) {
			res, err := s.client().Get(o.at(c.host, "/path?token=1"))
			status, content := body(t, res, err)
			require.Equal(t, c.status, status, content)
			require.Contains(t, content, "notebox: no connection to ")
			require.NotContains(t, content, "10.1.2.3", "what a name resolves to")
			_, _, status = s.connect(net.JoinHostPort(c.host, o.port()))
			require.Equal(t, c.status, status)
		})
	}
	require.Zero(t, o.hits.Load())
	require.Contains(t, s.logged.String(), "host=metadata.test:"+o.port())
	require.NotContains(t, s.logged.String(), "token", "of a refused request the log has the host alone")

	res, err := s.client().Get(o.at("both.test", "/"))
	_, content := body(t, res, err)
	require.Equal(t, "secret", content, "the address that may be reached is")
}

func TestHostThatIsNotAllowed(t *testing.T) {
	o := newSite(t, false, func(http.ResponseWriter, *http.Request) {})
	hosts, err := ParseHosts([]string{"public.test:" + o.port()})
	require.NoError(t, err)
	s := serve(t, Options{Hosts: hosts}, o)
	res, err := s.client().Get(o.at("public.test", "/"))
	status, _ := body(t, res, err)
	require.Equal(t, http.StatusOK, status)
	res, err = s.client().Get(o.at("127.0.0.2", "/"))
	status, content := body(t, res, err)
	require.Equal(t, http.StatusForbidden, status)
	require.Equal(t, fmt.Sprintf("notebox: no connection to \"127.0.0.2:%s\": it is not among the hosts that this service's operator allows\n", o.port()), content)
	require.EqualValues(t, 1, o.hits.Load())
}

func TestNotForAProxy(t *testing.T) {
	o := newSite(t, false, func(http.ResponseWriter, *http.Request) {})
	s := serve(t, Options{}, o)
	for _, line := range []string{
		"GET / HTTP/1.1", "OPTIONS * HTTP/1.1", "GET https://public.test/ HTTP/1.1", "GET ftp://public.test/ HTTP/1.1",
		"GET http:///x HTTP/1.1", "CONNECT public.test HTTP/1.1", "CONNECT :443 HTTP/1.1", "CONNECT / HTTP/1.1", "nonsense",
		"CONNECT public.test:0443 HTTP/1.1", "GET http://public.test:080/ HTTP/1.1",
	} {
		t.Run(line, func(t *testing.T) {
			c, err := net.Dial("tcp", s.address)
			require.NoError(t, err)
			defer c.Close()
			require.NoError(t, c.SetDeadline(time.Now().Add(patience)))
			fmt.Fprintf(c, "%s\r\nHost: public.test:%s\r\nConnection: close\r\n\r\n", line, o.port())
			res, err := http.ReadResponse(bufio.NewReader(c), nil)
			require.NoError(t, err)
			require.Equal(t, http.StatusBadRequest, res.StatusCode)
		})
	}
	require.Zero(t, o.hits.Load())
}

func TestRedirectInwards(t *testing.T) {
	inner := newSite(t, false, func(http.ResponseWriter, *http.Request) {})
	o := newSite(t, false, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, inner.at("loopback.test", "/"), http.StatusFound)
	})
	s := serve(t, Options{}, o, inner)
	res, err := s.client().Get(o.at("public.test", "/"))
	status, _ := body(t, res, err)
	require.Equal(t, http.StatusForbidden, status)
	require.EqualValues(t, 1, o.hits.Load())
	require.Zero(t, inner.hits.Load())
}

// TestRebinding: a name that is at another address each time it is asked for is
// connected to at the one that was checked.
func TestRebinding(t *testing.T) {
	var asked atomic.Int64
	o := newSite(t, false, func(w http.ResponseWriter, r *http.Request) { w.Header().Set("Connection", "close") })
	s := serve(t, Options{Resolver: resolverFunc(func(string) ([]netip.Addr, error) {
		if asked.Add(1)%2 == 1 {
			return []netip.Addr{netip.MustParseAddr("127.0.0.2")}, nil
		}
		return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
	})}, o)
	for i, want := range []int{200, 403, 200, 403} {
		res, err := s.client().Get(o.at("rebind.test", "/"))
		status, _ := body(t, res, err)
		require.Equal(t, want, status)
		require.EqualValues(t, i+1, asked.Load(), "asked once for each connection")
	}
}

// TestOwnService is not reached, though the operator excepted its machine.
func TestOwnService(t *testing.T) {
	o := newSite(t, false, func(http.ResponseWriter, *http.Request) {})
	other := newSite(t, false, func(http.ResponseWriter, *http.Request) {})
	s := serve(t, Options{
		Own:        []string{"127.0.0.1:" + o.port(), "service.test"},
		Exceptions: []string{"127.0.0.0/8", "::1", "both.test", "0.0.0.0"},
	}, o, other)
	for _, host := range []string{"127.0.0.1", "127.0.0.2", "::1", "both.test", "0.0.0.0", "loopback.test"} {
		res, err := s.client().Get(o.at(host, "/"))
		status, content := body(t, res, err)
		require.Equal(t, http.StatusForbidden, status, "%s: %s", host, content)
		require.Contains(t, content, "not at an address that may be reached")
	}
	res, err := s.client().Get(other.at("127.0.0.1", "/"))
	status, _ := body(t, res, err)
	require.Equal(t, http.StatusOK, status, "another port")
	res, err = s.client().Get(other.at("service.test", "/"))
	status, _ = body(t, res, err)
	require.Equal(t, http.StatusForbidden, status, "its name, on any port")
	require.Zero(t, o.hits.Load())
}

func TestMaxBytes(t *testing.T) {
	o := newSite(t, false, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Length", "100000")
		_, _ = w.Write(make([]byte, 100_000))
	})
	s := serve(t, Options{MaxBytes: 250_000}, o)
	idle, r, status := s.connect("127.0.0.2:" + o.port())
	require.Equal(t, http.StatusOK, status)
	defer idle.Close()
	for range 2 {
		res, err := s.client().Get(o.at("public.test", "/"))
		status, content := body(t, res, err)
		require.Equal(t, http.StatusOK, status)
		require.Len(t, content, 100_000)
	}
	res, err := s.client().Get(o.at("public.test", "/"))
	require.NoError(t, err)
	_, err = io.ReadAll(res.Body)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	res.Body.Close()
	_, err = r.ReadByte()
	require.Error(t, err, "and all other connections are closed")
	res, err = s.client().Get(o.at("public.test", "/"))
	status, content := body(t, res, err)
	require.Equal(t, http.StatusForbidden, status)
	require.Contains(t, content, "as many bytes as it may")
	_, _, status = s.connect("127.0.0.2:" + o.port())
	require.Equal(t, http.StatusForbidden, status)
}

// TestEndOfRun: whatever goes on, Serve returns, and what it had open is closed.
func TestEndOfRun(t *testing.T) {
	var open atomic.Int64
	closed := make(chan struct{}, 10)
	hang := func(c net.Conn) {
		open.Add(1)
		_, _ = io.Copy(io.Discard, c)
		closed <- struct{}{}
	}
	silent, err := net.Listen("tcp", "127.0.0.2:0")
	require.NoError(t, err)
	defer silent.Close()
	go func() {
		for {
			c, err := silent.Accept()
			if err != nil {
				return
			}
			go hang(c)
		}
	}()
	address := silent.Addr().String()
	resolving := make(chan struct{})
	hosts, err := ParseHosts([]string{address, "slow.test"})
	require.NoError(t, err)
	s := serve(t, Options{Hosts: hosts, Resolver: slowResolver(resolving)})
	s.connect(address)
	for _, line := range []string{"GET http://" + address + "/ HTTP/1.1", "CONNECT slow.test:443 HTTP/1.1", "GET http://slow.test/ HTTP/1.1", "GET /half"} {
		c, err := net.Dial("tcp", s.address)
		require.NoError(t, err)
		defer c.Close()
		fmt.Fprintf(c, "%s\r\nHost: x\r\n\r\n", line)
	}
	<-resolving
	<-resolving
	require.Eventually(t, func() bool { return open.Load() == 2 }, patience, time.Millisecond)
	s.end()
	<-closed
	<-closed
}

// slowResolver tells when it is asked, and never answers.
type slowResolver chan struct{}

func (r slowResolver) LookupNetIP(ctx context.Context, _, _ string) ([]netip.Addr, error) {
	r <- struct{}{}
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestOwnServiceByAnotherSpelling: what becomes the service's name only when it is
// connected to is not reached either.
func TestOwnServiceByAnotherSpelling(t *testing.T) {
	o := newSite(t, false, func(http.ResponseWriter, *http.Request) {})
	s := serve(t, Options{Own: []string{"127.0.0.1:1", "service.test"}}, o)
	for _, host := range []string{"\uff53ervice.test", "service\u3002test", "%EF%BD%93ervice.test", "SERVICE.test", "service.test."} {
		c, err := net.Dial("tcp", s.address)
		require.NoError(t, err)
		defer c.Close()
		require.NoError(t, c.SetDeadline(time.Now().Add(patience)))
		fmt.Fprintf(c, "GET http://%s:%s/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", host, o.port())
		res, err := http.ReadResponse(bufio.NewReader(c), nil)
		require.NoError(t, err)
		require.GreaterOrEqual(t, res.StatusCode, 400, host)
		require.Less(t, res.StatusCode, 500, host)
	}
	require.Zero(t, o.hits.Load())
}

func TestOwnServiceBehindARouter(t *testing.T) {
	for _, c := range []struct {
		desc, own, to string
		refused       bool
	}{
		{"its port", "93.184.215.14:8443", "93.184.215.14:8443", true},
		{"mapped", "93.184.215.14:8443", "[::ffff:93.184.215.14]:8443", true},
		{"translated", "93.184.215.14:8443", "[64:ff9b::93.184.215.14]:8443", true},
		{"another port of that machine", "93.184.215.14:8443", "93.184.215.14:443", false},
		{"another machine", "93.184.215.14:8443", "93.184.215.15:8443", false},
		{"without a port", "93.184.215.14", "93.184.215.14:443", true},
		{"an address in brackets", "[2606:2800:21f::1]", "[2606:2800:21f::1]:443", true},
	} {
		t.Run(c.desc, func(t *testing.T) {
			p, err := New(Options{Own: []string{c.own}})
			require.NoError(t, err)
			require.Equal(t, c.refused, p.dialer.check(c.to, true) != nil, "though the operator excepts it")
			require.Equal(t, c.refused, p.dialer.check(c.to, false) != nil)
		})
	}
}

// unread is a connection whose program reads nothing. It tells of what is written.
type unread struct {
	net.Conn
	written chan string
}

func (u *unread) Write(p []byte) (int, error) {
	u.written <- string(p)
	return u.Conn.Write(p)
}

// TestConnectThatIsNotRead: the run's end does not wait for a program to read that its CONNECT
// succeeded.
func TestConnectThatIsNotRead(t *testing.T) {
	for _, c := range []struct{ desc, host string }{{"a tunnel", "elsewhere.test"}, {"signed in", "example.com"}} {
		t.Run(c.desc, func(t *testing.T) {
			o := newSite(t, true, echo)
			proxy := signedIn(t, o).proxy
			program, inside := net.Pipe()
			defer program.Close()
			conn := &unread{inside, make(chan string, 1)}
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				proxy.Serve(ctx, "run_1", &single{conn: conn, over: make(chan struct{})})
			}()
			to := net.JoinHostPort(c.host, o.port())
			fmt.Fprintf(program, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", to, to)
			select {
			case text := <-conn.written:
				require.Contains(t, text, " 200 ")
			case <-time.After(patience):
				t.Fatal("CONNECT is not answered")
			}
			cancel()
			select {
			case <-ended:
			case <-time.After(patience):
				t.Fatal("the proxy goes on after the end of its run")
			}
		})
	}
}
