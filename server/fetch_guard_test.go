package server

import (
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"sync/atomic"
	"testing"

	"notebox/executor/fetch"

	"github.com/stretchr/testify/require"
)

func TestFetchRefusesAddresses(t *testing.T) {
	o := newOrigin(t, func(http.ResponseWriter, *http.Request) {})
	s := newFetching(t)
	for _, host := range []string{
		"127.0.0.1", "127.1.2.3", "localhost", "private.test", "PRIVATE.test.", "[::1]", "0.0.0.0", "[::]",
		"10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "192.0.0.192", "198.18.0.1",
		"224.0.0.1", "240.0.0.1", "255.255.255.255", "168.63.129.16",
		"[::ffff:127.0.0.1]", "[::ffff:10.0.0.1]", "[::127.0.0.1]", "[64:ff9b::127.0.0.1]", "[64:ff9b::a9fe:a9fe]",
		"[64:ff9b:1::7f00:1]", "[2002:7f00:1::]", "[2001:0:7f00:1::]", "[fc00::1]", "[fd00:ec2::254]", "[fe80::1]",
		"[fe80::1%25lo]", "[ff02::1]", "[2001:db8::1]", "[100::1]",
		"2130706433", "0x7f000001", "0177.0.0.1", "127.1",
	} {
		t.Run(host, func(t *testing.T) {
			s.t = t
			a := s.fetch("http://" + host + ":" + o.port() + "/")
			s.requireProblem(a, 422, "files[0].url: its host ")
			require.NotContains(t, string(a.body), "10.1.2.3", "what a name resolves to")
		})
	}
	require.Zero(t, o.hits.Load())
}

func TestFetchChecksEveryHop(t *testing.T) {
	inner := newOrigin(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "secret") })
	o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", r.URL.Query().Get("to"))
		w.WriteHeader(http.StatusFound)
	})
	s := newFetching(t)
	base := "http://files.test:" + o.port() + "/?to="
	for _, c := range []struct{ desc, to, detail string }{
		{"loopback", "http://127.0.0.1:" + inner.port(), fetch.ErrAddress.Error()},
		{"metadata", "http://169.254.169.254/latest/meta-data/", fetch.ErrAddress.Error()},
		{"a name of a private address", "http://private.test:" + inner.port(), fetch.ErrAddress.Error()},
		{"file", "file:///etc/passwd", fetch.ErrScheme.Error()},
		{"user", "http://a:b@files.test/", "must not have a user"},
		{"itself", "/?to=/%3Fto%3D", ""},
	} {
		t.Run(c.desc, func(t *testing.T) {
			s.t = t
			a := s.fetch(base + url.QueryEscape(c.to))
			s.requireProblem(a, 422, "files[0].url: "+c.detail)
			require.NotContains(t, string(a.body), "secret")
		})
	}
	require.Zero(t, inner.hits.Load())

	loop := newOrigin(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/", http.StatusFound) })
	s.t = t
	s.requireProblem(s.fetch("http://files.test:"+loop.port()), 422, "files[0].url: it redirects too often")
	require.EqualValues(t, fetch.MaxRedirects+1, loop.hits.Load())
}

func TestFetchIsNotReboundByDNS(t *testing.T) {
	// 127.0.0.2 is allowed and stands for a public address; the name is at
	// 127.0.0.1 when it is asked for again.
	s := newFetching(t)
	var asked atomic.Int64
	s.server.fetcher.Dialer.Resolver = resolverFunc(func(string) ([]netip.Addr, error) {
		if asked.Add(1) == 1 {
			return []netip.Addr{netip.MustParseAddr("127.0.0.2")}, nil
		}
		return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
	})
	o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/again", http.StatusFound) })
	s.requireProblem(s.fetch("http://rebind.test:"+o.port()), 422, fetch.ErrAddress.Error())
	require.EqualValues(t, 1, o.hits.Load())
	require.EqualValues(t, 2, asked.Load())
}
