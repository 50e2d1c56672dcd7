package asset

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

// style is an asset that is stored compressed.
func style(t *testing.T) *Asset {
	t.Helper()
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, err := w.Write(bytes.Repeat([]byte("p { margin: 0 }\n"), 100))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	assets, err := Load(fstest.MapFS{"folder/style.css.gz": {Data: packed.Bytes()}})
	require.NoError(t, err)
	require.Equal(t, packed.Bytes(), assets["style.css"].Packed())
	return assets["style.css"]
}

// get asks for an asset; headers are pairs.
func get(t *testing.T, a *Asset, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	require.True(t, a.Serve(w, r))
	return w
}

func loaded(t *testing.T, name, content string) *Asset {
	t.Helper()
	assets, err := Load(fstest.MapFS{name: {Data: []byte(content)}})
	require.NoError(t, err)
	return assets[name]
}

func TestWhatIsServed(t *testing.T) {
	for _, c := range []struct {
		desc      string
		asset     *Asset
		mediaType string
		policy    string
	}{
		{"a page", Page("default-src 'none'; img-src data:", []byte("<p>")), "text/html; charset=utf-8", "default-src 'none'; img-src data:"},
		{"a text", loaded(t, "a.txt", "<p>"), "text/plain; charset=utf-8", "default-src 'none'; frame-ancestors 'none'"},
	} {
		t.Run(c.desc, func(t *testing.T) {
			w := get(t, c.asset)
			require.Equal(t, "<p>", w.Body.String())
			require.Equal(t, c.mediaType, w.Header().Get("Content-Type"))
			require.Equal(t, c.policy, w.Header().Get("Content-Security-Policy"))
			require.Equal(t, "same-origin", w.Header().Get("Cross-Origin-Resource-Policy"))
			require.Equal(t, "same-origin", w.Header().Get("Cross-Origin-Opener-Policy"))
			require.Equal(t, "no-cache", w.Header().Get("Cache-Control"))
			again := get(t, c.asset, "If-None-Match", w.Header().Get("ETag"))
			require.Equal(t, http.StatusNotModified, again.Code)
		})
	}
	var none *Asset
	require.False(t, none.Serve(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil)))
}

func TestUnknownTypesAreAnError(t *testing.T) {
	_, err := Load(fstest.MapFS{"page.html": {Data: []byte("<p>")}})
	require.ErrorContains(t, err, "page.html: no known type")
}

func TestEncodings(t *testing.T) {
	a := style(t)
	for _, c := range []struct {
		desc, accept string
		packed       bool
	}{
		{"a browser", "gzip, deflate, br, zstd", true},
		{"in capitals", "GZIP", true},
		{"weighed", "br;q=1.0, gzip;q=0.8, *;q=0.1", true},
		{"anything", "*", true},
		{"anything but this", "gzip;q=0, *", false},
		{"nothing said", "", false},
		{"refused", "gzip;q=0", false},
		{"a weight that is none", "gzip;q=x", false},
		{"another", "br", false},
		{"alike", "gzippy", false},
	} {
		t.Run(c.desc, func(t *testing.T) {
			w := get(t, a, "Accept-Encoding", c.accept)
			require.Equal(t, http.StatusOK, w.Code)
			require.Equal(t, "text/css; charset=utf-8", w.Header().Get("Content-Type"))
			require.Equal(t, "Accept-Encoding", w.Header().Get("Vary"))
			body := w.Body.Bytes()
			if c.packed {
				require.Equal(t, "gzip", w.Header().Get("Content-Encoding"))
				body = unpack(body)
			} else {
				require.Empty(t, w.Header().Get("Content-Encoding"))
			}
			require.True(t, bytes.Equal(a.Plain(), body))
		})
	}
}

func TestTagsAndRanges(t *testing.T) {
	a := style(t)
	whole, packed := get(t, a), get(t, a, "Accept-Encoding", "gzip")
	tag, packedTag := whole.Header().Get("ETag"), packed.Header().Get("ETag")
	require.NotEqual(t, tag, packedTag, "they are different bytes")
	for _, c := range []struct {
		desc    string
		headers []string
		status  int
		body    []byte
	}{
		{"known", []string{"If-None-Match", tag}, http.StatusNotModified, nil},
		{"known, packed", []string{"If-None-Match", packedTag, "Accept-Encoding", "gzip"}, http.StatusNotModified, nil},
		{"known in the other form", []string{"If-None-Match", packedTag}, http.StatusOK, whole.Body.Bytes()},
		{"of another version", []string{"If-None-Match", `"x"`}, http.StatusOK, whole.Body.Bytes()},
		{"a range", []string{"Range", "bytes=2-9"}, http.StatusPartialContent, whole.Body.Bytes()[2:10]},
		{"a range, packed", []string{"Range", "bytes=2-9", "Accept-Encoding", "gzip"}, http.StatusPartialContent, packed.Body.Bytes()[2:10]},
		{"a range of another version", []string{"Range", "bytes=2-9", "If-Range", `"x"`}, http.StatusOK, whole.Body.Bytes()},
	} {
		t.Run(c.desc, func(t *testing.T) {
			w := get(t, a, c.headers...)
			require.Equal(t, c.status, w.Code)
			require.True(t, bytes.Equal(c.body, w.Body.Bytes()))
		})
	}
}
