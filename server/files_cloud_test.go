package server

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/runner"
	"notebox/server/web"
	"notebox/storage"
	"notebox/storage/storagetest"
)

// TestCloudServedByTheService is --serve-files=proxy: links are the service's own, and
// what it answers is as if it had a folder.
func TestCloudServedByTheService(t *testing.T) {
	t.Parallel()
	azurite := storagetest.Azurite(t)
	options := storage.Options{URL: azurite.URL(t), Getenv: azurite.Getenv, ServeFiles: storage.ServeProxy}
	store, err := storage.Open(t.Context(), options)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	clock := new(testClock)
	s := newService(t, clock.set, func(c *Config) { c.Store, c.Retention = store, time.Hour })

	big := strings.Repeat("0123456789", 2<<20)
	links := s.produce(map[string]string{"dir/ü b.csv": big, "page.html": "<script>alert(1)</script>"})
	link := links["dir/ü b.csv"]
	require.True(t, strings.HasPrefix(link, s.url+"/v1/files/runs/"), link)
	ask := func(method string, headers ...string) answer {
		r, err := http.NewRequest(method, link, nil)
		require.NoError(t, err)
		for i := 0; i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		return s.do(r)
	}
	whole := ask("GET")
	require.Equal(t, 200, whole.StatusCode)
	require.True(t, big == string(whole.body))
	require.Equal(t, "text/csv; charset=utf-8", whole.Header.Get("Content-Type"))
	require.Equal(t, `attachment; filename="_ b.csv"; filename*=UTF-8''%C3%BC%20b.csv`, whole.Header.Get("Content-Disposition"))
	require.Equal(t, "nosniff", whole.Header.Get("X-Content-Type-Options"))
	require.Equal(t, web.FilePolicy, whole.Header.Get("Content-Security-Policy"))
	tag := whole.Header.Get("ETag")
	require.NotEmpty(t, tag)
	part := ask("GET", "Range", "bytes=20000000-20000003", "If-Range", tag)
	require.Equal(t, 206, part.StatusCode)
	require.Equal(t, "0123", string(part.body))
	require.Equal(t, 200, ask("GET", "Range", "bytes=2-4", "If-Range", `"other"`).StatusCode)
	require.Equal(t, 304, ask("GET", "If-None-Match", tag).StatusCode)
	require.Equal(t, 416, ask("GET", "Range", "bytes=99999999-").StatusCode)
	head := ask("HEAD")
	require.Equal(t, 200, head.StatusCode)
	require.EqualValues(t, len(big), head.ContentLength)
	require.Contains(t, s.get(links["page.html"]).Header.Get("Content-Disposition"), "attachment;")
	require.Equal(t, 403, s.get(link+"x").StatusCode)

	s.run = func(_ context.Context, spec runner.Spec, _ runner.Sink) (*runner.Outcome, error) {
		files, err := readInputs(spec)
		return executed(spec, runner.StatusOK, stdout(fmt.Sprint(files["a"] == big))), err
	}
	id := s.keptOf(s.upload(nil, "a", big))[0].ID
	require.Equal(t, "true", strings.TrimSpace(s.replied(s.postJSON(`{"code":"x","files":[{"name":"a","id":"`+id+`"}]}`)).Text))
	require.NoError(t, s.server.Wait(t.Context()))

	azurite.Stop(t)
	clock.advance(2 * readyFor)
	for _, a := range []answer{ask("GET"), ask("HEAD"), s.get("/readyz")} {
		require.Equal(t, 503, a.StatusCode, "%s", a.body)
		require.NotContains(t, string(a.body), azurite.Endpoint)
	}
	azurite.Start(t)
	again, err := storage.Open(t.Context(), options) // makes the container, where Azurite had not written it down
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, again.Close()) })
	require.Eventually(t, func() bool { // its 5 s may be too few for a busy machine
		clock.advance(2 * readyFor)
		return s.get("/readyz").StatusCode == 200
	}, 2*time.Minute, 100*time.Millisecond)
	require.Equal(t, "x", string(s.get(s.produce(map[string]string{"a": "x"})["a"]).body))
	require.Equal(t, 204, s.call(http.MethodDelete, "/v1/files/"+s.keptOf(s.upload(nil, "a", big))[0].ID).StatusCode)
}
