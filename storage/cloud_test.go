package storage_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/storage"
	"notebox/storage/storagetest"
)

// clouds are the stores whose links are their own.
var clouds = []struct {
	desc  string
	start func(t *testing.T) *cloudUnderTest
}{
	{"azblob", func(t *testing.T) *cloudUnderTest { return &cloudUnderTest{Server: storagetest.Azurite(t)} }},
	{"s3", func(t *testing.T) *cloudUnderTest { return &cloudUnderTest{Server: storagetest.S3(t)} }},
	{"gs", func(t *testing.T) *cloudUnderTest {
		server, key := storagetest.GCS(t)
		return &cloudUnderTest{Server: server, gate: func(link string) error { return verifyV4(key, link, time.Now()) }}
	}},
}

// cloudSuite is what a cloud must do beside suite.
var cloudSuite = []struct {
	desc string
	run  func(t *testing.T, c *cloudUnderTest)
}{
	{"a link serves to a plain HTTP client", cloudLinks},
	{"a link serves any name", cloudLinkNames},
	{"a changed link is refused by the cloud", cloudChangedLinks},
	{"an expired link is refused by the cloud", cloudExpiredLinks},
	{"a big put that is cut leaves nothing", cloudCutPuts},
	{"of two services' records one is created", cloudOnePutNewWins},
	{"a reader never mixes two objects of one size", cloudPinnedReaders},
	{"a container that is gone is no object that is not found", cloudGone},
	{"an outage fails what comes, and passes", cloudOutage},
}

func TestClouds(t *testing.T) {
	t.Parallel()
	for _, cloud := range clouds {
		t.Run(cloud.desc, func(t *testing.T) {
			t.Parallel()
			c := cloud.start(t)
			for _, test := range cloudSuite {
				t.Run(test.desc, func(t *testing.T) { test.run(t, c) })
			}
		})
	}
}

type cloudUnderTest struct {
	*storagetest.Server
	gate func(link string) error // of a server that checks nothing itself
}

func (c *cloudUnderTest) open(t *testing.T, ttl time.Duration) *storage.Store {
	t.Helper()
	return mustOpen(t, storage.Options{URL: c.URL(t), Getenv: c.Getenv, TTL: ttl})
}

// do is what a plain HTTP client gets for a link.
func (c *cloudUnderTest) do(t *testing.T, method, link string, header http.Header) response {
	t.Helper()
	if c.gate != nil && c.gate(link) != nil {
		return response{status: http.StatusForbidden}
	}
	request, err := http.NewRequestWithContext(t.Context(), method, link, nil)
	require.NoError(t, err)
	if header != nil {
		request.Header = header
	}
	reply, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer func() { _ = reply.Body.Close() }()
	body, err := io.ReadAll(reply.Body)
	require.NoError(t, err)
	return response{reply.StatusCode, reply.Header, string(body)}
}

func mustLink(t *testing.T, s *storage.Store, key string) string {
	t.Helper()
	link, _, err := s.Link(t.Context(), key, "https://notebox.example.org")
	require.NoError(t, err)
	return link
}

func cloudLinks(t *testing.T, c *cloudUnderTest) {
	s := c.open(t, time.Hour)
	name, content := "plots/ü 1.csv", string(randomBytes(300_000))
	_, err := s.Put(t.Context(), fileKey(name), strings.NewReader(content), name)
	require.NoError(t, err)
	link, expires, err := s.Link(t.Context(), fileKey(name), "https://notebox.example.org")
	require.NoError(t, err)
	require.WithinDuration(t, time.Now().Add(time.Hour), expires, time.Minute)
	require.True(t, strings.HasPrefix(link, c.Endpoint+"/"), "it leads to the cloud")

	got := c.do(t, http.MethodGet, link, nil)
	require.Equal(t, http.StatusOK, got.status, got.body)
	require.True(t, got.body == content)
	require.Equal(t, "text/csv", got.header.Get("Content-Type"))
	require.Equal(t, `attachment; filename="_ 1.csv"; filename*=UTF-8''%C3%BC%201.csv`, got.header.Get("Content-Disposition"))
	require.NotEmpty(t, got.header.Get("ETag"))

	got = c.do(t, http.MethodGet, link, http.Header{"Range": {"bytes=150000-150009"}})
	require.Equal(t, http.StatusPartialContent, got.status)
	require.Equal(t, content[150_000:150_010], got.body)

	_, _, err = s.Link(t.Context(), storage.RecordKey("a"), "")
	require.Error(t, err, "no link leads to a record")
	if c.gate == nil {
		for _, method := range []string{http.MethodPut, http.MethodDelete} {
			require.GreaterOrEqual(t, c.do(t, method, link, nil).status, 400, "it is for reading alone")
		}
		require.Equal(t, content, mustGet(t, s, fileKey(name)))
	}
}

func cloudLinkNames(t *testing.T, c *cloudUnderTest) {
	s := c.open(t, time.Hour)
	for _, test := range hostileNames {
		_, err := s.Put(t.Context(), fileKey(test.name), strings.NewReader("this is "+test.name), test.name)
		require.NoError(t, err, test.desc)
	}
	for _, test := range hostileNames {
		got := c.do(t, http.MethodGet, mustLink(t, s, fileKey(test.name)), nil)
		require.Equal(t, http.StatusOK, got.status, test.desc)
		require.Equal(t, "this is "+test.name, got.body, test.desc)
		require.Empty(t, got.header.Get("Set-Cookie"))
		require.Equal(t, storage.Object{Name: test.name, MediaType: got.header.Get("Content-Type")}.Disposition(),
			got.header.Get("Content-Disposition"), test.desc)
	}
}

func cloudChangedLinks(t *testing.T, c *cloudUnderTest) {
	s := c.open(t, time.Hour)
	mustPut(t, s, fileKey("a"), []byte("a"))
	mustPut(t, s, fileKey("b"), []byte("b"))
	link := mustLink(t, s, fileKey("a"))
	require.Equal(t, http.StatusOK, c.do(t, http.MethodGet, link, nil).status)
	refused := func(desc string, link string) {
		t.Helper()
		status := c.do(t, http.MethodGet, link, nil).status
		require.Contains(t, []int{http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound}, status, desc)
	}
	u, err := url.Parse(link)
	require.NoError(t, err)
	other := *u
	other.Path, other.RawPath = strings.TrimSuffix(u.Path, "a")+"b", ""
	refused("another key", other.String())
	none := *u
	none.RawQuery = ""
	if c.gate == nil {
		refused("no query", none.String())
	}
	for parameter, values := range u.Query() {
		changed := *u
		changed.RawQuery = with(u.Query(), parameter, alter(values[0])).Encode()
		refused(parameter, changed.String())
	}
}

// alter changes one character, and keeps a number one.
func alter(value string) string {
	if value == "" {
		return "1"
	}
	i := len(value) / 2
	replacement := byte('1')
	if value[i] == '1' {
		replacement = '2'
	}
	return value[:i] + string(replacement) + value[i+1:]
}

func cloudExpiredLinks(t *testing.T, c *cloudUnderTest) {
	s := c.open(t, 2*time.Second)
	mustPut(t, s, fileKey("a"), []byte("a"))
	link := mustLink(t, s, fileKey("a"))
	require.Eventually(t, func() bool {
		return c.do(t, http.MethodGet, link, nil).status == http.StatusForbidden
	}, time.Minute, 200*time.Millisecond)
	require.Equal(t, "a", mustGet(t, s, fileKey("a")), "the object is there")
}

// cloudCutPuts is in the middle of an upload in pieces, of which some are in the cloud.
func cloudCutPuts(t *testing.T, c *cloudUnderTest) {
	s := c.open(t, time.Hour)
	const size = 30 << 20
	for _, test := range []struct {
		desc    string
		content func(cancel context.CancelFunc) io.Reader
		want    error
	}{
		{"by its source", after(size, errCut), errCut},
		{"by the context", cancelled(size), context.Canceled},
	} {
		t.Run(test.desc, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			_, err := s.Put(ctx, "runs/cut", test.content(cancel), "cut")
			require.ErrorIs(t, err, test.want)
			requireNotFound(t, s, "runs/cut")
			left, err := storage.UnfinishedUploads(t.Context(), s)
			require.NoError(t, err)
			require.Zero(t, left, "its pieces are taken back")
		})
	}
	big := randomBytes(size)
	mustPut(t, s, "runs/cut", big)
	require.True(t, mustGet(t, s, "runs/cut") == string(big), "what was left there is not in the way")
}

func cloudOnePutNewWins(t *testing.T, c *cloudUnderTest) {
	o := storage.Options{URL: c.URL(t), Getenv: c.Getenv}
	requireOneWins(t, mustOpen(t, o), mustOpen(t, o))
}

func cloudPinnedReaders(t *testing.T, c *cloudUnderTest) {
	o := storage.Options{URL: c.URL(t), Getenv: c.Getenv}
	if c.gate != nil { // this server heeds no condition of a read
		mustOpen(t, o) // makes the bucket
		o.URL = strings.Replace(o.URL, url.QueryEscape(c.Endpoint), url.QueryEscape(generations(t, c.Endpoint)), 1)
	}
	s := mustOpen(t, o)
	mustPut(t, s, "runs/a", []byte("first"))
	r, err := s.Get(t.Context(), "runs/a")
	require.NoError(t, err)
	defer func() { require.NoError(t, r.Close()) }()
	mustPut(t, s, "runs/a", []byte("other"))
	_, err = io.ReadAll(r)
	require.ErrorContains(t, err, "replaced")
}

func cloudGone(t *testing.T, c *cloudUnderTest) {
	s := c.open(t, time.Hour)
	requireNotFound(t, s, "runs/a")
	require.NoError(t, storage.RemoveContainer(t.Context(), s))
	_, err := s.Get(t.Context(), "runs/a")
	require.Error(t, err)
	require.NotErrorIs(t, err, storage.ErrNotFound)
	err = s.Delete(t.Context(), "runs/a")
	require.Error(t, err)
	require.NotErrorIs(t, err, storage.ErrNotFound)
	_, err = s.Read(t.Context(), storage.RecordKey("a"), 1)
	require.Error(t, err)
	require.NotErrorIs(t, err, storage.ErrNotFound)
	require.Error(t, s.Ready(t.Context()))
	_, err = s.Put(t.Context(), "runs/a", strings.NewReader("a"), "a")
	require.Error(t, err)
}

func cloudOutage(t *testing.T, c *cloudUnderTest) {
	s := c.open(t, time.Hour)
	c.Stop(t)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	_, err := s.Put(ctx, "runs/a", bytes.NewReader(randomBytes(1<<20)), "a")
	require.Error(t, err)
	require.NotErrorIs(t, err, storage.ErrNotFound)
	require.Error(t, s.Ready(ctx))
	err = s.PutNew(ctx, storage.RecordKey("a"), []byte("a"))
	require.Error(t, err)
	require.NotErrorIs(t, err, storage.ErrExists)
	c.Start(t)
	requireNotFound(t, s, "runs/a")
	mustPut(t, s, "runs/a", []byte("a"))
	require.Equal(t, "a", mustGet(t, s, "runs/a"))
	require.NoError(t, s.PutNew(t.Context(), storage.RecordKey("a"), []byte("a")))
}

// generations is a proxy that refuses what Google refuses: to read another generation of
// an object than was asked for. It lets none pass, which is enough for objects that were
// replaced.
func generations(t *testing.T, endpoint string) string {
	t.Helper()
	target, err := url.Parse(endpoint)
	require.NoError(t, err)
	forward := httputil.NewSingleHostReverseProxy(target)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet && (r.Header.Get("X-Goog-If-Generation-Match") != "" || r.URL.Query().Has("ifGenerationMatch")) {
			w.WriteHeader(http.StatusPreconditionFailed)
			return
		}
		forward.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL
}
