package server

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/access"
	"notebox/runner"
	"notebox/runner/runnertest"
	"notebox/server/native"
	"notebox/server/web"
)

func (s *service) listed(path string) (paths []string) {
	s.t.Helper()
	a := s.get(path)
	require.Equal(s.t, 200, a.StatusCode, "%s", a.body)
	s.asDescribed("GET", "/v1/sessions/{id}/files", a)
	var list native.FileList
	require.NoError(s.t, json.Unmarshal(a.body, &list))
	require.False(s.t, list.More)
	for _, f := range list.Files {
		paths = append(paths, string(f.Kind)+" "+f.Path)
	}
	return paths
}

func TestSessionFiles(t *testing.T) {
	f := newSessions(t)
	s := withSessions(t, f)
	session := sessionsPath + "/" + s.open(`{"files":[{"name":"d/in.csv","content":"YSxiCg=="}]}`).ID
	files := session + "/files"

	a := s.put(files+"/new/%C3%BC%20%231.html", "<script>")
	require.Equal(t, 201, a.StatusCode, "%s", a.body)
	s.asDescribed("PUT", "/v1/sessions/{id}/files/{path}", a)
	require.Contains(t, string(a.body), `"path":"/mnt/data/new/ü #1.html","name":"ü #1.html","kind":"file","bytes":8,"media_type":"text/html"`)
	a = s.put(files+"/new/%C3%BC%20%231.html", "<b>")
	require.Equal(t, 200, a.StatusCode, "%s", a.body)
	s.asDescribed("PUT", "/v1/sessions/{id}/files/{path}", a)
	require.Equal(t, 201, s.put(files+"/empty", "").StatusCode)

	require.Equal(t, []string{"directory /mnt/data/d", "file /mnt/data/empty", "directory /mnt/data/new"}, s.listed(files))
	require.Equal(t, []string{"file /mnt/data/d/in.csv"}, s.listed(files+"?path=/mnt/data/d/"))
	require.Equal(t, []string{"file /mnt/data/d/in.csv"}, s.listed(files+"?path=d&recursive=false"))
	require.Len(t, s.listed(files+"?recursive=true&path=/mnt/data"), 5)

	a = s.get(files + "/new/%C3%BC%20%231.html")
	require.Equal(t, 200, a.StatusCode)
	require.Equal(t, "<b>", string(a.body))
	for name, want := range map[string]string{
		"Content-Type": "text/html; charset=utf-8", "Content-Length": "3", "Content-Security-Policy": web.FilePolicy, "X-Content-Type-Options": "nosniff",
		"Content-Disposition": `attachment; filename="_ #1.html"; filename*=UTF-8''%C3%BC%20#1.html`, "Cache-Control": "no-store",
	} {
		require.Equal(t, want, a.Header.Get(name), name)
	}
	a = s.call("HEAD", files+"/d/in.csv")
	require.Equal(t, 200, a.StatusCode)
	require.Equal(t, "4", a.Header.Get("Content-Length"))
	require.Equal(t, "text/csv; charset=utf-8", a.Header.Get("Content-Type"))
	require.Empty(t, a.body)
	a = s.get(files + "/empty")
	require.Equal(t, "0", a.Header.Get("Content-Length"))

	a = s.post(session+"/move", "application/json", `{"from":"d/in.csv","to":"/mnt/data/e/out.csv"}`)
	require.Equal(t, 200, a.StatusCode, "%s", a.body)
	s.asDescribed("POST", "/v1/sessions/{id}/move", a)
	require.Contains(t, string(a.body), `"path":"/mnt/data/e/out.csv"`)
	require.Equal(t, 200, s.post(session+"/move", "application/json", `{"from":"empty","to":"e/out.csv","overwrite":true}`).StatusCode)
	require.Equal(t, 204, s.call("DELETE", files+"/new").StatusCode)
	require.Equal(t, []string{"directory /mnt/data/d", "directory /mnt/data/e", "file /mnt/data/e/out.csv"}, s.listed(files+"?recursive=1"))
}

func TestSessionFileRefusals(t *testing.T) {
	f := newSessions(t)
	f.On("special", func(k *runnertest.Kernel) { k.Special("link", "symbolic link") })
	s := withSessions(t, f, func(c *Config) {
		c.Limits = runner.DefaultLimits()
		c.Limits.DataSize = 100
	})
	id := s.open(`{"files":[{"name":"d/in","content":"MTIzNDU="}]}`).ID
	require.Equal(t, 200, s.inSession(id, `"code":"special"`).StatusCode)
	before := s.listed(sessionsPath + "/" + id + "/files?recursive=true")
	for _, c := range []struct {
		desc, method, path, body string
		status                   int
		detail                   string
	}{
		{"no file", "GET", "/files/none", "", 404, "path: there is no such file"},
		{"a folder", "GET", "/files/d", "", 409, "path: not a regular file"},
		{"a link", "GET", "/files/link", "", 409, "path: not a regular file"},
		{"through a file", "GET", "/files/d/in/x", "", 404, "path: "},
		{"nothing", "GET", "/files/", "", 404, "nothing at this address"},
		{"up", "GET", "/files/d/../../x", "", 404, "nothing at this address"},
		{"up, escaped", "GET", "/files/..%2fx", "", 404, "nothing at this address"},
		{"up, all escaped", "GET", "/files/%2e%2e/%2e%2e/etc/passwd", "", 404, "nothing at this address"},
		{"up, twice escaped", "GET", "/files/..%252fx", "", 404, "path: there is no such file"},
		{"up, as on Windows", "GET", "/files/..%5cx", "", 404, "path: there is no such file"},
		{"absolute", "GET", "/files/%2fetc%2fpasswd", "", 404, "nothing at this address"},
		{"absolute, doubled", "GET", "/files//etc/passwd", "", 404, "nothing at this address"},
		{"NUL", "GET", "/files/d%00/in", "", 404, "nothing at this address"},
		{"not UTF-8", "GET", "/files/%ff", "", 404, "nothing at this address"},
		{"delete nothing", "DELETE", "/files/none", "", 404, "path: there is no such file"},
		{"delete up", "DELETE", "/files/..%2f..%2fetc", "", 404, "nothing at this address"},
		{"delete all", "DELETE", "/files/.", "", 404, "nothing at this address"},
		{"write a folder", "PUT", "/files/d", "x", 409, "path: a folder"},
		{"write through a file", "PUT", "/files/d/in/x", "x", 409, "path: "},
		{"write up", "PUT", "/files/..%2fx", "x", 400, "path: is no path within /mnt/data/"},
		{"write with a newline", "PUT", "/files/a%0d%0aX-Evil:1", "x", 400, "path: has a control character"},
		{"write with a backslash", "PUT", "/files/a%5cb", "x", 400, "path: has a backslash"},
		{"write a long name", "PUT", "/files/" + strings.Repeat("x", 256), "x", 400, "path: has a component of more than 255 bytes"},
		{"write too much", "PUT", "/files/big", strings.Repeat("x", 101), 413, "the body is larger than 100 bytes"},
		{"write more than there is room for", "PUT", "/files/big", strings.Repeat("x", 99), 413, "path: there is no room left"},
		{"list nothing", "GET", "/files?path=none", "", 404, "path: there is no such file"},
		{"list a file", "GET", "/files?path=d/in", "", 409, "path: "},
		{"list up", "GET", "/files?path=../..", "", 422, "path: is no path within /mnt/data/"},
		{"list /", "GET", "/files?path=/", "", 422, "path: is no path within /mnt/data/"},
		{"list /etc", "GET", "/files?path=/etc", "", 422, "path: is no path within /mnt/data/"},
		{"list with a typing error", "GET", "/files?recursiv=true", "", 400, `query: there is no parameter "recursiv"`},
		{"list twice", "GET", "/files?path=d&path=d", "", 400, "more than once"},
		{"list perhaps", "GET", "/files?recursive=perhaps", "", 400, "recursive: must be true or false"},
		{"move nothing", "POST", "/move", `{"from":"none","to":"x"}`, 404, "from: there is no such file"},
		{"move onto a file", "POST", "/move", `{"from":"link","to":"d/in"}`, 409, "to: there is a file of that name"},
		{"move into itself", "POST", "/move", `{"from":"d","to":"d/e"}`, 422, "to: "},
		{"move up", "POST", "/move", `{"from":"d/in","to":"../x"}`, 422, "to: leaves /mnt/data/"},
		{"move from above", "POST", "/move", `{"from":"/etc/passwd","to":"x"}`, 422, "from: is no path within"},
		{"move all", "POST", "/move", `{"from":"/mnt/data","to":"x"}`, 422, "from: is /mnt/data itself"},
		{"move without an aim", "POST", "/move", `{"from":"d"}`, 400, "to: is missing"},
		{"move of no JSON", "POST", "/move", `{`, 400, "not valid JSON"},
		{"move of too much", "POST", "/move", `{"from":"` + strings.Repeat("x", 64<<10) + `"}`, 413, "larger than"},
	} {
		t.Run(c.desc, func(t *testing.T) {
			s.t = t
			a := s.do(s.request(c.method, sessionsPath+"/"+id+c.path, "application/json", strings.NewReader(c.body)))
			s.requireRefused(a, c.status, c.detail)
			template := "/v1/sessions/{id}/files/{path}"
			if c.method == "POST" {
				template = "/v1/sessions/{id}/move"
			} else if strings.HasPrefix(c.path, "/files?") {
				template = "/v1/sessions/{id}/files"
			}
			s.asDescribed(c.method, template, a)
		})
	}
	s.t = t
	require.Equal(t, before, s.listed(sessionsPath+"/"+id+"/files?recursive=true"))
	s.requireRefused(s.post(sessionsPath+"/"+id+"/move", "text/plain", "x"), 415, "application/json")
	req := s.request("PUT", sessionsPath+"/"+id+"/files/x", "text/plain", strings.NewReader("x"))
	req.Header.Set("Content-Encoding", "gzip")
	s.requireRefused(s.do(req), 415, "Content-Encoding")
}

// TestSessionFileNames: what the code called its files is listed and served, and is in
// no header more than a name.
func TestSessionFileNames(t *testing.T) {
	odd := "a\r\nX-Evil: 1\"\u202e\\.csv"
	f := newSessions(t)
	f.On("odd", func(k *runnertest.Kernel) { k.Files[odd] = "odd" })
	s := withSessions(t, f)
	id := s.open(`{}`).ID
	require.Equal(t, 200, s.inSession(id, `"code":"odd"`).StatusCode)
	files := sessionsPath + "/" + id + "/files"
	require.Equal(t, []string{"file /mnt/data/" + odd}, s.listed(files))
	path := files + "/a%0D%0AX-Evil%3A%201%22%E2%80%AE%5C.csv"
	a := s.get(path)
	require.Equal(t, 200, a.StatusCode, "%s", a.body)
	require.Equal(t, "odd", string(a.body))
	require.Empty(t, a.Header.Get("X-Evil"))
	require.Regexp(t, `^attachment; filename="[ -~]*$`, a.Header.Get("Content-Disposition"))
	require.Equal(t, 204, s.call("DELETE", path).StatusCode)
	require.Empty(t, s.listed(files))
	require.NotContains(t, s.logged.String(), "X-Evil")
}

// TestSessionUploadIsWhole: a body that stops, or is cut off, changes nothing.
func TestSessionUploadIsWhole(t *testing.T) {
	f := newSessions(t)
	s := withSessions(t, f, func(*Config) {})
	s.server.Pace.Body = 100 * time.Millisecond
	files := sessionsPath + "/" + s.open(`{"files":[{"name":"a","content":"b2xk"}]}`).ID + "/files"
	send := func(head string) *http.Response {
		conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
		require.NoError(t, err)
		t.Cleanup(func() { conn.Close() })
		_, err = io.WriteString(conn, "PUT "+files+"/a HTTP/1.1\r\nHost: localhost\r\n"+head)
		require.NoError(t, err)
		if strings.HasPrefix(head, "Content-Length: 10") {
			require.NoError(t, conn.(*net.TCPConn).CloseWrite())
		}
		raw, err := io.ReadAll(conn)
		require.NoError(t, err)
		status, _, _ := strings.Cut(string(raw), "\r\n")
		return &http.Response{Status: status}
	}
	require.Contains(t, send("Content-Length: 9\r\nConnection: close\r\n\r\nnew").Status, "408")
	require.NotContains(t, send("Content-Length: 10\r\nConnection: close\r\n\r\nnew").Status, "200")
	require.Equal(t, "old", string(s.get(files+"/a").body))
	require.Equal(t, []string{"file /mnt/data/a"}, s.listed(files))
}

// changingFiles are sessions of which a file is shorter, or longer, than it was said.
type changingFiles struct{ runner.Sessions }

func (f changingFiles) Find(owner, id string) (runner.Session, error) {
	s, err := f.Sessions.Find(owner, id)
	return changingSession{s}, err
}

type changingSession struct{ runner.Session }

func (s changingSession) Read(ctx context.Context, path string) (runner.FileInfo, io.ReadCloser, error) {
	info, content, err := s.Session.Read(ctx, path)
	switch path {
	case "shorter":
		info.Size = 2000
	case "longer":
		info.Size = 3
	case "sparse":
		info.Size = 1 << 40
		content = instead{rand.Reader, content}
	case "negative":
		info.Size = -1
	case "hangs":
		content = instead{hangingReader{ctx}, content}
	}
	return info, content, err
}

// instead is read in the place of a content.
type instead struct {
	io.Reader
	io.Closer
}

// Run has no room for the inputs that it is given.
func (s changingSession) Run(ctx context.Context, spec runner.Spec, events runner.Sink) (*runner.Outcome, error) {
	if len(spec.Inputs) > 0 {
		return nil, &runner.FileError{Code: runner.FileNoRoom, Path: spec.Inputs[0].Path, Message: "there is no room left"}
	}
	return s.Session.Run(ctx, spec, events)
}

func TestSessionHasNoRoomForInputs(t *testing.T) {
	s := newService(t, func(c *Config) { c.Sessions = changingFiles{newSessions(t)} })
	id := s.open(`{}`).ID
	s.requireRefused(s.inSession(id, `"code":"x","files":[{"name":"d/a","content":"YQ=="}]`), 413, `files: "d/a": there is no room left`)
}

// TestDifyLinkToASparseFile: a file of a terabyte that has no bytes is not stored.
func TestDifyLinkToASparseFile(t *testing.T) {
	s := newDify(t, func(c *Config) { c.Sessions = changingFiles{c.Sessions} })
	id := s.create("")
	s.good("write_file", in(id, "content", "x", "remote_path", "sparse"))
	a := s.call("download_file", in(id, "remote_path", "sparse"))
	requireDetail(t, a, http.StatusRequestEntityTooLarge, "remote_path: it is longer than")
}

type hangingReader struct{ ctx context.Context }

func (r hangingReader) Read([]byte) (int, error) { <-r.ctx.Done(); return 0, r.ctx.Err() }

func TestSessionFileThatChanges(t *testing.T) { synctest.Test(t, testSessionFileThatChanges) }

func testSessionFileThatChanges(t *testing.T) {
	f := changingFiles{newSessions(t)}
	s := newService(t, func(c *Config) { c.Sessions = f }, inMemory)
	files := sessionsPath + "/" + s.open(`{}`).ID + "/files"
	for _, name := range []string{"shorter", "longer", "negative", "hangs"} {
		require.Equal(t, 201, s.put(files+"/"+name, strings.Repeat("x", 1000)).StatusCode)
	}
	require.Equal(t, "xxx", string(s.get(files+"/longer").body))
	s.requireRefused(s.get(files+"/negative"), 409, "path: it was changed")
	resp, err := s.client.RoundTrip(s.request("GET", files+"/shorter", "", nil))
	require.NoError(t, err)
	defer resp.Body.Close()
	_, err = io.ReadAll(resp.Body)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	s.requireRefused(s.get(files+"/hangs"), 504, "did not answer in time")
}

// TestTransfersAreBounded, and no owner takes all of them.
func TestTransfersAreBounded(t *testing.T) {
	f := newSessions(t)
	s := withSessions(t, f, withLines(t, access.Options{}, "a", "b"), func(c *Config) { c.MaxIntake = 2 })
	open := func(key string) string {
		return sessionsPath + "/" + s.opened(s.call("POST", sessionsPath, "X-API-Key", key)).ID + "/files"
	}
	ofA, ofB := open("a"), open("b")
	hold := func(path, key string) (status chan int, end func()) {
		body, send := io.Pipe()
		req := s.request("PUT", path, "", body)
		req.Header.Set("X-API-Key", key)
		status = make(chan int, 1)
		go func() {
			resp, err := http.DefaultTransport.RoundTrip(req)
			if err != nil {
				status <- 0
				return
			}
			resp.Body.Close()
			status <- resp.StatusCode
		}()
		_, _ = io.WriteString(send, "x")
		return status, func() { send.Close() }
	}
	places := func(n int) {
		require.Eventually(t, func() bool { return s.server.Executor.Transfers() == n }, sessionPatience, time.Millisecond)
	}
	first, endFirst := hold(ofA+"/x", "a")
	places(1)
	requireTooMany(t, s.call("GET", ofA, "X-API-Key", "a"), "the rest of the places is for others")
	second, endSecond := hold(ofB+"/x", "b")
	places(2)
	s.requireRefused(s.call("GET", ofB, "X-API-Key", "b"), 503, "too many files of sessions")
	endFirst()
	endSecond()
	require.Equal(t, []int{201, 201}, []int{<-first, <-second})
	places(0)
	require.Equal(t, 200, s.call("GET", ofA, "X-API-Key", "a").StatusCode)
}
