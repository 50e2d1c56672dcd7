package server

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"notebox/access"
)

// NewKeys are plain keys, without limits.
func NewKeys(keys ...string) (*access.Keys, error) {
	var all []access.Entry
	for _, key := range keys {
		all = append(all, access.PlainEntry(key))
	}
	return access.New(all, access.Options{})
}

// ownerOfKey is the owner of what a plain key makes.
func ownerOfKey(key string) string { return access.PlainEntry(key).Owner }

func TestKeysGuardRoutes(t *testing.T) {
	keys, err := NewKeys("key-a", "key-b")
	require.NoError(t, err)
	s := newService(t, func(c *Config) { c.Keys = keys })
	for _, path := range []string{"/healthz", "/readyz", "/openapi.json"} {
		require.Equal(t, 200, s.get(path).StatusCode, path)
	}
	for _, path := range []string{"/v1/environments", "/v1/environments?x=1"} {
		require.Equal(t, 401, s.get(path).StatusCode, path)
	}
	for _, c := range []struct {
		desc   string
		header [2]string
		status int
	}{
		{"none", [2]string{"", ""}, 401},
		{"bearer", [2]string{"Authorization", "Bearer key-a"}, 200},
		{"bearer in small letters", [2]string{"Authorization", "bearer key-b"}, 200},
		{"X-API-Key", [2]string{"X-API-Key", "key-b"}, 200},
		{"wrong", [2]string{"Authorization", "Bearer key-c"}, 401},
		{"prefix", [2]string{"X-API-Key", "key"}, 401},
		{"longer", [2]string{"X-API-Key", "key-a1"}, 401},
		{"empty", [2]string{"X-API-Key", ""}, 401},
		{"empty bearer", [2]string{"Authorization", "Bearer "}, 401},
		{"basic", [2]string{"Authorization", "Basic key-a"}, 401},
	} {
		t.Run(c.desc, func(t *testing.T) {
			s.t = t
			s.runs = nil
			req := s.request("POST", "/v1/execute", "text/plain", strings.NewReader("x"))
			if c.header[0] != "" {
				req.Header.Set(c.header[0], c.header[1])
			}
			a := s.do(req)
			if c.status == 200 {
				s.replied(a)
				require.Regexp(t, "^[0-9a-f]{16}$", s.only().Owner)
				return
			}
			s.requireProblem(a, 401, "an API key is needed")
			require.Equal(t, `Bearer realm="notebox"`, a.Header.Get("WWW-Authenticate"))
		})
	}
	require.NotContains(t, s.logged.String(), "key-a")

	req := s.request("POST", "/v1/execute", "text/plain", strings.NewReader("x"))
	req.Header.Set("Authorization", "Basic dXNlcjpwYXNz") // a proxy's
	req.Header.Set("X-API-Key", "key-a")
	require.Equal(t, 200, s.do(req).StatusCode)
}

func TestCheckListen(t *testing.T) {
	for addr, loopback := range map[string]bool{
		"127.0.0.1:8080": true, "127.0.0.2:0": true, "[::1]:8080": true, "localhost:8080": true, "LocalHost:1": true,
		":8080": false, "0.0.0.0:8080": false, "[::]:8080": false, "192.168.1.1:80": false, "example.org:80": false,
		"localhost.example.org:80": false,
	} {
		require.Equal(t, loopback, CheckListen(addr, false, false) == nil, addr)
		require.NoError(t, CheckListen(addr, true, false), addr)
		require.NoError(t, CheckListen(addr, false, true), addr)
	}
	require.Error(t, CheckListen("8080", true, true))
}
