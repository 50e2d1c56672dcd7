package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParse(t *testing.T) {
	for _, c := range []struct{ desc, url, why string }{
		{"usual", "https://example.com/a.csv?sig=x", ""},
		{"at a port", "http://example.com:8080", ""},
		{"of a file", "file:///etc/passwd", ErrScheme.Error()},
		{"without a scheme", "example.com/a", ErrScheme.Error()},
		{"without a host", "http:///a", "has no host"},
		{"with a password", "http://a:b@example.com/", "must not have a user or password in it"},
		{"none", "http://[::1", "is not a URL"},
		{"too long", "http://example.com/" + strings.Repeat("a", MaxURLBytes), "is too long"},
	} {
		t.Run(c.desc, func(t *testing.T) {
			_, err := Parse(c.url)
			if c.why == "" {
				require.NoError(t, err)
				return
			}
			require.EqualError(t, err, c.why)
		})
	}
}

func TestNameOf(t *testing.T) {
	for url, name := range map[string]string{
		"https://example.com/a/b%20c.csv?x=1": "b c.csv", "https://example.com/a/": "a", "https://example.com/": "", "https://example.com": "", "%": "",
	} {
		require.Equal(t, name, NameOf(url), url)
	}
}

// site answers by the path of a request.
func site(t *testing.T) *httptest.Server {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/named":
			w.Header().Set("Content-Disposition", `attachment; filename="table.csv"`)
			fmt.Fprint(w, r.Header.Get("User-Agent")+r.Header.Get("Referer"))
		case "/packed":
			w.Header().Set("Content-Encoding", "gzip")
		case "/stream":
			fmt.Fprint(w, "12345")
			w.(http.Flusher).Flush() // no length is told
			fmt.Fprint(w, "67890")
		case "/long":
			fmt.Fprint(w, "1234567890")
		case "/away":
			http.Redirect(w, r, "/named", http.StatusFound)
		case "/round":
			http.Redirect(w, r, "/round", http.StatusFound)
		case "/file":
			http.Redirect(w, r, "file:///etc/passwd", http.StatusFound)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

func TestGet(t *testing.T) {
	s := site(t)
	f, err := New([]string{"127.0.0.1"})
	require.NoError(t, err)
	for _, c := range []struct{ path, content, title, why string }{
		{"/named", "notebox", "table.csv", ""},
		{"/away", "notebox", "table.csv", ""},
		{"/missing", "", "", "the server answered 404 Not Found"},
		{"/packed", "", "", ErrEncoding.Error()},
		{"/long", "", "", ErrSize.Error()},
		{"/stream", "", "", ErrSize.Error()},
		{"/round", "", "", ErrHops.Error()},
		{"/file", "", "", ErrScheme.Error()},
	} {
		t.Run(c.path, func(t *testing.T) {
			var left atomic.Int64
			left.Store(9) // bytes
			var content []byte
			title, err := f.Get(t.Context(), s.URL+c.path, &left, func(r io.Reader) (err error) {
				content, err = io.ReadAll(r)
				return err
			})
			if c.why != "" {
				require.Equal(t, c.why, Reason(t.Context(), err))
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.content, string(content))
			require.Equal(t, c.title, title)
			require.Equal(t, int64(9-len(content)), left.Load())
		})
	}
}

// TestPrivateHosts: without leave none is asked, and whether anything listens is not told.
func TestPrivateHosts(t *testing.T) {
	s := site(t)
	f, err := New(nil)
	require.NoError(t, err)
	closed := httptest.NewServer(nil)
	closed.Close()
	for _, url := range []string{s.URL, closed.URL} {
		_, err = f.Get(t.Context(), url, new(atomic.Int64), nil)
		require.Equal(t, ErrAddress.Error(), Reason(t.Context(), err))
	}
	_, err = New([]string{"10.0.0.0/99"})
	require.ErrorContains(t, err, "fetch-allow")
}

func TestReasons(t *testing.T) {
	s := httptest.NewTLSServer(nil)
	defer s.Close()
	f, err := New([]string{"127.0.0.1"})
	require.NoError(t, err)
	_, err = f.Get(t.Context(), s.URL, new(atomic.Int64), nil)
	require.Equal(t, "the server's certificate is not valid", Reason(t.Context(), err))
	require.Equal(t, "the connection to its host failed", Reason(t.Context(), syscall.ECONNREFUSED))
	late, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("it took longer than 1m0s"))
	require.Equal(t, "it took longer than 1m0s", Reason(late, context.Canceled))
}

// TestOfHTTPSToHTTP: a redirect must not take the secrecy of a URL away.
func TestOfHTTPSToHTTP(t *testing.T) {
	to := func(url string) *http.Request { return httptest.NewRequest(http.MethodGet, url, nil) }
	require.Equal(t, ErrDown, checkRedirect(to("http://example.com"), []*http.Request{to("https://example.com")}))
	require.NoError(t, checkRedirect(to("https://example.com"), []*http.Request{to("http://example.com")}))
}

// TestNoURLInTheLog: an address may be a signed one.
func TestNoURLInTheLog(t *testing.T) {
	for _, c := range []struct {
		cause error
		text  string
	}{
		{ErrHops, ErrHops.Error()},
		{syscall.ECONNREFUSED, "connection refused"},
		{errors.New("https://example.com/?sig=x"), "an error of type *errors.errorString"},
	} {
		err := WithoutURL(fmt.Errorf("Get https://example.com/?sig=x: %w", c.cause))
		require.EqualError(t, err, c.text)
		require.ErrorIs(t, err, c.cause)
	}
}
