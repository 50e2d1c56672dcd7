package server

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"notebox/access"
)

func TestPagesMayNotCallWithoutKeys(t *testing.T) {
	s := newService(t, func(c *Config) {
		c.ListenAddr = "box.lan:8080"
		c.PublicURL = "https://code.example.org/box"
		c.AllowOrigins = []string{"https://app.example.org"}
	})
	own := strings.TrimPrefix(s.url, "http://")
	port := own[strings.LastIndex(own, ":"):]
	for _, c := range []struct {
		desc   string
		host   string
		header [2]string
		ok     bool
	}{
		{"a program", "", [2]string{}, true},
		{"localhost", "localhost" + port, [2]string{}, true},
		{"localhost without a port", "LOCALHOST", [2]string{}, true},
		{"::1", "[::1]" + port, [2]string{}, true},
		{"listen address", "box.lan", [2]string{}, true},
		{"public URL", "code.example.org:443", [2]string{}, true},
		{"rebinding", "evil.example" + port, [2]string{}, false},
		{"rebinding with a good start", "localhost.evil.example", [2]string{}, false},
		{"rebinding with a good end", "notlocalhost", [2]string{}, false},
		{"another address", "192.168.0.1" + port, [2]string{}, false},
		{"all addresses", "0.0.0.0" + port, [2]string{}, false},
		{"mapped address", "[::ffff:127.0.0.1]" + port, [2]string{}, false},
		{"own origin", "", [2]string{"Origin", "http://" + own}, true},
		{"public origin", "", [2]string{"Origin", "https://code.example.org"}, true},
		{"allowed origin", "", [2]string{"Origin", "https://app.example.org"}, true},
		{"other origin", "", [2]string{"Origin", "https://evil.example"}, false},
		{"other port", "", [2]string{"Origin", "http://127.0.0.1:1"}, false},
		{"other scheme", "", [2]string{"Origin", "https://" + own}, false},
		{"no origin", "", [2]string{"Origin", "null"}, false},
		{"cross-site", "", [2]string{"Sec-Fetch-Site", "cross-site"}, false},
		{"same-origin", "", [2]string{"Sec-Fetch-Site", "same-origin"}, true},
		{"typed into the address bar", "", [2]string{"Sec-Fetch-Site", "none"}, true},
	} {
		for _, path := range []string{"/v1/execute", "/v1/environments", "/healthz", "/readyz", "/openapi.json", "/nothing"} {
			t.Run(c.desc+path, func(t *testing.T) {
				s.t = t
				s.runs = nil
				method, body := http.MethodGet, ""
				if path == "/v1/execute" {
					method, body = http.MethodPost, "x"
				}
				req := s.request(method, path, "text/plain", strings.NewReader(body))
				req.Host = c.host
				if c.header[0] != "" {
					req.Header.Set(c.header[0], c.header[1])
				}
				a := s.do(req)
				require.Empty(t, a.Header.Get("Access-Control-Allow-Origin"))
				switch {
				case !c.ok:
					s.requireProblem(a, 403, "")
				case path == "/nothing":
					s.requireProblem(a, 404, "")
				default:
					require.Equal(t, 200, a.StatusCode, "%s", a.body)
				}
			})
		}
	}
	t.Run("preflight", func(t *testing.T) {
		req := s.request(http.MethodOptions, "/v1/execute", "", nil)
		req.Header.Set("Origin", "https://app.example.org")
		req.Header.Set("Access-Control-Request-Method", "POST")
		require.Empty(t, s.do(req).Header.Get("Access-Control-Allow-Origin"))
	})
	t.Run("two origins", func(t *testing.T) {
		s.t, s.runs = t, nil
		req := s.request(http.MethodGet, "/healthz", "", nil)
		req.Header["Origin"] = []string{"http://" + own, "https://evil.example"}
		s.requireProblem(s.do(req), 403, "Origin")
	})
}

func TestListeningOnAllAddresses(t *testing.T) {
	s := newService(t, func(c *Config) { c.ListenAddr = "0.0.0.0:8080" })
	for host, status := range map[string]int{"127.0.0.1": 200, "192.168.0.1": 403, "evil.example": 403} {
		req := s.request(http.MethodGet, "/healthz", "", nil)
		req.Host = host
		require.Equal(t, status, s.do(req).StatusCode, host)
	}
}

func TestPagesWithKeys(t *testing.T) {
	s := newService(t, func(c *Config) {
		c.Keys, _ = NewKeys("key-a")
		c.AllowOrigins = []string{"https://app.example.org"}
	})
	call := func(method, origin string) answer {
		req := s.request(method, "/v1/environments", "", nil)
		req.Host = "behind.a.proxy"
		req.Header.Set("Origin", origin)
		req.Header.Set("Sec-Fetch-Site", "cross-site")
		if method == http.MethodOptions {
			req.Header.Set("Access-Control-Request-Method", "POST")
		} else {
			req.Header.Set("X-API-Key", "key-a")
		}
		return s.do(req)
	}
	a := call(http.MethodOptions, "https://app.example.org")
	require.Equal(t, 204, a.StatusCode)
	require.Equal(t, "https://app.example.org", a.Header.Get("Access-Control-Allow-Origin"))
	require.Contains(t, a.Header.Get("Access-Control-Allow-Headers"), "X-API-Key")
	require.Empty(t, a.Header.Get("Access-Control-Allow-Credentials"))
	a = call(http.MethodGet, "https://app.example.org")
	require.Equal(t, 200, a.StatusCode)
	require.Equal(t, "https://app.example.org", a.Header.Get("Access-Control-Allow-Origin"))
	for _, method := range []string{http.MethodOptions, http.MethodGet} {
		require.Empty(t, call(method, "https://evil.example").Header.Get("Access-Control-Allow-Origin"))
	}
}

// TestPagesBeforeTheFirstKey: a service that waits for its first key is one with keys.
func TestPagesBeforeTheFirstKey(t *testing.T) {
	s := newService(t, func(c *Config) { c.Keys, _ = access.New(nil, access.Options{Await: true}) })
	req := s.request(http.MethodGet, "/v1/environments", "", nil)
	req.Host = "behind.a.proxy"
	require.Equal(t, http.StatusUnauthorized, s.do(req).StatusCode)
}

func TestBrowserRulesOfConfig(t *testing.T) {
	for _, public := range []string{"code.example.org", "ftp://x", "https://", "https://x?y", "https://u@x", "https://x#y"} {
		_, err := newBrowserRules(false, "", public, nil)
		require.Error(t, err, public)
	}
	for _, origin := range []string{"*", "https://*.example.org", "https://x/", "app.example.org", "https://x/y", "null"} {
		_, err := newBrowserRules(false, "", "", []string{origin})
		require.Error(t, err, origin)
	}
}
