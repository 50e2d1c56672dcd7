package egress

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// registries is the Resolver of the tests of credentials: any name is one outside.
var registries = resolverFunc(func(string) ([]netip.Addr, error) {
	return []netip.Addr{netip.MustParseAddr("127.0.0.2")}, nil
})

// echo answers with what it was sent, and with a cookie.
func echo(w http.ResponseWriter, r *http.Request) {
	raw, _ := io.ReadAll(r.Body)
	http.SetCookie(w, &http.Cookie{Name: "session", Value: "signed-in"})
	_, _ = fmt.Fprintf(w, "%s %s %s %q %q %q %q", r.Method, r.Host, r.RequestURI,
		r.Header.Get("Authorization"), r.Header.Get("Cookie"), r.Header.Get("X-HTTP-Method-Override"), raw)
}

// signedIn is a proxy with credentials for a site, which has the name example.com.
func signedIn(t *testing.T, o *site, more ...*site) *served {
	scheme, _, _ := strings.Cut(o.at("", ""), ":")
	options := Options{Resolver: registries, Credentials: []Credential{
		{Scheme: scheme, Host: "example.com:" + o.port(), Path: "/one/simple", Authorization: "Basic one"},
		{Scheme: scheme, Host: "Example.com:" + o.port(), Path: "/two/simple/", Authorization: "Basic two"},
	}}
	if scheme == "https" {
		options.CA = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: o.Certificate().Raw})
	}
	return serve(t, options, append(more, o)...)
}

// trusting is a client that trusts what the proxy tells it to.
func (s *served) trusting() *http.Client {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(s.proxy.CA())
	transport := &http.Transport{
		Proxy:           http.ProxyURL(&url.URL{Scheme: "http", Host: s.address}),
		TLSClientConfig: &tls.Config{RootCAs: pool},
	}
	s.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: patience}
}

// TestCredentials: what the proxy signs in goes to the host alone, and can only read.
func TestCredentials(t *testing.T) {
	for _, secure := range []bool{false, true} {
		o := newSite(t, secure, echo)
		other := newSite(t, false, echo)
		client := signedIn(t, o, other).trusting()
		for _, c := range []struct {
			desc, method, url string
			header            [2]string
			status            int
			want              string
		}{
			{desc: "of two, that of its path", url: o.at("example.com", "/two/simple/a/"), want: `GET HOST /two/simple/a/ "Basic two" "" "" ""`},
			{desc: "the host's other paths", url: o.at("example.com", "/files/a%2Fb?c=d"), want: `GET HOST /files/a%2Fb?c=d "Basic one" "" "" ""`},
			{desc: "the host in capitals", url: o.at("EXAMPLE.com", "/"), want: `GET HOST / "Basic one" "" "" ""`},
			{desc: "not those of a program", url: o.at("example.com", "/"), header: [2]string{"Authorization", "Bearer own"}, want: `GET HOST / "Basic one" "" "" ""`},
			{desc: "no cookies", url: o.at("example.com", "/"), header: [2]string{"Cookie", "a=b"}, want: `GET HOST / "Basic one" "" "" ""`},
			{desc: "no other method, hidden", url: o.at("example.com", "/"), header: [2]string{"X-HTTP-Method-Override", "DELETE"}, want: `GET HOST / "Basic one" "" "" ""`},
			{desc: "no body", method: http.MethodGet, url: o.at("example.com", "/?body"), want: `GET HOST /?body "Basic one" "" "" ""`},
			{desc: "no writing", method: http.MethodPut, url: o.at("example.com", "/"), status: http.StatusMethodNotAllowed},
			{desc: "no removing", method: http.MethodDelete, url: o.at("example.com", "/"), status: http.StatusMethodNotAllowed},
			{desc: "another port", url: other.at("example.com", "/"), want: `GET OTHER / "" "" "" ""`},
			{desc: "another name", url: other.at("elsewhere.test", "/"), header: [2]string{"Authorization", "Bearer own"}, want: `GET elsewhere.test:OTHERPORT / "Bearer own" "" "" ""`},
		} {
			t.Run(fmt.Sprintf("%s, TLS %t", c.desc, secure), func(t *testing.T) {
				request, err := http.NewRequest(c.method, c.url, nil)
				require.NoError(t, err)
				if strings.HasSuffix(c.url, "?body") {
					request.Body, request.ContentLength = io.NopCloser(strings.NewReader("body")), 4
				}
				if c.header[0] != "" {
					request.Header.Set(c.header[0], c.header[1])
				}
				res, err := client.Do(request)
				status, content := body(t, res, err)
				if c.status != 0 {
					require.Equal(t, c.status, status, content)
					return
				}
				require.Equal(t, http.StatusOK, status, content)
				want := strings.NewReplacer("OTHERPORT", other.port(), "OTHER", "example.com:"+other.port(), "HOST", request.URL.Host).Replace(c.want)
				require.Equal(t, want, content)
				require.Equal(t, strings.Contains(content, "Basic"), res.Header.Get("Set-Cookie") == "", "what signs in as well")
			})
		}
	}
}

// TestCredentialsByAnotherScheme: a request in the clear is signed in only if the
// credentials are for that.
func TestCredentialsByAnotherScheme(t *testing.T) {
	o := newSite(t, false, echo)
	s := serve(t, Options{Resolver: registries, Credentials: []Credential{
		{Scheme: "https", Host: "example.com:" + o.port(), Authorization: "Basic one"},
	}}, o)
	res, err := s.trusting().Get(o.at("example.com", "/"))
	_, content := body(t, res, err)
	require.NotContains(t, content, "Basic")
}

// TestCredentialsAfterARedirect: another host is not signed in to.
func TestCredentialsAfterARedirect(t *testing.T) {
	files := newSite(t, false, echo)
	o := newSite(t, true, func(w http.ResponseWriter, r *http.Request) {
		require.Equal(t, "Basic one", r.Header.Get("Authorization"))
		http.Redirect(w, r, files.at("files.test", "/a"), http.StatusFound)
	})
	res, err := signedIn(t, o, files).trusting().Get(o.at("example.com", "/a"))
	_, content := body(t, res, err)
	require.Equal(t, `GET files.test:`+files.port()+` /a "" "" "" ""`, content)
}

// TestCredentialsThatAreRefused are the operator's affair: no program could give others.
func TestCredentialsThatAreRefused(t *testing.T) {
	o := newSite(t, true, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) })
	s := signedIn(t, o)
	res, err := s.trusting().Get(o.at("example.com", "/"))
	status, content := body(t, res, err)
	require.Equal(t, http.StatusBadGateway, status)
	require.Contains(t, content, errCredentials.Error())
	require.Contains(t, s.logged.String(), "level=WARN")
}

// TestInsideTLS: in a tunnel to a host that is signed in to, a request reaches that host
// alone, whatever it names.
func TestInsideTLS(t *testing.T) {
	o := newSite(t, true, echo)
	s := signedIn(t, o)
	for _, request := range []string{
		"GET / HTTP/1.1\r\nHost: other.test\r\n\r\n",
		"GET http://other.test/ HTTP/1.1\r\nHost: other.test\r\n\r\n",
	} {
		conn, _, status := s.connect("example.com:" + o.port())
		require.Equal(t, http.StatusOK, status)
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(s.proxy.CA())
		inside := tls.Client(conn, &tls.Config{RootCAs: pool, ServerName: "example.com"})
		_, err := io.WriteString(inside, request)
		require.NoError(t, err)
		res, err := http.ReadResponse(bufio.NewReader(inside), nil)
		_, content := body(t, res, err)
		require.Equal(t, `GET example.com:`+o.port()+` / "Basic one" "" "" ""`, content)
	}
	for _, target := range []string{"x:http://other.test/", "x:other"} {
		conn, _, _ := s.connect("example.com:" + o.port())
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(s.proxy.CA())
		inside := tls.Client(conn, &tls.Config{RootCAs: pool, ServerName: "example.com"})
		before := o.hits.Load()
		_, err := io.WriteString(inside, "GET "+target+" HTTP/1.1\r\nHost: other.test\r\n\r\n")
		require.NoError(t, err)
		res, err := http.ReadResponse(bufio.NewReader(inside), nil)
		status, content := body(t, res, err)
		require.Equal(t, http.StatusBadRequest, status, content)
		require.Contains(t, content, "the request must name a path")
		require.Equal(t, before, o.hits.Load(), "nothing reaches the host")
	}
	conn, err := s.trusting().Get("https://other.test:" + o.port() + "/")
	require.Error(t, err, "its TLS is its own, which this client does not trust: %v", conn)
}

// TestInterceptedAtTheEnd: nothing goes on after the run, with a client that says nothing too.
func TestInterceptedAtTheEnd(t *testing.T) {
	begun, left := make(chan struct{}), make(chan struct{})
	o := newSite(t, true, func(w http.ResponseWriter, r *http.Request) {
		close(begun)
		<-r.Context().Done()
		close(left)
	})
	s := signedIn(t, o)
	s.connect("example.com:" + o.port())
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, o.at("example.com", "/"), nil)
	require.NoError(t, err)
	ended := make(chan error, 1)
	client := s.trusting()
	go func() {
		res, err := client.Do(request)
		if err == nil {
			res.Body.Close()
		}
		ended <- err
	}()
	<-begun
	before := time.Now()
	s.end()
	require.Less(t, time.Since(before), patience/2)
	<-left
	require.Error(t, <-ended)
}

// TestInterceptedAtAnUnknownHost: the proxy itself looks at whom it sends credentials to.
func TestInterceptedAtAnUnknownHost(t *testing.T) {
	o := newSite(t, true, echo)
	s := serve(t, Options{Resolver: registries, Credentials: []Credential{
		{Scheme: "https", Host: "example.com:" + o.port(), Authorization: "Basic one"},
	}}, o)
	res, err := s.trusting().Get(o.at("example.com", "/"))
	status, _ := body(t, res, err)
	require.Equal(t, http.StatusBadGateway, status)
	require.Zero(t, o.hits.Load())
	require.Regexp(t, "level=WARN.*failed to verify certificate", s.logged.String())
}
