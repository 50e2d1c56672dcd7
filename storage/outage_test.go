package storage_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"notebox/storage"
	"notebox/storage/storagetest"
)

// flaky stands before a server and, as often as it is told, cuts off a request that
// writes.
type flaky struct {
	*httptest.Server
	cut  atomic.Int64 // requests that are to be cut off
	seen atomic.Int64 // that were
}

func newFlaky(t *testing.T, endpoint string) *flaky {
	target, err := url.Parse(endpoint)
	require.NoError(t, err)
	f := new(flaky)
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }}
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut && f.cut.Add(-1) >= 0 {
			f.seen.Add(1)
			panic(http.ErrAbortHandler)
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(f.Close)
	return f
}

// TestPutBeginsAnewAfterAnOutage that is longer than what a cloud's own client bears.
func TestPutBeginsAnewAfterAnOutage(t *testing.T) {
	t.Parallel()
	azurite := storagetest.Azurite(t)
	proxy := newFlaky(t, azurite.Endpoint)
	const variable = "AZURE_STORAGE_CONNECTION_STRING"
	s, err := storage.Open(t.Context(), storage.Options{
		URL:    azurite.URL(t),
		Getenv: azurite.With(map[string]string{variable: strings.ReplaceAll(azurite.Getenv(variable), azurite.Endpoint, proxy.URL)}),
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	const oneTry = 3 // requests, each of which the client sends for a Put

	for _, c := range []struct {
		desc  string
		bytes int
	}{
		{"small", 1000},
		{"kept on the disk", 3 << 20},
		{"in several requests", 20 << 20},
	} {
		t.Run(c.desc, func(t *testing.T) {
			want := randomBytes(c.bytes)
			dir := t.TempDir()
			content := s.Replay(io.MultiReader(bytes.NewReader(want)), dir)
			defer func() { require.NoError(t, content.Close()) }()
			proxy.seen.Store(0)
			proxy.cut.Store(oneTry)
			_, err := s.Put(t.Context(), "runs/a", content, "a")
			require.NoError(t, err)
			require.EqualValues(t, oneTry, proxy.seen.Load())
			require.True(t, string(want) == mustGet(t, s, "runs/a"))
		})
	}
	t.Run("what comes once is an error that may be temporary", func(t *testing.T) {
		proxy.cut.Store(1 << 30)
		defer proxy.cut.Store(0)
		_, err := s.Put(t.Context(), "runs/b", io.MultiReader(strings.NewReader("x")), "b")
		require.True(t, storage.Temporary(err), "%v", err)
		requireNotFound(t, s, "runs/b")
	})
	t.Run("what the store refuses is not tried again", func(t *testing.T) {
		_, err := s.Put(t.Context(), "", strings.NewReader("x"), "b")
		require.Error(t, err)
		require.False(t, storage.Temporary(err))
	})
}
