package storage_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/storage"
)

// serveFiles is the least that a server needs around a Store.
func serveFiles(s *storage.Store) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key := strings.TrimPrefix(r.URL.Path, storage.LinkPath)
		if err := s.Verify(key, r.URL.Query()); err != nil {
			http.Error(w, "", http.StatusForbidden)
			return
		}
		object, err := s.Get(r.Context(), key)
		if errors.Is(err, storage.ErrNotFound) {
			http.NotFound(w, r)
			return
		}
		if err != nil {
			http.Error(w, "", http.StatusInternalServerError)
			return
		}
		defer func() { _ = object.Close() }()
		w.Header().Set("Content-Type", object.MediaType)
		w.Header().Set("Content-Disposition", object.Disposition())
		w.Header().Set("ETag", object.ETag)
		http.ServeContent(w, r, "", object.ModTime, object)
	})
}

type response struct {
	status int
	header http.Header
	body   string
}

// fetch gets key by its link, with a plain HTTP client over TCP.
func fetch(t *testing.T, s *storage.Store, key string, header http.Header) response {
	t.Helper()
	server := httptest.NewServer(serveFiles(s))
	defer server.Close()
	link, _, err := s.Link(t.Context(), key, server.URL+"/")
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(link, server.URL+"/v1/files/"), link)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, link, nil)
	require.NoError(t, err)
	if header != nil {
		request.Header = header
	}
	reply, err := server.Client().Do(request)
	require.NoError(t, err)
	defer func() { _ = reply.Body.Close() }()
	body, err := io.ReadAll(reply.Body)
	require.NoError(t, err)
	return response{reply.StatusCode, reply.Header, string(body)}
}

func linkServes(t *testing.T, s *storage.Store, _ *clock) {
	content := string(randomBytes(300_000))
	key := fileKey("plots/ü 1.csv")
	mustPut(t, s, key, []byte(content))

	whole := fetch(t, s, key, nil)
	require.Equal(t, http.StatusOK, whole.status)
	require.True(t, whole.body == content)
	require.Equal(t, `attachment; filename="_ 1.csv"; filename*=UTF-8''%C3%BC%201.csv`, whole.header.Get("Content-Disposition"))
	tag := whole.header.Get("ETag")

	for _, test := range []struct {
		desc   string
		header http.Header
		status int
		body   string
	}{
		{"first bytes", http.Header{"Range": {"bytes=0-9"}}, http.StatusPartialContent, content[:10]},
		{"from the middle", http.Header{"Range": {"bytes=150000-"}}, http.StatusPartialContent, content[150_000:]},
		{"last bytes", http.Header{"Range": {"bytes=-7"}}, http.StatusPartialContent, content[len(content)-7:]},
		{"beyond the end", http.Header{"Range": {"bytes=300000-"}}, http.StatusRequestedRangeNotSatisfiable, "invalid range: failed to overlap\n"},
		{"not changed", http.Header{"If-None-Match": {tag}}, http.StatusNotModified, ""},
		{"changed", http.Header{"If-None-Match": {`"other"`}}, http.StatusOK, content},
		{"range of the same", http.Header{"Range": {"bytes=0-0"}, "If-Range": {tag}}, http.StatusPartialContent, content[:1]},
		{"range of another", http.Header{"Range": {"bytes=0-0"}, "If-Range": {`"other"`}}, http.StatusOK, content},
	} {
		t.Run(test.desc, func(t *testing.T) {
			got := fetch(t, s, key, test.header)
			require.Equal(t, test.status, got.status)
			require.True(t, test.body == got.body, "%d bytes", len(got.body))
		})
	}
	require.Equal(t, http.StatusNotFound, fetch(t, s, fileKey("other"), nil).status)
}

func changedLinks(t *testing.T, s *storage.Store, clock *clock) {
	key, other := fileKey("a"), fileKey("b")
	link, expires, err := s.Link(t.Context(), key, "http://localhost:8080")
	require.NoError(t, err)
	require.Equal(t, clock.now.Add(time.Hour), expires)
	u, err := url.Parse(link)
	require.NoError(t, err)
	q := u.Query()
	require.NoError(t, s.Verify(key, q))

	refused := func(desc, key string, q url.Values) {
		t.Helper()
		require.ErrorIs(t, s.Verify(key, q), storage.ErrSignature, desc)
	}
	for i := range key {
		for _, bit := range []byte{1, 0x20, 0x80} {
			changed := []byte(key)
			changed[i] ^= bit
			refused("key", string(changed), q)
		}
	}
	for _, parameter := range []string{"expires", "signature"} {
		genuine := q.Get(parameter)
		for i := range genuine {
			for _, c := range "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_+/= %\x00" {
				if genuine[i] != byte(c) {
					refused(parameter, key, with(q, parameter, genuine[:i]+string(c)+genuine[i+1:]))
				}
			}
			refused(parameter+" without a byte", key, with(q, parameter, genuine[:i]+genuine[i+1:]))
		}
		for _, value := range []string{"", genuine + "=", genuine + "0", "0" + genuine, "+" + genuine, " " + genuine, genuine + "\n", "-1", "1e99"} {
			refused(parameter, key, with(q, parameter, value))
		}
		refused(parameter+" is missing", key, with(q, parameter))
		refused(parameter+" twice", key, with(q, parameter, genuine, genuine))
	}
	refused("another key", other, q)
	refused("no query", key, nil)
	require.NoError(t, s.Verify(key, with(q, "utm_source", "chat")), "what others add counts nothing")

	stranger, err := storage.Open(t.Context(), storage.Options{URL: "mem://", Now: clock.Now})
	require.NoError(t, err)
	require.ErrorIs(t, stranger.Verify(key, q), storage.ErrSignature, "another service's secret")
	require.NoError(t, stranger.Close())
}

func expiredLinks(t *testing.T, s *storage.Store, clock *clock) {
	key := fileKey("a")
	mustPut(t, s, key, []byte("a"))
	link, expires, err := s.Link(t.Context(), key, "")
	require.NoError(t, err)
	u, err := url.Parse(link)
	require.NoError(t, err)

	clock.now = expires.Add(-time.Second)
	require.NoError(t, s.Verify(key, u.Query()))
	clock.now = expires
	require.ErrorIs(t, s.Verify(key, u.Query()), storage.ErrExpired)
	clock.now = expires.Add(time.Hour)
	require.ErrorIs(t, s.Verify(key, u.Query()), storage.ErrExpired)
	require.ErrorIs(t, s.Verify(fileKey("b"), u.Query()), storage.ErrSignature, "not genuine comes before expired")

	reply := httptest.NewRecorder()
	serveFiles(s).ServeHTTP(reply, httptest.NewRequest(http.MethodGet, link, nil))
	require.Equal(t, http.StatusForbidden, reply.Code)
}

// with is q with one parameter set to values.
func with(q url.Values, parameter string, values ...string) url.Values {
	changed := url.Values{}
	for k, v := range q {
		changed[k] = v
	}
	changed[parameter] = values
	return changed
}
