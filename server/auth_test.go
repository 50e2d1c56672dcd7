package server

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

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

func TestOwnersDifferAndLast(t *testing.T) {
	keys, err := NewKeys("key-a", "key-b")
	require.NoError(t, err)
	again, err := NewKeys("key-a")
	require.NoError(t, err)
	a, _ := keys.owner("key-a")
	b, _ := keys.owner("key-b")
	later, _ := again.owner("key-a")
	require.NotEqual(t, a, b)
	require.Equal(t, a, later)
}

func TestLoadKeys(t *testing.T) {
	for _, c := range []struct {
		desc, content string
		keys          int
		err           string
	}{
		{"two", "# keys\n\n  one \r\ntwo\n#three", 2, ""},
		{"empty", "", 0, "there is no key in it"},
		{"only comments", "# one\n\n", 0, "there is no key in it"},
		{"two words", "one\ntwo # of Bob", 0, "line 2"},
		{"not ASCII", "schlüssel", 0, "line 1"},
		{"a binary", strings.Repeat("x", maxKeyLine+1), 0, "token too long"},
	} {
		t.Run(c.desc, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "keys")
			require.NoError(t, os.WriteFile(path, []byte(c.content), 0o600))
			keys, err := LoadKeys(path)
			if c.err != "" {
				require.ErrorContains(t, err, c.err)
				require.NotContains(t, err.Error(), "Bob", "a part of a key may be in the line")
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.keys, keys.Len())
		})
	}
	_, err := LoadKeys(filepath.Join(t.TempDir(), "none"))
	require.ErrorIs(t, err, os.ErrNotExist)
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
