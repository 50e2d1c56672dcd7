package client_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"notebox/client"
)

// answering is a notebox that gives its answers one after the other, the last again.
func answering(t *testing.T, answers ...http.HandlerFunc) *client.Client {
	n := 0
	ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a := answers[min(n, len(answers)-1)]
		n++
		a(w, r)
	}))
	t.Cleanup(ts.Close)
	return client.New(client.Options{BaseURL: ts.URL + "/", Key: "secret"})
}

func problem(status int, field, detail string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/problem+json")
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"status":%d,"field":%q,"detail":%q}`, status, field, detail)
	}
}

func TestErrors(t *testing.T) {
	for _, c := range []struct {
		desc   string
		answer http.HandlerFunc
		check  func(t *testing.T, err error)
	}{
		{"a wrong key", problem(401, "", "an API key is needed"), func(t *testing.T, err error) {
			var refused *client.Error
			require.ErrorAs(t, err, &refused)
			require.Equal(t, 401, refused.Status)
		}},
		{"events that break off", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, "event: started\ndata: {\"id\":\"run_1\"}\n\n")
		}, func(t *testing.T, err error) { require.ErrorContains(t, err, "broke off") }},
		{"an error event", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, "event: error\ndata: {\"status\":500,\"detail\":\"the service failed\"}\n\n")
		}, func(t *testing.T, err error) { require.ErrorContains(t, err, "the service failed") }},
	} {
		t.Run(c.desc, func(t *testing.T) {
			_, err := answering(t, c.answer).Execute(context.Background(), client.Run{Code: "1", Listener: client.Telling(func(string) {})})
			c.check(t, err)
		})
	}
}

func TestAFullServiceIsAskedAgain(t *testing.T) {
	var body, key string
	c := answering(t, problem(503, "", "full"), func(w http.ResponseWriter, r *http.Request) {
		raw, err := io.ReadAll(r.Body)
		require.NoError(t, err)
		body, key = string(raw), r.Header.Get("Authorization")
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"status":"ok","text":"1\n","files":[{"path":"/mnt/data/x","url":"http://x"}]}`)
	})
	opened := 0
	file := client.File{Name: "a/b.txt", Open: func() (io.ReadCloser, error) {
		opened++
		return io.NopCloser(strings.NewReader("abc")), nil
	}}
	r, err := c.Execute(context.Background(), client.Run{Code: "print(1)", Language: "python", Files: []client.File{file}})
	require.NoError(t, err)
	require.Equal(t, "1\n", r.Text)
	require.Equal(t, "http://x", r.Files[0].URL)
	require.Equal(t, 2, opened)
	require.Equal(t, "Bearer secret", key)
	require.Contains(t, body, `filename="a/b.txt"`)
	require.Contains(t, body, "abc")
}

func TestPackages(t *testing.T) {
	var body string
	c := answering(t, func(w http.ResponseWriter, r *http.Request) {
		raw, err := io.ReadAll(r.Body)
		require.NoError(t, err)
		body = string(raw)
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "event: install\ndata: {\"text\":\"Collecting polars\\n\"}\n\nevent: done\ndata: {\"status\":\"ok\"}\n\n")
	})
	told := ""
	_, err := c.Execute(context.Background(), client.Run{Code: "1", Dependencies: []string{"polars==1.*", "six"}, Listener: client.Telling(func(text string) { told += text })})
	require.NoError(t, err)
	require.Contains(t, body, "name=\"dependencies\"\r\n\r\n[\"polars==1.*\",\"six\"]\r\n")
	require.Equal(t, "Collecting polars\n", told)
}

func TestAFileThatCannotBeReadEndsTheRun(t *testing.T) {
	c := answering(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) })
	broken := client.File{Name: "a", Open: func() (io.ReadCloser, error) { return nil, io.ErrUnexpectedEOF }}
	_, err := c.Execute(context.Background(), client.Run{Code: "1", Files: []client.File{broken}})
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
}

func TestSessions(t *testing.T) {
	var asked []string
	c := answering(t, func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+r.URL.EscapedPath()+" "+r.FormValue("language"))
		w.WriteHeader(http.StatusCreated)
		fmt.Fprint(w, `{"id":"ses_1"}`)
	}, func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+r.URL.EscapedPath())
		w.WriteHeader(http.StatusNoContent)
	}, problem(410, "", "gone"), problem(404, "", "nothing"), problem(403, "", "not yours"))
	session, err := c.OpenSession(t.Context(), client.SessionOptions{Language: "r"})
	require.NoError(t, err)
	require.Equal(t, "ses_1", session.ID)
	require.NoError(t, c.CloseSession(t.Context(), "a/b"))
	require.Equal(t, []string{"POST /v1/sessions r", "DELETE /v1/sessions/a%2Fb"}, asked)
	for _, there := range []bool{false, false, true} { // closed before; never; another's
		var refused *client.Error
		require.ErrorAs(t, c.CloseSession(t.Context(), session.ID), &refused)
		require.Equal(t, there, !refused.NotThere())
	}

	c = answering(t, func(w http.ResponseWriter, r *http.Request) {
		require.Zero(t, r.ContentLength, "what asks for nothing is no form")
		fmt.Fprint(w, "{}")
	})
	_, err = c.OpenSession(t.Context(), client.SessionOptions{})
	require.ErrorContains(t, err, "names no session")
}

// TestFilesOfSessions: each call goes to its address, and its answer is read.
func TestFilesOfSessions(t *testing.T) {
	var asked string
	c := answering(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		asked = r.Method + " " + r.RequestURI + " " + string(body)
		w.Header().Set("Content-Type", "text/csv; charset=utf-8")
		fmt.Fprint(w, `{"path":"/mnt/data/a","files":[{"path":"/mnt/data/a","kind":"file","bytes":3}],"more":true}`)
	})
	list, err := c.ListFiles(t.Context(), "s", "a b")
	require.NoError(t, err)
	require.Equal(t, "GET /v1/sessions/s/files?path=a+b&recursive=true ", asked)
	require.Equal(t, client.FileList{Files: []client.FileEntry{{Path: "/mnt/data/a", Kind: "file", Bytes: 3}}, More: true}, list)
	written, err := c.WriteFile(t.Context(), "s", "a", strings.NewReader("abc"))
	require.NoError(t, err)
	require.Equal(t, "PUT /v1/sessions/s/files/a abc", asked)
	require.Equal(t, "/mnt/data/a", written.Path)
	for path, want := range map[string]string{"a/b.txt": "a/b.txt", "a b?.txt": "a%20b%3F.txt", "../x": "%2E%2E/x", "": ""} {
		content, err := c.ReadFile(t.Context(), "s/1", path)
		require.NoError(t, err)
		require.Equal(t, "GET /v1/sessions/s%2F1/files/"+want+" ", asked)
		require.Equal(t, "text/csv", content.MediaType)
		raw, err := io.ReadAll(content)
		require.NoError(t, err)
		require.Len(t, raw, int(content.Bytes))
		require.NoError(t, content.Close())
	}
}

func TestReady(t *testing.T) {
	c := answering(t, func(w http.ResponseWriter, r *http.Request) {
		require.Equal(t, "/readyz", r.URL.Path)
		fmt.Fprint(w, `{"status":"ready","pool":{"size":3,"warm":2,"starting":1,"sandboxes":3}}`)
	}, func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"status":"ready"}`)
	}, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprint(w, `{"status":"unavailable","detail":"no daemon"}`)
	})
	pool, err := c.Ready(t.Context())
	require.NoError(t, err)
	require.Equal(t, &client.Pool{Size: 3, Warm: 2, Starting: 1, Sandboxes: 3}, pool)
	pool, err = c.Ready(t.Context())
	require.NoError(t, err)
	require.Nil(t, pool)
	_, err = c.Ready(t.Context())
	require.EqualError(t, err, "notebox answered 503: no daemon")
}

// TestLengthOfForms: a form without files has a length, by which notebox gives it no place
// among large requests.
func TestLengthOfForms(t *testing.T) {
	var length int64
	c := answering(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		require.NoError(t, err)
		require.Contains(t, string(body), `name="code"`)
		length = r.ContentLength
		if length > 0 {
			require.Len(t, body, int(length))
		}
		fmt.Fprint(w, `{"status":"ok"}`)
	})
	_, err := c.Execute(t.Context(), client.Run{Code: "1"})
	require.NoError(t, err)
	require.Positive(t, length)
	file := client.File{Name: "a", Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("abc")), nil }}
	_, err = c.Execute(t.Context(), client.Run{Code: "1", Files: []client.File{file}})
	require.NoError(t, err)
	require.EqualValues(t, -1, length, "files are not read before they are sent")
}

// TestRefusalsOfProxies: what is no problem+json is told as it came.
func TestRefusalsOfProxies(t *testing.T) {
	for _, c := range []struct {
		desc         string
		status       int
		answer, want string
	}{
		{"a status that Go has no text for", 522, "the origin timed out", "522 status code 522 the origin timed out"},
		{"without a word", 499, "", "499 status code 499"},
		{"JSON of another kind", 502, `{"error":"x"}`, `502 Bad Gateway {"error":"x"}`},
		{"a long page, cut within a character", 503, "x" + strings.Repeat("é", 1000), "503 Service Unavailable x" + strings.Repeat("é", 249)},
	} {
		t.Run(c.desc, func(t *testing.T) {
			_, err := answering(t, func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(c.status)
				fmt.Fprint(w, c.answer)
			}).Environments(t.Context())
			var refused *client.Error
			require.ErrorAs(t, err, &refused)
			require.Equal(t, c.want, refused.Detail)
		})
	}
}

func TestNoPasswordIsTold(t *testing.T) {
	ts := httptest.NewServer(nil)
	ts.Close()
	c := client.New(client.Options{BaseURL: strings.Replace(ts.URL, "://", "://me:hidden@", 1)})
	_, err := c.Environments(t.Context())
	require.ErrorContains(t, err, "notebox: ")
	require.NotContains(t, err.Error(), "hidden")
}

func TestWhatIsNoNotebox(t *testing.T) {
	c := answering(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") })
	_, err := c.Environments(t.Context())
	require.EqualError(t, err, "notebox's answer cannot be read: invalid character '<' looking for beginning of value")
	require.ErrorIs(t, err, client.ErrUnread)
	_, err = c.Execute(t.Context(), client.Run{Code: "1"})
	require.EqualError(t, err, "notebox's answer cannot be read: invalid character '<' looking for beginning of value")
}

func TestFetch(t *testing.T) {
	answer := func(status int, header, content string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != "" {
				status = http.StatusTeapot
			}
			if header != "" {
				w.Header().Set("Content-Length", header)
			}
			w.WriteHeader(status)
			fmt.Fprint(w, content)
			w.(http.Flusher).Flush() // in chunks, if no length was set
		}
	}
	for _, c := range []struct {
		desc   string
		answer http.HandlerFunc
		want   string // of the error
	}{
		{"as much as may be", answer(200, "", "abcd"), ""},
		{"more than may be", answer(200, "", "abcde"), "the file is too large"},
		{"more than may be, as its head says", answer(200, "5", "abcde"), "the file is too large"},
		{"less than its head says", answer(200, "4", "abc"), "unexpected EOF"},
		{"a link that has expired", answer(403, "", "no"), "its link was answered with 403 Forbidden"},
	} {
		t.Run(c.desc, func(t *testing.T) {
			ts := httptest.NewServer(c.answer)
			defer ts.Close()
			content, err := client.Fetch(t.Context(), ts.Client(), ts.URL, 4)
			if c.want != "" {
				require.ErrorContains(t, err, c.want)
				return
			}
			require.NoError(t, err)
			require.Equal(t, "abcd", string(content))
		})
	}
}
