package native

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"notebox/executor"
	"notebox/runner"
	"notebox/server/web"
	"notebox/storage"
)

// FuzzWishes holds what Prefer, Idempotency-Key and Accept may say.
func FuzzWishes(f *testing.F) {
	f.Add("respond-async, wait=10", "8e03978e-40d5-43dd-bc93-6894a57f9324", "text/event-stream;q=0.9, application/json;q=0.8")
	f.Add(`a="b,c;d\"", respond-async;x`, "a b", "text/*, */*;q=NaN")
	f.Add("", "", ",;=,text/event-stream;q=1e999")
	f.Fuzz(func(t *testing.T, prefer, key, accept string) {
		w, err := wishesOf(http.Header{"Prefer": {prefer}, "Idempotency-Key": {key}})
		if err == nil {
			require.Equal(t, key, w.key)
			require.Regexp(t, `^[!-~]{1,255}$`, w.key)
		}
		if w.async {
			require.Contains(t, strings.ToLower(prefer), "respond-async")
		}
		require.True(t, prefers([]string{prefer, "Respond-Async ;a=b"}, "respond-async"), "what another header says")
		if web.WantsEvents(http.Header{"Accept": {accept}}) {
			require.Contains(t, strings.ToLower(accept), "text/event-stream")
			require.False(t, web.WantsEvents(http.Header{"Accept": {accept, "text/event-stream;q=0"}}) &&
				!strings.Contains(strings.ToLower(accept), "stream"))
		}
	})
}

// FuzzFileKey holds that a path gives a key that leads nowhere else, and that the key's
// own path gives it again.
func FuzzFileKey(f *testing.F) {
	for _, seed := range []string{"runs/a=/b.png", "..%2fx", "%2e%2e/x", "a%252fb", "a%5cb", "a//b", "%00", "%c3%a9", "a/./b", "%", "a;b?c"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, path string) {
		u, err := url.ParseRequestURI(FilesPrefix + path)
		if err != nil {
			return
		}
		key, ok := fileKey(u)
		if !ok {
			return
		}
		require.NotContains(t, key, "\x00")
		require.NotContains(t, key, `\`)
		for part := range strings.SplitSeq(key, "/") {
			require.NotContains(t, []string{"", ".", ".."}, part)
		}
		again, ok := fileKey(&url.URL{Path: FilesPrefix + key})
		require.True(t, ok)
		require.Equal(t, key, again)
	})
}

// FuzzSessionPath holds that a path, of whatever route, leads below /mnt/data, and that
// the path's own address gives it again.
func FuzzSessionPath(f *testing.F) {
	for _, seed := range []string{"a/b.png", "..%2fx", "%2e%2e/x", "a%252fb", "a%5cb", "a//b", "%00", "%c3%a9", "a/./b", "%", "a;b?c", "/mnt/data/a", "/etc/passwd", "%0d%0aX: y", "\xff"} {
		f.Add(seed)
	}
	id := "ses_01KAJ3V7Q1R2S3T4V5W6X7Y8Z9"
	prefix := sessionsPath + "/" + id + "/files/"
	below := func(t *testing.T, name string) {
		for part := range strings.SplitSeq(name, "/") {
			require.NotContains(t, []string{"", ".", ".."}, part)
		}
		require.NotContains(t, name, "\x00")
		require.True(t, utf8.ValidString(name))
	}
	f.Fuzz(func(t *testing.T, path string) {
		if given, err := executor.GivenPath("path", path); err == nil && given != "" {
			below(t, given)
		}
		u, err := url.ParseRequestURI(prefix + path)
		if err != nil {
			return
		}
		name, ok := sessionPathOf(u, id)
		if !ok {
			return
		}
		below(t, name)
		again, ok := sessionPathOf(&url.URL{Path: prefix + name}, id)
		require.True(t, ok)
		require.Equal(t, name, again)
		h := http.Header{}
		describeSessionFile(h, &executor.SessionFile{FileInfo: runner.FileInfo{Path: name, Size: 1}, MediaType: storage.MediaType(name, []byte("x"))})
		for header, values := range h {
			require.Regexp(t, `^[ -~]*$`, values[0], header)
		}
	})
}
