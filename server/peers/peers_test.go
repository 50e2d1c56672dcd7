package peers

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/runner"
)

var secret = []byte(strings.Repeat("s", MinSecret))

func newPeers(t *testing.T, own string, change ...func(*Config)) *Peers {
	t.Helper()
	cfg := Config{Own: netip.MustParseAddrPort(own), Secret: secret, Names: []string{"a:80"},
		Lookup: func(context.Context, string) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("::ffff:10.0.0.2")}, nil
		}}
	for _, c := range change {
		c(&cfg)
	}
	p, err := New(cfg)
	require.NoError(t, err)
	return p
}

func TestIDs(t *testing.T) {
	one, two := newPeers(t, "10.0.0.1:80"), newPeers(t, "10.0.0.2:80")
	pattern := regexp.MustCompile("^[0-9A-HJKMNP-TV-Z]{26}$")
	seen := map[string]bool{}
	last := ""
	for range 1000 {
		id, err := one.Mint("x", "owner")
		require.NoError(t, err)
		require.Regexp(t, pattern, id)
		require.False(t, seen[id])
		require.GreaterOrEqual(t, id[:10], last, "they sort by time")
		seen[id], last = true, id[:10]
		var there *runner.ElsewhereError
		require.ErrorAs(t, two.Find("x", "owner", id), &there)
		require.Equal(t, "10.0.0.1:80", there.Service)
		require.ErrorAs(t, one.Find("x", "owner", id), new(*runner.GoneError), "it was not found here")
	}
	id, err := one.Mint("x", "owner")
	require.NoError(t, err)
	for desc, err := range map[string]error{
		"another owner's": two.Find("x", "another", id), "of another kind": two.Find("y", "owner", id), "empty": two.Find("x", "owner", ""),
		"cut": two.Find("x", "owner", id[:25]), "longer": two.Find("x", "owner", id+"0"),
		"another secret's":            newPeers(t, "10.0.0.2:80", func(c *Config) { c.Secret = []byte(strings.Repeat("t", MinSecret)) }).Find("x", "owner", id),
		"owner and what run together": two.Find("xo", "wner", id),
	} {
		require.ErrorIs(t, err, runner.ErrNoSession, desc)
	}
}

// TestAFloodOfGuesses: none of a hundred thousand ids that are right but for their end is taken.
func TestAFloodOfGuesses(t *testing.T) {
	p := newPeers(t, "10.0.0.1:80")
	id, err := p.Mint("x", "")
	require.NoError(t, err)
	other, err := p.Mint("x", "")
	require.NoError(t, err)
	require.NotEqual(t, id[tagEnd:], other[tagEnd:])
	require.NotEqual(t, id[headEnd:tagEnd], other[headEnd:tagEnd], "no two ids show that they are of one service")
	for i := range 100_000 {
		guess := characters([]byte{byte(i >> 16), byte(i >> 8), byte(i), 0})
		if guess != id[tagEnd:] {
			require.ErrorIs(t, p.Find("x", "", id[:tagEnd]+guess), runner.ErrNoSession)
		}
	}
}

func TestAddresses(t *testing.T) {
	var answer []netip.Addr
	var failed error
	asked := 0
	now := time.Now()
	p := newPeers(t, "[fd00::2]:80", func(c *Config) {
		c.Now = func() time.Time { return now }
		c.Lookup = func(context.Context, string) ([]netip.Addr, error) { asked++; return answer, failed }
	})
	made := newPeers(t, "[fd00::1]:80", func(c *Config) { c.Now = p.now })
	id, err := made.Mint("x", "")
	require.NoError(t, err)
	find := func() error { p.forget(); return p.Find("x", "", id) }

	answer = []netip.Addr{netip.MustParseAddr("fd00::1"), netip.MustParseAddr("fd00::2")}
	require.ErrorAs(t, find(), new(*runner.ElsewhereError))
	asked = 0
	require.ErrorAs(t, p.Find("x", "", id), new(*runner.ElsewhereError))
	require.Zero(t, asked, "addresses are kept")
	require.NoError(t, p.Check(t.Context()))

	unknown := func() {
		t.Helper()
		var now *runner.Error
		require.ErrorAs(t, find(), &now)
		require.Equal(t, runner.CodeUnavailable, now.Code)
	}
	answer = answer[1:]
	unknown() // it was made just now
	now = now.Add(settleTime)
	require.ErrorAs(t, find(), new(*runner.GoneError))
	failed = errors.New("a name server is away")
	unknown()
	failed = &net.DNSError{IsNotFound: true}
	answer = nil
	unknown() // this service at least should be there
	require.Error(t, p.Check(t.Context()))
	failed, answer = nil, []netip.Addr{netip.MustParseAddr("fd00::3")}
	require.ErrorAs(t, find(), new(*runner.GoneError))
	require.ErrorContains(t, p.Check(t.Context()), "no peer finds its sessions")
}

// TestOneWhoLeaves: who asks first and leaves, or a name server that is away for a moment, hides no
// peer from the others.
func TestOneWhoLeaves(t *testing.T) {
	looks, away := 0, false
	p := newPeers(t, "10.0.0.1:80", func(c *Config) {
		c.Lookup = func(ctx context.Context, _ string) ([]netip.Addr, error) {
			if looks++; away {
				return nil, errors.New("no answer")
			}
			return []netip.Addr{netip.MustParseAddr("10.0.0.2")}, ctx.Err()
		}
	})
	left, leave := context.WithCancel(t.Context())
	leave()
	all, err := p.addresses(left, freshFor)
	require.NoError(t, err)
	require.Equal(t, []string{"10.0.0.2:80"}, all)
	away = true
	p.forget()
	all, err = p.addresses(t.Context(), freshFor)
	require.Error(t, err)
	require.Equal(t, []string{"10.0.0.2:80"}, all, "as it was")
	require.Equal(t, 2, looks)
}

func TestConfig(t *testing.T) {
	good := Config{Own: netip.MustParseAddrPort("10.0.0.1:80"), Secret: secret, Names: []string{"a:80"}}
	for desc, change := range map[string]func(*Config){
		"a short secret": func(c *Config) { c.Secret = secret[1:] }, "no name": func(c *Config) { c.Names = nil },
		"a name without a port": func(c *Config) { c.Names = []string{"a"} }, "no port": func(c *Config) { c.Names = []string{"a:0"} },
		"no host": func(c *Config) { c.Names = []string{":80"} }, "no address": func(c *Config) { c.Own = netip.AddrPort{} },
		"all addresses": func(c *Config) { c.Own = netip.MustParseAddrPort("0.0.0.0:80") },
	} {
		cfg := good
		change(&cfg)
		_, err := New(cfg)
		require.Error(t, err, desc)
	}
	_, err := New(good)
	require.NoError(t, err)
}

func TestHeader(t *testing.T) {
	now := time.Now().Truncate(time.Millisecond)
	clock := func(c *Config) { c.Now = func() time.Time { return now } }
	from, to := newPeers(t, "10.0.0.1:80", clock), newPeers(t, "10.0.0.2:80", clock)
	signed := func() *http.Request {
		r := httptest.NewRequest(http.MethodGet, "/v1/sessions/x/files/a%2Fb?c=d", nil)
		r.Header.Set("Authorization", "Bearer k")
		from.sign(r, "10.0.0.2:80")
		return r
	}
	arrived := func(r *http.Request) bool {
		passed, err := to.Arrived(r)
		require.Equal(t, !passed, err != nil)
		return passed
	}
	require.True(t, arrived(signed()))
	passed, err := to.Arrived(httptest.NewRequest(http.MethodGet, "/", nil))
	require.NoError(t, err)
	require.False(t, passed, "it is a client's")

	for desc, change := range map[string]func(*http.Request){
		"method": func(r *http.Request) { r.Method = http.MethodPut }, "path": func(r *http.Request) { r.RequestURI = "/v1/sessions/y" },
		"host": func(r *http.Request) { r.Host = "other" }, "key": func(r *http.Request) { r.Header.Set("Authorization", "Bearer l") },
		"other key": func(r *http.Request) { r.Header.Set("X-API-Key", "l") },
		"time":      func(r *http.Request) { r.Header.Set(Header, "1"+r.Header.Get(Header)) },
		"cut":       func(r *http.Request) { r.Header.Set(Header, r.Header.Get(Header)[:20]) },
		"two":       func(r *http.Request) { r.Header.Add(Header, "x") },
		"empty":     func(r *http.Request) { r.Header.Set(Header, "") },
	} {
		r := signed()
		change(r)
		require.False(t, arrived(r), desc)
	}
	r := signed()
	other := newPeers(t, "10.0.0.3:80", clock)
	_, err = other.Arrived(r)
	require.ErrorIs(t, err, ErrForged, "it is for another")
	require.True(t, arrived(r))
	for range 3 { // also when nonces are put away
		require.False(t, arrived(r), "it counts once")
		now = now.Add(hopLife / 2)
	}
	r = signed()
	now = now.Add(hopLife)
	require.False(t, arrived(r), "it is too old")
	r = signed()
	now = now.Add(-hopLife)
	require.False(t, arrived(r), "it is of a time to come")
	now = now.Add(1)
	require.True(t, arrived(r))
	for range 4 {
		now = now.Add(hopLife/2 - 1)
		require.False(t, arrived(r), "it counts once, as long as it is good")
	}
}
