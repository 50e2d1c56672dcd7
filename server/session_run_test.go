package server

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/access"
	"notebox/runner"
	"notebox/runner/runnertest"
)

// calculating are sessions that know some more code.
func calculating(t *testing.T) *hosted {
	f := newSessions(t)
	f.On("x = 1", func(k *runnertest.Kernel) { k.Vars["x"] = "1"; k.Files["made.txt"] = "made" })
	f.On("print(x)", func(k *runnertest.Kernel) {
		if x, ok := k.Vars["x"]; ok {
			k.Print(x + "\n")
			return
		}
		k.Raise("NameError", "name 'x' is not defined")
	})
	f.On("names", func(k *runnertest.Kernel) {
		for _, name := range []string{"in.csv", "made.txt"} {
			if content, ok := k.Files[name]; ok {
				k.Print(name + "=" + content + "\n")
			}
		}
	})
	f.On("echo hi", func(k *runnertest.Kernel) { k.Print("hi\n") })
	f.On("exit 3", func(k *runnertest.Kernel) { k.Print("out"); k.Complain("err"); k.Exit(3) })
	f.On("the kernel dies later", (*runnertest.Kernel).DieLater)
	return f
}

func (s *service) inSession(id, fields string) answer {
	s.t.Helper()
	return s.postJSON(`{"session":"` + id + `",` + fields + `}`)
}

func TestRunsInASession(t *testing.T) {
	s := withSessions(t, calculating(t))
	id := s.open(`{"files":[{"name":"in.csv","content":"MQ=="}]}`).ID
	run := func(fields string) replyJSON {
		t.Helper()
		a := s.inSession(id, fields)
		s.asDescribed("POST", "/v1/execute", a)
		r := s.replied(a)
		require.Equal(t, id, r.Session.ID)
		require.False(t, r.Session.ExpiresAt.IsZero())
		return r
	}
	r := run(`"code":"x = 1"`)
	require.Equal(t, "ok", r.Status)
	require.Len(t, r.Files, 1)
	require.Equal(t, "made", string(s.get(r.Files[0]["url"].(string)).body))
	require.Nil(t, r.ExitCode)

	r = run(`"code":"print(x)","language":"py"`)
	require.Equal(t, "1\n", r.Text)
	require.Empty(t, r.Files)
	require.Empty(t, r.Hint)
	require.Contains(t, string(s.get(r.Notebook.URL).body), "print(x)")
	require.NotContains(t, string(s.get(r.Notebook.URL).body), "x = 1", "a notebook is one run's")

	r = run(`"cells":["print(x)","names"],"files":[{"name":"in.csv","content":"Mg=="}]`)
	require.Equal(t, "1\nin.csv=2\nmade.txt=made\n", r.Text)
	r = run(`"notebook":{"nbformat":4,"metadata":{},"cells":[{"cell_type":"code","source":"print(x)"}]}`)
	require.Equal(t, "1\n", r.Text)

	r = run(`"code":"echo hi","language":"bash"`)
	require.Equal(t, "ok", r.Status)
	require.Equal(t, "hi\n", r.Text)
	require.Zero(t, *r.ExitCode)
	require.Nil(t, r.Error)
	require.Contains(t, string(s.get(r.Notebook.URL).body), `"bash"`)
	for _, shell := range []string{`"code":"exit 3","language":"SH"`, `"cells":["exit 3"],"language":"shell"`} {
		r = run(shell)
		require.Equal(t, "error", r.Status)
		require.Equal(t, 3, *r.ExitCode)
		require.Equal(t, map[string]any{"name": "CommandFailed", "message": "the command ended with exit code 3", "traceback": "", "cell": 0.0, "line": 0.0}, r.Error)
		require.Equal(t, "out\nerr\n[the command ended with exit code 3]\n", r.Text)
		require.Equal(t, "stderr", r.Outputs[1]["name"])
		require.Contains(t, r.Hint, "exit code 3")
	}
	require.Equal(t, "1\n", run(`"code":"print(x)"`).Text, "a command is not the kernel's")

	r = run(`"code":` + quoted(runnertest.CellKill))
	require.Equal(t, "killed", r.Status)
	require.True(t, r.Session.KernelRestarted)
	require.Contains(t, r.Hint, toldOfRestart)
	r = run(`"code":"print(x)"`)
	require.Equal(t, "error", r.Status)
	require.False(t, r.Session.KernelRestarted)
	require.Contains(t, r.Hint, "files of this session are kept")
	require.Equal(t, "made.txt=made\n", strings.TrimPrefix(run(`"code":"names"`).Text, "in.csv=2\n"))

	require.Equal(t, "ok", run(`"code":"the kernel dies later"`).Status)
	r = run(`"code":"names"`)
	require.Equal(t, "ok", r.Status)
	require.True(t, r.Session.KernelRestarted)
	require.Equal(t, toldOfRestart, r.Hint)
	require.Contains(t, r.Text, "["+toldOfRestart+"]\n")

	r = run(`"timeout":0.01,"code":` + quoted(runnertest.CellSleep))
	require.Equal(t, "timeout", r.Status)
	require.False(t, r.Session.KernelRestarted)
	require.Contains(t, r.Hint, "The variables and files of this session are kept.")
	require.Empty(t, s.started(), "nothing went to the runner of single-use sandboxes")
}

func quoted(text string) string {
	raw, _ := json.Marshal(text)
	return string(raw)
}

func TestSessionRunForms(t *testing.T) {
	s := withSessions(t, calculating(t))
	id := s.open(`{}`).ID
	contentType, body := formBody(formPart{`name="code"`, "names"}, formPart{`name="session"`, id}, formPart{`name="files"; filename="in.csv"`, "5"})
	require.Equal(t, "in.csv=5\n", s.replied(s.post("/v1/execute", contentType, body)).Text)
	require.Equal(t, "in.csv=5\n", s.replied(s.post("/v1/execute?session="+id, "text/x-python", "names")).Text)
	require.Equal(t, "hi\n", s.replied(s.post("/v1/execute?language=bash&session="+id, "text/plain", "echo hi")).Text)

	r := s.stream(t.Context(), `{"code":"names","session":"`+id+`"}`)
	r.want("started", nil)
	var names []string
	for e, ok := r.next(); ok; e, ok = r.next() {
		names = append(names, e.name)
		if e.name == "done" {
			require.Contains(t, e.data, `"session":{"id":"`+id+`"`)
		}
	}
	require.Equal(t, []string{"output", "done"}, names)

	run := s.accepted(s.do(s.with(`{"code":"names","session":"`+id+`"}`, "Prefer", async)))
	require.Equal(t, "in.csv=5\n", s.ends(run).Text)
}

// TestSessionIdempotency: a reply that is there is given also when its session is over.
func TestSessionIdempotency(t *testing.T) { synctest.Test(t, testSessionIdempotency) }

func testSessionIdempotency(t *testing.T) {
	s := withSessions(t, calculating(t), inMemory)
	id := s.open(`{}`).ID
	ask := func(body string) answer { return s.do(s.with(body, idempotent, "k")) }
	body := `{"code":"echo hi","language":"bash","session":"` + id + `"}`
	first := s.replied(ask(body))
	require.Equal(t, first.ID, s.replied(ask(body)).ID)
	require.Equal(t, 409, ask(`{"code":"echo hi","session":"`+id+`"}`).StatusCode)
	require.Equal(t, 409, ask(`{"code":"echo hi"}`).StatusCode)
	require.Equal(t, 204, s.call("DELETE", sessionsPath+"/"+id).StatusCode)
	require.Equal(t, first.ID, s.replied(ask(body)).ID)
	fresh := s.do(s.with(body, idempotent, "other"))
	require.Equal(t, 410, fresh.StatusCode, "%s", fresh.body)
	fresh = s.do(s.with(body, idempotent, "other", "Prefer", async))
	require.Equal(t, 410, fresh.StatusCode, "%s", fresh.body)
	time.Sleep(longAfter)
	require.Equal(t, 404, s.do(s.with(body, idempotent, "other")).StatusCode)
}

func TestSessionRunRefusals(t *testing.T) {
	f := calculating(t)
	s := withSessions(t, f, func(c *Config) { c.Network = noNetwork{} })
	plain, networked := s.open(`{}`).ID, s.open(`{"network":true}`).ID
	for _, c := range []struct {
		desc, session, fields string
		status                int
		detail                string
	}{
		{"another language", plain, `"code":"x","language":"r"`, 422, `language: is "r", and this session runs python, and bash beside it`},
		{"unknown language", plain, `"code":"x","language":"perl"`, 422, `language: "perl" is not known; in this session there are: python, bash`},
		{"another notebook", plain, `"notebook":{"nbformat":4,"metadata":{"kernelspec":{"name":"ir","language":"R"}},"cells":[{"cell_type":"code","source":"x"}]}`, 422, `notebook.metadata.kernelspec.language: is "R"`},
		{"notebook for bash", plain, `"language":"bash","notebook":{"nbformat":4,"cells":[{"cell_type":"code","source":"x"}]}`, 422, "notebook: cannot be run by bash"},
		{"cells for bash", plain, `"language":"bash","cells":["a","b"]`, 422, "cells: are 2, and bash takes one command"},
		{"NUL for bash", plain, `"language":"bash","code":"a\u0000b"`, 422, "code: has a NUL"},
		{"long command", plain, `"language":"bash","code":"` + strings.Repeat("x", mostCommand+1) + `"`, 413, "code: a command may have 131071 bytes"},
		{"variables", plain, `"code":"x","env":{"A":"b"}`, 422, "env: is the session's: give it when the session is opened"},
		{"dependencies", plain, `"code":"x","dependencies":["a"]`, 422, "dependencies: "},
		{"network", plain, `"code":"x","network":true`, 422, "network: is the session's"},
		{"no network", networked, `"code":"x","network":false`, 422, "network: is the session's"},
		{"no code", plain, `"language":"bash"`, 400, "code: exactly one"},
		{"timeout", plain, `"code":"x","timeout":0`, 422, "timeout: "},
	} {
		t.Run(c.desc, func(t *testing.T) {
			a := s.inSession(c.session, c.fields)
			s.requireRefused(a, c.status, c.detail)
		})
	}
	require.Equal(t, 200, s.inSession(plain, `"code":"names","network":false,"env":{},"dependencies":[]`).StatusCode)
	require.Equal(t, 200, s.inSession(networked, `"code":"names"`).StatusCode)
	s.requireRefused(s.postJSON(`{"code":"ls","language":"bash"}`), 422, `language: "bash" is not known`)
	s.requireRefused(s.post("/v1/execute?session="+plain, "text/x-r", "x"), 422, "Content-Type: is ")
}

// TestCancelledInASession: a run is cancelled alone; with its session, all are.
func TestCancelledInASession(t *testing.T) {
	f := calculating(t)
	s := withSessions(t, f)
	id := s.open(`{}`).ID
	begin := func(code string) string {
		return s.accepted(s.do(s.with(`{"code":`+quoted(code)+`,"session":"`+id+`"}`, "Prefer", async)))
	}
	waiting := func(n int) func() bool {
		return func() bool {
			list := f.List("")
			return list[0].Running && list[0].Waiting == n
		}
	}
	s.replied(s.inSession(id, `"code":"x = 1"`))
	first := begin(runnertest.CellSleep)
	require.Eventually(t, waiting(0), sessionPatience, time.Millisecond)
	second, third := begin(runnertest.CellSleep), begin("print(x)")
	require.Eventually(t, waiting(2), sessionPatience, time.Millisecond)
	for _, run := range []string{first, second} {
		require.Equal(t, 202, s.call("DELETE", "/v1/executions/"+run).StatusCode)
		require.Equal(t, "cancelled", s.ends(run).Status)
	}
	require.Equal(t, "1\n", s.ends(third).Text)

	first = begin(runnertest.CellStubborn)
	require.Eventually(t, waiting(0), sessionPatience, time.Millisecond)
	second = begin("print(x)")
	require.Eventually(t, waiting(1), sessionPatience, time.Millisecond)
	require.Equal(t, 204, s.call("DELETE", sessionsPath+"/"+id).StatusCode)
	for _, run := range []string{first, second} {
		r := s.ends(run)
		require.Equal(t, "cancelled", r.Status)
		require.Contains(t, r.Hint, "The run ended with its session")
	}
}

func TestSessionQueueIsBounded(t *testing.T) { synctest.Test(t, testSessionQueueIsBounded) }

func testSessionQueueIsBounded(t *testing.T) {
	f := newSessions(t)
	s := withSessions(t, f, inMemory)
	id := s.open(`{}`).ID
	body := `{"code":` + quoted(runnertest.CellSleep) + `,"session":"` + id + `"}`
	for range mostWaiting + 1 {
		s.accepted(s.do(s.with(body, "Prefer", async)))
	}
	require.Eventually(t, func() bool { return f.List("")[0].Waiting == mostWaiting }, sessionPatience, time.Millisecond)
	requireTooMany(t, s.postJSON(body), "session: 32 runs wait in it already")
}

// TestSessionRunsAreCharged: what waits in a session's line costs nothing.
func TestSessionRunsAreCharged(t *testing.T) {
	s := withSessions(t, newSessions(t), withLines(t, access.Options{}, named("alice", "a", "cpu-seconds-per-day=1")))
	post := func(path, body string) answer {
		req := s.request("POST", path, "application/json", strings.NewReader(body))
		req.Header.Set("X-API-Key", "a")
		return s.do(req)
	}
	id := s.opened(post(sessionsPath, `{}`)).ID
	caller, err := s.server.Keys.Caller("a")
	require.NoError(t, err)
	place, err := caller.BeginRun()
	require.NoError(t, err)
	place.Charge(2 * time.Second)
	place.End()
	requireTooMany(t, post("/v1/execute", `{"code":"x","session":"`+id+`"}`), "has used its 1 CPU-seconds")
	requireTooMany(t, post(sessionsPath, `{}`), "has used its 1 CPU-seconds")
}

// TestClientLeavesASession cancels its run alone, and a session that nobody heard of.
func TestClientLeavesASession(t *testing.T) {
	f := calculating(t)
	opening := make(chan struct{})
	f.OnStart = func(ctx context.Context, _ runner.Environment) error {
		if f.Started() > 0 {
			close(opening)
			<-ctx.Done()
		}
		return nil
	}
	s := withSessions(t, f)
	id := s.open(`{}`).ID
	s.replied(s.inSession(id, `"code":"x = 1"`))
	ctx, leave := context.WithCancel(t.Context())
	left := make(chan struct{})
	go func() {
		defer close(left)
		resp, err := http.DefaultTransport.RoundTrip(s.with(`{"code":` + quoted(runnertest.CellSleep) + `,"session":"` + id + `"}`).WithContext(ctx))
		if err == nil {
			resp.Body.Close()
		}
	}()
	require.Eventually(t, func() bool { return f.List("")[0].Running }, sessionPatience, time.Millisecond)
	leave()
	<-left
	require.Equal(t, "1\n", s.replied(s.inSession(id, `"code":"print(x)"`)).Text)

	ctx, leave = context.WithCancel(t.Context())
	go func() { <-opening; leave() }()
	req := s.request("POST", sessionsPath, "application/json", strings.NewReader(`{}`)).WithContext(ctx)
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err == nil {
		resp.Body.Close()
	}
	require.ErrorIs(t, err, context.Canceled)
	require.Eventually(t, func() bool { return len(f.List("")) == 1 }, sessionPatience, time.Millisecond)
}
