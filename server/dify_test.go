package server

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/access"
	"notebox/runner/runnertest"
	"notebox/server/dify"
)

// difyService is a service whose sandboxes are fakes.
type difyService struct {
	*service
	sessions *hosted
}

func newDify(t *testing.T, change ...func(*Config)) *difyService {
	sessions := newSessions(t)
	sessions.On("import pandas", func(k *runnertest.Kernel) {
		k.Vars["frame"] = k.Files["sales.csv"]
		k.Print("loaded\n")
	})
	sessions.On("frame", func(k *runnertest.Kernel) {
		k.Output(map[string]any{"output_type": "execute_result", "execution_count": 1, "metadata": map[string]any{},
			"data": map[string]any{"text/plain": k.Vars["frame"]}})
	})
	sessions.On("plot", func(k *runnertest.Kernel) {
		k.Files["total.csv"] = "total\n7\n"
		k.Output(map[string]any{"output_type": "display_data", "metadata": map[string]any{},
			"data": map[string]any{"text/plain": "<Figure size 1x1>", "image/png": onePixel}})
	})
	sessions.On("loop", func(k *runnertest.Kernel) {
		k.Print("first\n")
		k.Wait(false)
	})
	sessions.On("stubborn", func(k *runnertest.Kernel) {
		k.Print("deaf\n")
		k.Wait(true)
		time.Sleep(5 * time.Second) // a busy host ends it
	})
	sessions.On("1/0", func(k *runnertest.Kernel) {
		k.Print("before\n")
		k.Raise("ZeroDivisionError", "division by zero")
	})
	sessions.On("ls -la", func(k *runnertest.Kernel) {
		for name := range k.Files {
			k.Print("-rw-r--r-- " + name + "\n")
		}
	})
	s := newService(t, append([]func(*Config){func(c *Config) {
		c.Sessions, c.FetchAllow = sessions, []string{"127.0.0.1"}
	}}, change...)...)
	return &difyService{s, sessions}
}

// call posts fields, and headers as pairs.
func (s *difyService) call(name string, fields map[string]string, headers ...string) answer {
	s.t.Helper()
	body, err := json.Marshal(fields)
	require.NoError(s.t, err)
	req := s.request(http.MethodPost, "/"+name, "application/json", strings.NewReader(string(body)))
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	return s.do(req)
}

// good is a call that succeeds.
func (s *difyService) good(name string, fields map[string]string, headers ...string) map[string]any {
	s.t.Helper()
	a := s.call(name, fields, headers...)
	require.Equal(s.t, http.StatusOK, a.StatusCode, "%s", a.body)
	require.Equal(s.t, "application/json", a.Header.Get("Content-Type"))
	var out map[string]any
	require.NoError(s.t, json.Unmarshal(a.body, &out))
	return out
}

func (s *difyService) create(conversation string, headers ...string) string {
	s.t.Helper()
	return s.good("create_sandbox", map[string]string{"conversation_id": conversation}, headers...)["sandbox_id"].(string)
}

// in is the fields of a call in a sandbox, as pairs.
func in(sandbox string, pairs ...string) map[string]string {
	out := map[string]string{"sandbox_id": sandbox}
	for i := 0; i < len(pairs); i += 2 {
		out[pairs[i]] = pairs[i+1]
	}
	return out
}

// requireDetail checks an error whose detail is a text.
func requireDetail(t *testing.T, a answer, status int, detail string) {
	t.Helper()
	require.Equal(t, status, a.StatusCode, "%s", a.body)
	require.Equal(t, "application/json", a.Header.Get("Content-Type"))
	var body struct{ Detail string }
	require.NoError(t, json.Unmarshal(a.body, &body), "%s", a.body)
	require.Contains(t, body.Detail, detail)
}

// requireInvalid checks an error whose detail is a list of one.
func requireInvalid(t *testing.T, a answer, field, msg string) {
	t.Helper()
	require.Equal(t, http.StatusUnprocessableEntity, a.StatusCode, "%s", a.body)
	require.Equal(t, "application/json", a.Header.Get("Content-Type"))
	var body struct{ Detail []dify.Detail }
	require.NoError(t, json.Unmarshal(a.body, &body), "%s", a.body)
	require.Len(t, body.Detail, 1)
	require.Equal(t, []any{"body", field}, body.Detail[0].Loc)
	require.Contains(t, body.Detail[0].Msg, msg)
	require.NotEmpty(t, body.Detail[0].Type)
}

func TestDifyWorkflow(t *testing.T) {
	source := newOrigin(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "amount\n7\n") })
	files := "http://127.0.0.1:" + source.port()
	s := newDify(t)
	created := s.good("create_sandbox", map[string]string{"conversation_id": "c1"})
	id := created["sandbox_id"].(string)
	info := s.good("get_sandbox_info", in(id))
	require.Equal(t, created["info"], info)
	require.Equal(t, id, info["sandbox_id"])
	require.Equal(t, "running", info["status"])
	require.Equal(t, "/mnt/data", info["working_directory"])

	require.Equal(t, map[string]any{"status": "success", "remote_path": "/mnt/data/sales.csv"},
		s.good("upload_file", in(id, "file_url", files+"/sales.csv?sign=1", "remote_filename", "sales.csv")))
	step := s.good("run_code", in(id, "code", "import pandas"))
	require.Equal(t, map[string]any{"output": "loaded\n", "images": []any{}, "files": []any{}, "exit_code": nil, "error": nil}, step)
	require.Equal(t, "amount\n7\n", s.good("run_code", in(id, "code", "frame", "language", "py"))["output"], "variables are kept")

	listed := s.good("execute_command", in(id, "command", "ls -la"))
	require.Contains(t, listed["output"], "sales.csv")
	require.EqualValues(t, 0, listed["exit_code"])
	require.Equal(t, listed["output"], s.good("run_code", in(id, "code", "ls -la", "language", "bash"))["output"])

	plotted := s.good("run_code", in(id, "code", "plot"))
	image := plotted["images"].([]any)[0].(map[string]any)
	file := plotted["files"].([]any)[0].(map[string]any)
	require.Equal(t, "image/png", image["media_type"])
	require.Equal(t, "/mnt/data/total.csv", file["path"])
	for _, link := range []any{image["url"], file["url"]} {
		require.Contains(t, plotted["output"], link)
		require.Equal(t, http.StatusOK, s.get(link.(string)).StatusCode)
	}

	link := s.good("download_file", in(id, "remote_path", "total.csv"))
	require.Equal(t, "total.csv", link["filename"])
	require.Contains(t, link["download_url"], s.url+"/files/"+id+"/total.csv?")
	a := s.get(link["download_url"].(string))
	require.Equal(t, "total\n7\n", string(a.body))
	require.Contains(t, a.Header.Get("Content-Disposition"), "attachment")
	require.Equal(t, "nosniff", a.Header.Get("X-Content-Type-Options"))

	require.Equal(t, map[string]any{"status": "stopped"}, s.good("stop_sandbox", in(id)))
	for _, call := range dify.Calls() {
		fields := in(id, "code", "frame", "command", "ls -la", "content", "x", "remote_path", "total.csv", "file_url", files, "remote_filename", "x")
		switch call.Name {
		case "create_sandbox":
			require.NotEqual(t, id, s.create("c1"), "the conversation goes on in a new one")
		case "stop_sandbox":
			require.Equal(t, map[string]any{"status": "not_found"}, s.good(call.Name, fields))
		default:
			requireDetail(t, s.call(call.Name, fields), http.StatusNotFound, "create_sandbox")
		}
	}
	require.Equal(t, http.StatusOK, s.get(link["download_url"].(string)).StatusCode, "who has the link has the file")
	s.requireNoFiles()
}

func TestDifyFiles(t *testing.T) {
	disposition := ""
	source := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/missing" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Disposition", disposition)
		fmt.Fprint(w, "x")
	})
	files := "http://127.0.0.1:" + source.port()
	s := newDify(t)
	id := s.create("")
	for _, p := range []struct{ written, read string }{
		{"a.txt", "/mnt/data/a.txt"}, {"/workspace/b/c.txt", "b/c.txt"}, {"/mnt/data/d.txt", "/workspace/d.txt"}, {"ä ö%20?#.txt", "./ä ö%20?#.txt"},
	} {
		require.Equal(t, map[string]any{"status": "success", "remote_path": p.written},
			s.good("write_file", in(id, "content", "of "+p.written, "remote_path", p.written)))
		link := s.good("download_file", in(id, "remote_path", p.read))
		require.Equal(t, "of "+p.written, string(s.get(link["download_url"].(string)).body), p.written)
	}
	for _, u := range []struct{ desc, disposition, path, name, written string }{
		{"as it is asked for", `attachment; filename="x.csv"`, "/f.csv", "/workspace/in/y.csv", "/mnt/data/in/y.csv"},
		{"as its server says", `inline; filename*=UTF-8''na%20me.csv`, "/file-preview", "", "/mnt/data/na me.csv"},
		{"by the address", "", "/a/f.csv?x=/y", "", "/mnt/data/f.csv"},
		{"no name at all", "", "/", "", "/mnt/data/file"},
		{"a hostile name", `attachment; filename="../../etc/passwd"`, "/f.csv", "", "/mnt/data/passwd"},
		{"a name that is none", `attachment; filename=".."`, "/f.csv", "", "/mnt/data/f.csv"},
	} {
		disposition = u.disposition
		require.Equal(t, u.written, s.good("upload_file", in(id, "file_url", files+u.path, "remote_filename", u.name))["remote_path"], u.desc)
	}
	for _, c := range []struct {
		desc, call string
		fields     map[string]string
		field, msg string
	}{
		{"a path outside", "write_file", in(id, "content", "x", "remote_path", "/etc/passwd"), "remote_path", "/mnt/data"},
		{"a path above", "download_file", in(id, "remote_path", "../x"), "remote_path", "/mnt/data"},
		{"a control character", "write_file", in(id, "content", "x", "remote_path", "a\nb"), "remote_path", "control character"},
		{"a name outside", "upload_file", in(id, "file_url", files, "remote_filename", "/tmp/x"), "remote_filename", "/mnt/data"},
		{"no URL", "upload_file", in(id, "file_url", "sales.csv", "remote_filename", "x"), "file_url", "http"},
		{"another scheme", "upload_file", in(id, "file_url", "file:///etc/passwd", "remote_filename", "x"), "file_url", "http"},
		{"a private host", "upload_file", in(id, "file_url", "http://192.168.3.4/x", "remote_filename", "x"), "file_url", "--fetch-allow"},
		{"the metadata of a cloud", "upload_file", in(id, "file_url", "http://169.254.169.254/latest", "remote_filename", "x"), "file_url", "--fetch-allow"},
		{"an error page", "upload_file", in(id, "file_url", files+"/missing", "remote_filename", "x"), "file_url", "404"},
		{"another language", "run_code", in(id, "code", "x", "language", "javascript"), "language", "py"},
		{"no code", "run_code", in(id, "code", " \n"), "code", "empty"},
	} {
		t.Run(c.desc, func(t *testing.T) {
			s.t = t
			requireInvalid(t, s.call(c.call, c.fields), c.field, c.msg)
		})
	}
	s.t = t
	requireDetail(t, s.call("download_file", in(id, "remote_path", "missing.csv")), http.StatusNotFound, "remote_path: there is no such file")
	s.requireNoFiles()
}

func TestDifyOutputIsForAModel(t *testing.T) {
	s := newDify(t)
	id := s.create("")
	failed := s.good("run_code", in(id, "code", "1/0"))
	require.Equal(t, "before\nZeroDivisionError: division by zero\n", failed["output"])
	require.Equal(t, "ZeroDivisionError", failed["error"].(map[string]any)["name"])
	missing := s.good("execute_command", in(id, "command", "nosuch"))
	require.Equal(t, "bash: line 1: nosuch: command not found\n[the command ended with exit code 127]\n", missing["output"])
	require.EqualValues(t, 127, missing["exit_code"])
	for _, name := range []string{"", "python", "Python3", " PY "} {
		require.Contains(t, s.good("run_code", in(id, "code", "1/0", "language", name))["output"], "ZeroDivisionError", name)
	}
	nul := "ls\x00"
	requireInvalid(t, s.call("execute_command", in(id, "command", nul)), "command", "NUL")
	requireInvalid(t, s.call("run_code", in(id, "code", nul, "language", "bash")), "code", "NUL")
	long := s.call("execute_command", in(id, "command", strings.Repeat("x", mostCommand+1)))
	requireDetail(t, long, http.StatusRequestEntityTooLarge, "command: a command may have")
	for _, name := range []string{"sh", "Shell", "bash"} {
		require.EqualValues(t, 127, s.good("run_code", in(id, "code", "nosuch", "language", name))["exit_code"], name)
	}
}

// TestDifyLanguages: a sandbox has one beside bash, and a conversation a sandbox for each.
func TestDifyLanguages(t *testing.T) {
	s := newDify(t)
	create := func(fields map[string]string) (id string, languages []any) {
		created := s.good("create_sandbox", fields)
		return created["sandbox_id"].(string), created["info"].(map[string]any)["languages"].([]any)
	}
	first, languages := create(map[string]string{"conversation_id": "c"})
	require.Equal(t, []any{"py", "bash"}, languages)
	id, languages := create(map[string]string{"conversation_id": "c", "language": "R"})
	require.Equal(t, []any{"r", "bash"}, languages)
	require.NotEqual(t, first, id)
	again, _ := create(map[string]string{"conversation_id": "c", "language": "r"})
	require.Equal(t, id, again)
	again, _ = create(map[string]string{"conversation_id": "c", "language": "python3"})
	require.Equal(t, first, again)

	require.Contains(t, s.good("run_code", in(id, "code", "1/0"))["output"], "ZeroDivisionError", "it is what the fake kernel says")
	require.Contains(t, s.good("run_code", in(id, "code", "1/0", "language", "r"))["output"], "ZeroDivisionError")
	require.EqualValues(t, 127, s.good("run_code", in(id, "code", "nosuch", "language", "sh"))["exit_code"])
	require.EqualValues(t, 127, s.good("execute_command", in(id, "command", "nosuch"))["exit_code"])
	requireInvalid(t, s.call("run_code", in(id, "code", "1", "language", "py")), "language", "which runs r and bash; create_sandbox")
	requireInvalid(t, s.call("create_sandbox", map[string]string{"language": "cobol"}), "language", "python, r")
}

// TestDifyIsAnsweredInTime: whatever the code does, its client hears of it before Dify
// gives up.
func TestDifyIsAnsweredInTime(t *testing.T) { synctest.Test(t, testDifyIsAnsweredInTime) }

func testDifyIsAnsweredInTime(t *testing.T) {
	s := newDify(t, inMemory)
	id := s.create("")
	for _, c := range []struct {
		desc, call, source string
		output             []string
	}{
		{"a loop is interrupted", "run_code", "loop", []string{"first\n", "interrupted after 55 seconds"}},
		{"a command is too", "execute_command", "loop", []string{"first\n", "interrupted after 55 seconds"}},
		{"code that heeds nothing is answered without", "run_code", "stubborn", []string{"deaf\n", "is being ended"}},
		{"what waits behind another run is not run", "run_code", "frame", []string{"was not run: it waited 55 seconds"}},
	} {
		if c.source == "frame" {
			s.accepted(s.do(s.with(`{"code":"loop","timeout":300,"session":"`+id+`"}`, "Prefer", async)))
		}
		began := time.Now()
		a := s.good(c.call, in(id, "code", c.source, "command", c.source))
		require.LessOrEqual(t, time.Since(began), dify.RunTime+dify.AnswerGrace, c.desc) // Dify gives up after 60 s
		for _, part := range c.output {
			require.Contains(t, a["output"], part, c.desc)
		}
		require.Equal(t, "timeout", a["error"].(map[string]any)["status"], c.desc)
	}
	require.Equal(t, "running", s.good("get_sandbox_info", in(id))["status"])
}

// TestConversationsAreApart: two conversations, and two keys, never see each other's files
// or variables.
func TestConversationsAreApart(t *testing.T) {
	s := newDify(t, withLines(t, access.Options{}, "key-a", "key-b"))
	a, b := []string{"X-API-Key", "key-a"}, []string{"Authorization", "Bearer key-b"}
	var all sync.WaitGroup
	same := make([]string, 8)
	for i := range same {
		all.Go(func() { same[i] = s.create("one", a...) })
	}
	all.Wait()
	for _, id := range same {
		require.Equal(t, same[0], id, "a conversation has one sandbox")
	}
	ids := map[string][]string{same[0]: a, s.create("two", a...): a, s.create("one", b...): b, s.create("", a...): a, s.create("", a...): a}
	require.Len(t, ids, 5)
	require.Len(t, s.sessions.List(ownerOfKey("key-a")), 4)
	for id, key := range ids {
		s.good("write_file", in(id, "content", "of "+id, "remote_path", "sales.csv"), key...)
		s.good("run_code", in(id, "code", "import pandas"), key...)
	}
	for id, key := range ids {
		require.Equal(t, "of "+id+"\n", s.good("run_code", in(id, "code", "frame"), key...)["output"])
		other := a
		if key[0] == a[0] {
			other = b
		}
		for _, call := range dify.Calls()[1:7] {
			fields := in(id, "code", "frame", "command", "ls -la", "content", "x", "remote_path", "sales.csv", "file_url", "http://x", "remote_filename", "x")
			requireDetail(t, s.call(call.Name, fields, other...), http.StatusNotFound, "there is no sandbox")
		}
		require.Equal(t, "not_found", s.good("stop_sandbox", in(id), other...)["status"])
	}
	requireDetail(t, s.call("create_sandbox", nil), http.StatusUnauthorized, "API key")
	requireDetail(t, s.call("get_sandbox_info", in(same[0])), http.StatusUnauthorized, "API key")
}

func TestDifySandboxesOfAKey(t *testing.T) {
	s := newDify(t, withLines(t, access.Options{}, named("alice", "a", "sessions=2")))
	key := []string{"X-API-Key", "a"}
	first := s.create("one", key...)
	s.create("two", key...)
	a := s.call("create_sandbox", map[string]string{"conversation_id": "three"}, key...)
	requireDetail(t, a, http.StatusTooManyRequests, "sessions")
	retryAfter(t, a)
	require.Equal(t, first, s.create("one", key...), "one that lives needs no place")
}

// TestDifyLinks: the signature opens a file, and nothing else does.
func TestDifyLinks(t *testing.T) {
	s := newDify(t)
	id := s.create("")
	for _, name := range []string{"a.txt", "b.txt"} {
		s.good("write_file", in(id, "content", name, "remote_path", name))
	}
	link := func(name string) *url.URL {
		u, err := url.Parse(s.good("download_file", in(id, "remote_path", name))["download_url"].(string))
		require.NoError(t, err)
		return u
	}
	first, second := link("a.txt"), link("a.txt")
	s.good("write_file", in(id, "content", "new", "remote_path", "a.txt"))
	require.Equal(t, "a.txt", string(s.get(first.String()).body), "a link is to what the file was")
	require.Equal(t, "new", string(s.get(link("a.txt").String()).body))
	for _, name := range []string{`back\slash.txt`, "new\nline.txt", `q"uote.txt`, "%2e%2e", "a b+c&d?e#f.txt", "-rf", "x.attrs"} {
		s.sessions.On("touch", func(k *runnertest.Kernel) { k.Files[name] = "x" })
		s.good("run_code", in(id, "code", "touch"))
		require.Equal(t, 200, s.get(link(name).String()).StatusCode, "the code may call its files what it likes: %q", name)
	}
	with := func(change func(u *url.URL, q url.Values)) string {
		u, q := *first, first.Query()
		change(&u, q)
		u.RawQuery = q.Encode()
		return u.String()
	}
	for _, c := range []struct {
		desc, address string
		status        int
	}{
		{"no signature", with(func(u *url.URL, q url.Values) { q.Del("signature") }), 403},
		{"nothing of it", s.url + first.Path, 403},
		{"another time", with(func(u *url.URL, q url.Values) { q.Set("expires", "9999999999") }), 403},
		{"another copy's", with(func(u *url.URL, q url.Values) { q.Set("copy", second.Query().Get("copy")) }), 403},
		{"another file", with(func(u *url.URL, q url.Values) { u.Path = strings.Replace(u.Path, "a.txt", "b.txt", 1) }), 403},
		{"another sandbox", with(func(u *url.URL, q url.Values) { u.Path = "/files/x/a.txt" }), 403},
		{"no such address", with(func(u *url.URL, q url.Values) { u.Path = "/files/x/y/a.txt" }), 404},
		{"a path out of it", s.url + "/files/..%2f..%2fx/a.txt?" + first.RawQuery, 404},
	} {
		t.Run(c.desc, func(t *testing.T) {
			s.t = t
			a := s.get(c.address)
			requireDetail(t, a, c.status, "")
		})
	}
}

func TestDifyHello(t *testing.T) {
	s := newDify(t, withLines(t, access.Options{}, "key-a"))
	for _, accept := range []string{"application/json", "", "*/*", "text/html,application/xhtml+xml,*/*;q=0.8"} {
		req := s.request(http.MethodGet, "/", "", nil)
		req.Header.Set("Accept", accept)
		a := s.do(req)
		require.Equal(t, http.StatusOK, a.StatusCode, accept)
		require.Equal(t, "Accept", a.Header.Get("Vary"))
		if strings.HasPrefix(accept, "text/html") {
			require.Equal(t, "text/html; charset=utf-8", a.Header.Get("Content-Type"))
			continue
		}
		require.JSONEq(t, `{"status":"ok","message":"notebox is running"}`, string(a.body))
	}
}

// TestDifyRefusesLikeTheRest: what guards the native API guards these calls.
func TestDifyRefusesLikeTheRest(t *testing.T) {
	s := newDify(t, func(c *Config) { c.MaxBody = 1000 })
	req := s.request(http.MethodPost, "/create_sandbox", "application/json", strings.NewReader("{}"))
	req.Header.Set("Sec-Fetch-Site", "cross-site")
	requireDetail(t, s.do(req), http.StatusForbidden, "other sites")
	requireDetail(t, s.call("write_file", in("x", "content", strings.Repeat("x", 1000))), http.StatusRequestEntityTooLarge, "1000 bytes")
	requireDetail(t, s.do(s.request(http.MethodPut, "/run_code", "", nil)), http.StatusMethodNotAllowed, "method")
	form := s.request(http.MethodPost, "/create_sandbox", "text/plain", io.NopCloser(strings.NewReader("x")))
	require.Equal(t, http.StatusUnprocessableEntity, s.do(form).StatusCode)
	without := newService(t)
	requireDetail(t, without.post("/create_sandbox", "application/json", "{}"), http.StatusForbidden, "no sessions")
}
