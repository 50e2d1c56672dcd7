package server

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"notebox/environments"
	"notebox/executor"
	"notebox/executor/fetch"
	"notebox/runner"
	"notebox/storage"
)

// fuzzServer is a service whose runs are run's, and which stores nothing.
func fuzzServer(f *testing.F, temp string, run runFunc, change ...func(*Config)) *Server {
	store, err := storage.Open(context.Background(), storage.Options{URL: "mem://"})
	require.NoError(f, err)
	cfg := Config{
		Runner: run, Store: failingStore{store, func(string) bool { return true }},
		Environments: []environments.Environment{python}, TempDir: temp, MaxBody: 1 << 20, MaxUpload: 1 << 20,
	}
	for _, c := range change {
		c(&cfg)
	}
	server, err := New(cfg)
	require.NoError(f, err)
	return server
}

// FuzzFetchURL holds what may be fetched to what its parts say.
func FuzzFetchURL(f *testing.F) {
	for _, seed := range []string{"http://a/b", "https://u:p@h/", "http://[::1%25lo]:80/x", "file:///etc/passwd", "http://h\t/", "HTTP://0x7f.1/", "http://a/..", "http:///x", "gopher://h"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		name := fetch.NameOf(raw)
		require.NotContains(t, name, "/")
		u, err := fetch.Parse(raw)
		if err != nil {
			return
		}
		require.Contains(t, []string{"http", "https"}, u.Scheme)
		require.Nil(t, u.User)
		require.NotEmpty(t, u.Hostname())
		require.LessOrEqual(t, len(raw), fetch.MaxURLBytes)
		// What a redirect to it says is checked by its own text.
		again, err := fetch.Parse(u.String())
		if err == nil {
			require.Equal(t, u.Host, again.Host)
			require.Equal(t, u.Scheme, again.Scheme)
		}
	})
}

var ownNames = regexp.MustCompile(`(?i)^(localhost|127\.0\.0\.1|\[[0:]*:0*1(%[^\]]*)?\]|[0:]*:0*1|\[::ffff:127\.0\.0\.1\])(:[^:]*)?$`)

// FuzzBrowser holds that without keys, a page gets through only from this machine's own
// names.
func FuzzBrowser(f *testing.F) {
	f.Add("localhost:8080", "http://localhost:8080", "same-origin")
	f.Add("127.0.0.1", "null", "cross-site")
	f.Add("[::1]:80", "", "")
	f.Add("localhost.evil.test", "http://evil.test", "")
	f.Add("LOCALHOST@evil:1", "", "Cross-Site")
	rules, err := newBrowserRules(false, "", "", nil)
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, host, origin, site string) {
		r := httptest.NewRequest(http.MethodGet, "http://localhost/", nil)
		r.Host = host
		r.Header = http.Header{"Origin": {origin}, "Sec-Fetch-Site": {site}}
		if rules.ownHost(r) {
			require.Regexp(t, ownNames, host)
		}
		if rules.ownHost(r) && rules.ownOrigin(r) {
			require.True(t, strings.EqualFold(origin, "http://"+host), "%q to %q", origin, host)
		}
	})
}

// FuzzForm holds that what a form carries arrives byte for byte, whatever the names and
// contents are.
func FuzzForm(f *testing.F) {
	f.Add("print(1)", "a/b.csv", []byte("\r\n--b\r\n"), "5")
	f.Add("\x00", `"; filename="../x`, []byte{0xff}, "NaN")
	f.Add("\xff", "a\r\nX: y", []byte(nil), "-1")
	var got runner.Spec
	var files map[string]string
	server := fuzzServer(f, f.TempDir(), func(_ context.Context, spec runner.Spec, _ runner.Sink) (_ *runner.Outcome, err error) {
		got = spec
		files, err = readInputs(spec)
		return executed(spec, runner.StatusOK), err
	})
	f.Fuzz(func(t *testing.T, code, name string, content []byte, timeout string) {
		contentType, body := formBody(
			formPart{`name="code"`, code}, formPart{`name="timeout"`, timeout},
			formPart{`name="files"; filename="` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(name) + `"`, string(content)})
		req := httptest.NewRequest(http.MethodPost, "http://localhost/v1/execute", strings.NewReader(body))
		req.Header.Set("Content-Type", contentType)
		w := httptest.NewRecorder()
		server.Handler().ServeHTTP(w, req)
		if w.Code != http.StatusOK {
			require.Less(t, w.Code, 500, "%s", w.Body)
			require.True(t, json.Valid(w.Body.Bytes()))
			return
		}
		require.Equal(t, []string{code}, sources(t, got))
		require.Len(t, files, 1)
		for path, put := range files {
			requireSafeName(t, path)
			require.Equal(t, string(content), put)
		}
	})
}

// FuzzSessionRequest holds that no body opens a session with what a session may not
// have, and none is a 5xx or leaves a temporary file.
func FuzzSessionRequest(f *testing.F) {
	contentType, body := formBody(formPart{`name="ttl"`, "5"}, formPart{`name="files"; filename="a/b"`, "\x00"})
	f.Add("application/json", `{"language":"python","ttl":1e3,"idle":5,"env":{"A":"b"},"network":false,"files":[{"name":"a","content":"YQ=="}]}`)
	f.Add("application/json", `{"ttl":1e999}`)
	f.Add("application/json", "")
	f.Add(contentType, body)
	f.Add("multipart/form-data; boundary=b", "--b\r\nContent-Disposition: form-data; name=idle\r\n\r\nNaN\r\n--b--")
	offered := newSessions(f)
	temp := f.TempDir()
	server := fuzzServer(f, temp, nil, func(c *Config) { c.Sessions = offered })
	f.Fuzz(func(t *testing.T, contentType, body string) {
		var spec runner.SessionSpec
		offered.onOpen = func(_ context.Context, s runner.SessionSpec) error { spec = s; return nil }
		req := httptest.NewRequest(http.MethodPost, "http://localhost/v1/sessions", strings.NewReader(body))
		req.Header.Set("Content-Type", contentType)
		w := httptest.NewRecorder()
		server.Handler().ServeHTTP(w, req)
		require.Less(t, w.Code, 500, "%s", w.Body)
		require.True(t, json.Valid(w.Body.Bytes()))
		entries, err := os.ReadDir(temp)
		require.NoError(t, err)
		require.Empty(t, entries)
		if w.Code != http.StatusCreated {
			require.Empty(t, spec.ID)
			return
		}
		require.True(t, spec.TTL >= time.Second && spec.TTL <= executor.DefaultMaxSessionTTL, spec.TTL)
		require.True(t, spec.Idle >= time.Second && spec.Idle <= executor.DefaultMaxSessionTTL, spec.Idle)
		require.Nil(t, spec.Network)
		for _, in := range spec.Inputs {
			requireSafeName(t, in.Path)
		}
		session, err := offered.Find("", spec.ID)
		require.NoError(t, err)
		require.NoError(t, session.Close(context.Background()))
	})
}

func requireSafeName(t *testing.T, name string) {
	t.Helper()
	require.True(t, filepath.IsLocal(name), "%q", name)
	require.Equal(t, path.Clean(name), name)
	require.NotEqual(t, ".", name)
	require.True(t, utf8.ValidString(name))
	require.NotContains(t, name, "\x00")
}
