package server

import (
	"context"
	"encoding/base64"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/runner"
	"notebox/storage"
)

// produce is a run that leaves these files; it returns their links by path.
func (s *service) produce(files map[string]string) map[string]string {
	s.t.Helper()
	s.run = func(ctx context.Context, spec runner.Spec, events runner.Sink) (*runner.Outcome, error) {
		for name, content := range files {
			if err := events.File(ctx, name, strings.NewReader(content)); err != nil {
				return nil, err
			}
		}
		return executed(spec, runner.StatusOK), nil
	}
	links := map[string]string{}
	for _, f := range s.replied(s.postJSON(`{"code":"x"}`)).Files {
		links[strings.TrimPrefix(f["path"].(string), "/mnt/data/")] = f["url"].(string)
	}
	require.Len(s.t, links, len(files))
	return links
}

func TestFilesAreServedAsTheyAre(t *testing.T) {
	s := newService(t)
	files := map[string]string{
		"out.csv": "a,b\n1,2\n", "sub/dir/out.csv": "x", "empty": "", "page.html": "<script>alert(1)</script>",
		"pic.svg": `<svg xmlns="http://www.w3.org/2000/svg"/>`, "bomb.zip": "PK\x03\x04", "100%.txt": "%", "a?b#c&d.txt": "q",
		"数据 é.csv": "1", "-rf": "f", "new\nline\r\nSet-Cookie: a=b": "i", `quo"te'.txt`: "q", "\u202egnp.exe": "r", `back\slash`: "b",
		"a": "file", "a.attrs": "meta", strings.Repeat("n", 255): "long", "..x": "dots", "x/..y/z": "dots",
	}
	for name, link := range s.produce(files) {
		a := s.get(link)
		require.Equal(t, http.StatusOK, a.StatusCode, "%q: %s", name, a.body)
		require.Equal(t, files[name], string(a.body), "%q", name)
		require.Equal(t, "nosniff", a.Header.Get("X-Content-Type-Options"))
		require.Equal(t, "sandbox; default-src 'none'", a.Header.Get("Content-Security-Policy"))
		require.Equal(t, "no-referrer", a.Header.Get("Referrer-Policy"))
		require.Equal(t, "private, max-age=3600", a.Header.Get("Cache-Control"))
		require.True(t, strings.HasPrefix(a.Header.Get("Content-Disposition"), "attachment;"), "%q", name)
		require.Empty(t, a.Header.Get("Set-Cookie"))
	}
}

func TestFilesByRangeAndETag(t *testing.T) {
	s := newService(t)
	link := s.produce(map[string]string{"out.csv": "0123456789"})["out.csv"]
	req := func(method, name, value string) answer {
		r, err := http.NewRequest(method, link, nil)
		require.NoError(t, err)
		if name != "" {
			r.Header.Set(name, value)
		}
		return s.do(r)
	}
	whole := req("GET", "", "")
	require.Equal(t, "text/csv; charset=utf-8", whole.Header.Get("Content-Type"))
	require.Equal(t, `attachment; filename="out.csv"`, whole.Header.Get("Content-Disposition"))

	part := req("GET", "Range", "bytes=2-4")
	require.Equal(t, http.StatusPartialContent, part.StatusCode)
	require.Equal(t, "234", string(part.body))
	require.Equal(t, "bytes 2-4/10", part.Header.Get("Content-Range"))

	head := req("HEAD", "", "")
	require.Equal(t, http.StatusOK, head.StatusCode)
	require.EqualValues(t, 10, head.ContentLength)
	require.Empty(t, head.body)

	require.NotEmpty(t, whole.Header.Get("ETag"))
	same := req("GET", "If-None-Match", whole.Header.Get("ETag"))
	require.Equal(t, http.StatusNotModified, same.StatusCode)

	ifRange := func(tag string) answer {
		r, err := http.NewRequest("GET", link, nil)
		require.NoError(t, err)
		r.Header.Set("Range", "bytes=2-4")
		r.Header.Set("If-Range", tag)
		return s.do(r)
	}
	require.Equal(t, http.StatusPartialContent, ifRange(whole.Header.Get("ETag")).StatusCode)
	require.Equal(t, "0123456789", string(ifRange(`"other"`).body), "of another file, the whole one")
	require.Equal(t, "789", string(req("GET", "Range", "bytes=-3").body))
	require.Contains(t, req("GET", "Range", "bytes=0-1,4-5").Header.Get("Content-Type"), "multipart/byteranges")

	beyond := req("GET", "Range", "bytes=20-30")
	require.Equal(t, http.StatusRequestedRangeNotSatisfiable, beyond.StatusCode)
	require.Equal(t, "application/problem+json", beyond.Header.Get("Content-Type"))
	require.Equal(t, "bytes */10", beyond.Header.Get("Content-Range"))
	require.Equal(t, http.StatusPreconditionFailed, req("GET", "If-Match", `"other"`).StatusCode)
}

func TestFilesByLinkOnly(t *testing.T) {
	now := time.Now()
	clock := func() time.Time { return now }
	s := newService(t, func(c *Config) {
		store, err := storage.Open(context.Background(), storage.Options{URL: "mem://", Now: clock})
		require.NoError(t, err)
		t.Cleanup(func() { _ = store.Close() })
		c.Store, c.Now = store, clock
		c.Keys, err = NewKeys("key-a")
		require.NoError(t, err)
	})
	ask := func(link string) int {
		a := s.get(link)
		require.NotContains(t, string(a.body), "content of")
		return a.StatusCode
	}
	s.run = func(ctx context.Context, spec runner.Spec, events runner.Sink) (*runner.Outcome, error) {
		err := events.File(ctx, "a/x.txt", strings.NewReader("content of a"))
		return executed(spec, runner.StatusOK), err
	}
	post := func() (file, book string) {
		req := s.request("POST", "/v1/execute", "text/plain", strings.NewReader("x"))
		req.Header.Set("X-API-Key", "key-a")
		r := s.replied(s.do(req))
		return r.Files[0]["url"].(string), r.Notebook.URL
	}
	link, book := post()
	other, _ := post()
	require.Equal(t, "content of a", string(s.get(link).body), "without any key")

	u, err := url.Parse(link)
	require.NoError(t, err)
	query, path := "?"+u.RawQuery, u.EscapedPath()
	otherURL, err := url.Parse(other)
	require.NoError(t, err)
	bookURL, err := url.Parse(book)
	require.NoError(t, err)
	run := strings.Split(path, "/")[5]
	changed := func(name, value string) string {
		q := u.Query()
		q.Set(name, value)
		return path + "?" + q.Encode()
	}
	for _, c := range []struct {
		desc, link string
		status     int
	}{
		{"no signature", path, 403},
		{"changed signature", changed("signature", "AAAA"), 403},
		{"later expiry", changed("expires", "99999999999"), 403},
		{"other run's file", otherURL.EscapedPath() + query, 403},
		{"other file of the run", bookURL.EscapedPath() + query, 403},
		{"unknown file", "/v1/files/runs/2020-01-01/x/files/y" + query, 403},
		{"the folder", strings.TrimSuffix(path, "/x.txt") + query, 403},
		{"..%2f", "/v1/files/..%2f..%2fetc%2fpasswd" + query, 404},
		{"..", "/v1/files/../files/x" + query, 404},
		{"%2e%2e", "/v1/files/%2e%2e/%2e%2e/etc/passwd" + query, 404},
		{"%5c", "/v1/files/..%5c..%5cetc" + query, 404},
		{"%252f is not a slash", strings.Replace(path, "/x.txt", "%252fx.txt", 1) + query, 403},
		{"%2f is not a slash", strings.Replace(path, "/x.txt", "%2fx.txt", 1) + query, 404},
		{"into the run and out", strings.Replace(path, run, run+"/../"+run, 1) + query, 404},
		{"empty component", strings.Replace(path, run, "/"+run, 1) + query, 404},
		{"NUL", path + "%00" + query, 404},
		{"no key", "/v1/files/" + query, 404},
		{"no slash", "/v1/files" + query, 405},
	} {
		t.Run(c.desc, func(t *testing.T) {
			require.Equal(t, c.status, ask(c.link))
		})
	}
	now = now.Add(storage.DefaultTTL + time.Second)
	a := s.get(link)
	require.Equal(t, 403, a.StatusCode)
	require.Contains(t, string(a.body), "this link has expired")
}

func TestFileThatIsGoneIs404(t *testing.T) {
	s := newService(t)
	link, _, err := s.server.Store.Link(context.Background(), "runs/2020-01-01/run_x/files/gone", s.url)
	require.NoError(t, err)
	require.Equal(t, 404, s.get(link).StatusCode)
}

func TestLinksStartWithThePublicURL(t *testing.T) {
	for _, c := range []struct{ desc, public, want string }{
		{"own", "", ""},
		{"public", "https://code.example.org/box/", "https://code.example.org/box/v1/files/runs/"},
	} {
		t.Run(c.desc, func(t *testing.T) {
			s := newService(t, func(cfg *Config) { cfg.PublicURL = c.public })
			if c.want == "" {
				c.want = s.url + "/v1/files/runs/"
			}
			req := s.request("POST", "/v1/execute", "text/plain", strings.NewReader("x"))
			req.Header.Set("X-Forwarded-Host", "evil.example")
			req.Header.Set("X-Forwarded-Proto", "https")
			req.Header.Set("Forwarded", "host=evil.example")
			require.True(t, strings.HasPrefix(s.replied(s.do(req)).Notebook.URL, c.want))
		})
	}
}

func TestUnknownStoreErrorIsA500(t *testing.T) {
	s := newService(t, func(c *Config) { c.Store = brokenGet{c.Store} })
	r := s.replied(s.postJSON(`{"code":"x"}`))
	a := s.get(r.Notebook.URL)
	require.Equal(t, 500, a.StatusCode)
	require.NotContains(t, string(a.body), "EOF")
}

// TestFileThatCannotBeRead is an error, and no 200 without a body.
func TestFileThatCannotBeRead(t *testing.T) {
	s := newService(t)
	link := s.produce(map[string]string{"out.csv": "0123456789"})["out.csv"]
	require.NoError(t, s.server.Wait(t.Context()))
	s.server.Store = lateGet{s.server.Store}
	for _, method := range []string{"GET", "HEAD"} {
		for _, ranged := range []string{"", "bytes=2-4"} {
			req, err := http.NewRequest(method, link, nil)
			require.NoError(t, err)
			if ranged != "" {
				req.Header.Set("Range", ranged)
			}
			a := s.do(req)
			if method == "HEAD" { // nothing is read for it
				require.Less(t, a.StatusCode, 300)
				continue
			}
			require.Equal(t, 503, a.StatusCode)
			require.Contains(t, string(a.body), "the store of files does not answer")
			for _, name := range []string{"ETag", "Content-Range", "Content-Disposition", "Last-Modified"} {
				require.Empty(t, a.Header.Get(name), name)
			}
		}
	}
}

// lateGet opens what cannot be read any more.
type lateGet struct{ Store }

func (l lateGet) Get(ctx context.Context, key string) (*storage.Reader, error) {
	ctx, cancel := context.WithDeadline(ctx, time.Now())
	defer cancel()
	return l.Store.Get(ctx, key)
}

// TestFilesThatABrowserCouldRun are downloads, or cut off from everything, whatever
// they are called.
func TestFilesThatABrowserCouldRun(t *testing.T) {
	s := newService(t)
	script := "<script>alert(1)</script>"
	png, err := base64.StdEncoding.DecodeString(onePixel)
	require.NoError(t, err)
	links := s.produce(map[string]string{
		"a.html": script, "a.xhtml": script, "a.svg": script, "a.xml": script, "a.js": "alert(1)", "a.pdf": "%PDF-1.7",
		"a": "<html>" + script, "a.png": script, "a.gif": "GIF89a", "b.png": string(png), "a.txt": "text",
	})
	for name, link := range links {
		a := s.get(link)
		inline := name == "a.gif" || name == "b.png"
		require.Equal(t, inline, strings.HasPrefix(a.Header.Get("Content-Disposition"), "inline;"), name)
		require.Equal(t, "sandbox; default-src 'none'", a.Header.Get("Content-Security-Policy"), name)
		require.Equal(t, "nosniff", a.Header.Get("X-Content-Type-Options"), name)
	}
	require.Equal(t, "image/png", s.get(links["b.png"]).Header.Get("Content-Type"))
	require.Equal(t, "application/octet-stream", s.get(links["a.png"]).Header.Get("Content-Type"), "by its content, it is no image")
}

type brokenGet struct{ Store }

func (brokenGet) Get(context.Context, string) (*storage.Reader, error) {
	return nil, io.ErrUnexpectedEOF
}
