package server

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/executor/fetch"
	"notebox/runner"
)

// resolverFunc is a resolver that says what a test wants.
type resolverFunc func(host string) ([]netip.Addr, error)

func (f resolverFunc) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	return f(host)
}

// names is a resolver of fixed names.
func names(of map[string]string) resolverFunc {
	return func(host string) ([]netip.Addr, error) {
		if addr, ok := of[host]; ok {
			return []netip.Addr{netip.MustParseAddr(addr)}, nil
		}
		return nil, &net.DNSError{Err: "no such host 10.1.2.3", Name: host, IsNotFound: true}
	}
}

// origin is a web server on loopback that counts its requests.
type origin struct {
	*httptest.Server
	hits atomic.Int64
}

func newOrigin(t *testing.T, h http.HandlerFunc) *origin {
	o := new(origin)
	listener, err := net.Listen("tcp4", "0.0.0.0:0") // all of 127.0.0.0/8
	require.NoError(t, err)
	o.Server = &httptest.Server{Listener: listener, Config: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		o.hits.Add(1)
		h(w, r)
	})}}
	o.Start()
	t.Cleanup(o.Close)
	return o
}

func (o *origin) port() string {
	u, _ := url.Parse(o.URL)
	return u.Port()
}

// newFetching is a service that may fetch from files.test, which is loopback.
func newFetching(t *testing.T, change ...func(*Config)) *service {
	s := newService(t, append([]func(*Config){func(c *Config) {
		c.FetchAllow = []string{"files.test", "127.0.0.2/32"}
	}}, change...)...)
	s.server.fetcher.Dialer.Resolver = names(map[string]string{"files.test": "127.0.0.1", "private.test": "127.0.0.1"})
	return s
}

func (s *service) fetch(urls ...string) answer {
	s.t.Helper()
	var files []string
	for i, u := range urls {
		files = append(files, fmt.Sprintf(`{"name":"f%d","url":%q}`, i, u))
	}
	return s.postJSON(`{"code":"x","files":[` + strings.Join(files, ",") + `]}`)
}

func TestFetch(t *testing.T) {
	o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/redirect":
			http.Redirect(w, r, "/dir/last%20one.csv?token=2", http.StatusFound)
		case r.Header.Get("Referer") != "" || r.Header.Get("Cookie") != "" || r.Header.Get("Accept-Encoding") != "identity":
			w.WriteHeader(http.StatusTeapot)
		default:
			_, _ = io.WriteString(w, "content of "+r.URL.Path)
		}
	})
	proxy := newOrigin(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "ALL_PROXY"} {
		t.Setenv(name, proxy.URL)
	}
	s := newFetching(t)
	var files map[string]string
	s.run = func(_ context.Context, spec runner.Spec, _ runner.Sink) (*runner.Outcome, error) {
		var err error
		files, err = readInputs(spec)
		return executed(spec, runner.StatusOK), err
	}
	base := "http://files.test:" + o.port()
	s.replied(s.postJSON(`{"code":"x","files":[
		{"name":"a/b.csv","url":"` + base + `/b"},
		{"url":"` + base + `/redirect?token=1"},
		{"url":"` + base + `/dir/c%20d.csv?token=1#x"},
		{"name":"e","content":"ZQ=="},
		{"name":"f","url":"http://127.0.0.2:` + o.port() + `/f"}]}`))
	require.Equal(t, map[string]string{
		"a/b.csv": "content of /b", "redirect": "content of /dir/last one.csv", "c d.csv": "content of /dir/c d.csv",
		"e": "e", "f": "content of /f",
	}, files)
	require.Zero(t, proxy.hits.Load())
	s.requireNoFiles()
}

func TestFetchRefusesURLs(t *testing.T) {
	s := newFetching(t)
	for _, c := range []struct{ desc, url, detail string }{
		{"file", "file:///etc/passwd", "only http and https"},
		{"gopher", "gopher://files.test/", "only http and https"},
		{"no scheme", "//files.test/x", "only http and https"},
		{"relative", "x", "only http and https"},
		{"no URL", "http://[::1", "is not a URL"},
		{"no host", "http:///x", "has no host"},
		{"user", "http://user:pass@files.test/x", "must not have a user"},
		{"too long", "http://files.test/" + strings.Repeat("x", 9000), "is too long"},
		{"unknown host", "http://nowhere.test/x", "its host was not found"},
		{"nothing listens", "http://files.test:1/x", "the connection to its host failed"},
	} {
		t.Run(c.desc, func(t *testing.T) {
			s.t = t
			s.requireProblem(s.fetch(c.url), 422, "files[0].url: "+c.detail)
		})
	}
	t.Run("no name to be had", func(t *testing.T) {
		s.t = t
		s.requireProblem(s.postJSON(`{"code":"x","files":[{"url":"http://files.test/"}]}`), 400, "files[0].name: ")
		s.requireProblem(s.postJSON(`{"code":"x","files":[{"url":"http://files.test/a/%2e%2e"}]}`), 400, "files[0].name: ")
	})
}

func TestFetchErrorsOfServers(t *testing.T) {
	o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/404":
			w.WriteHeader(404)
			_, _ = io.WriteString(w, "<h1>internal wiki</h1>")
		case "/500":
			w.WriteHeader(500)
		case "/gzip":
			w.Header().Set("Content-Encoding", "gzip")
		case "/cut":
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, "short")
		}
	})
	s := newFetching(t)
	for path, detail := range map[string]string{
		"/404":  "the server answered 404 Not Found",
		"/500":  "the server answered 500 Internal Server Error",
		"/gzip": fetch.ErrEncoding.Error(),
		"/cut":  "the connection to its host failed",
	} {
		a := s.fetch("http://files.test:" + o.port() + path)
		s.requireProblem(a, 422, "files[0].url: "+detail)
		require.NotContains(t, string(a.body), "wiki")
	}
}

func TestFetchVerifiesTLS(t *testing.T) {
	secure := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://files.test/", http.StatusFound)
	}))
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	defer secure.Close()
	u, _ := url.Parse(secure.URL)
	s := newFetching(t)
	s.requireProblem(s.fetch("https://files.test:"+u.Port()), 422, "files[0].url: the server's certificate is not valid")

	transport := s.server.fetcher.Client.Transport.(*http.Transport)
	transport.TLSClientConfig = secure.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	transport.TLSClientConfig.ServerName = "example.com"
	s.requireProblem(s.fetch("https://files.test:"+u.Port()), 422, "files[0].url: it redirects from https to http")
}

func TestFetchIsBounded(t *testing.T) {
	const limit = 1 << 20
	var sent atomic.Int64
	o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/10GB":
			w.Header().Set("Content-Length", "10000000000")
			_, _ = w.Write(make([]byte, 1000))
		case "/600KB":
			w.(http.Flusher).Flush()
			_, _ = w.Write(make([]byte, 600_000))
		case "/endless":
			for {
				n, err := w.Write(make([]byte, 32<<10))
				if sent.Add(int64(n)); err != nil {
					return
				}
			}
		case "/slow":
			w.(http.Flusher).Flush()
			select {
			case <-r.Context().Done():
			case <-time.After(20 * time.Second):
			}
		}
	})
	s := newFetching(t, func(c *Config) { c.MaxUpload = limit })
	base := "http://files.test:" + o.port()
	s.requireProblem(s.fetch(base+"/10GB"), 422, "files[0].url: "+fetch.ErrSize.Error())
	s.requireProblem(s.fetch(base+"/endless"), 422, "files[0].url: "+fetch.ErrSize.Error())
	require.Less(t, sent.Load(), int64(50*limit))
	s.requireProblem(s.fetch(base+"/600KB", base+"/600KB"), 422, fetch.ErrSize.Error())

	s.server.fetcher.Time = 300 * time.Millisecond
	start := time.Now()
	s.requireProblem(s.fetch(base+"/slow"), 422, "files[0].url: it took longer than 300ms")
	require.Less(t, time.Since(start), 30*time.Second)
}

func TestClientThatLeavesEndsItsFetch(t *testing.T) {
	ended := make(chan struct{})
	started := make(chan struct{})
	o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		w.(http.Flusher).Flush()
		close(started)
		<-r.Context().Done()
		close(ended)
	})
	s := newFetching(t)
	ctx, leave := context.WithCancel(context.Background())
	body := `{"code":"x","files":[{"name":"a","url":"http://files.test:` + o.port() + `"}]}`
	req := s.request(http.MethodPost, "/v1/execute", "application/json", strings.NewReader(body)).WithContext(ctx)
	go func() {
		<-started
		leave()
	}()
	_, err := http.DefaultTransport.RoundTrip(req)
	require.ErrorIs(t, err, context.Canceled)
	select {
	case <-ended:
	case <-time.After(5 * time.Second):
		require.Fail(t, "the fetch goes on")
	}
	require.Eventually(t, func() bool {
		entries, _ := os.ReadDir(s.temp)
		return len(entries) == 0
	}, time.Minute, 5*time.Millisecond)
	require.Empty(t, s.started())
}
