package server

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/access"
	"notebox/runner"
	"notebox/server/dify"
	"notebox/server/web"
)

// named is a line of a keys file.
func named(name, key, limits string) string {
	return name + " " + access.SecretOf(key).String() + " " + limits
}

// withLines has a service know the keys of these lines.
func withLines(t *testing.T, o access.Options, lines ...string) func(*Config) {
	t.Helper()
	entries, err := access.Parse(strings.NewReader(strings.Join(lines, "\n")))
	require.NoError(t, err)
	keys, err := access.New(entries, o)
	require.NoError(t, err)
	return func(c *Config) { c.Keys = keys }
}

// retryAfter is what a refusal's header says, which a client can wait for.
func retryAfter(t *testing.T, a answer) time.Duration {
	t.Helper()
	seconds, err := strconv.Atoi(a.Header.Get("Retry-After"))
	require.NoError(t, err)
	require.Positive(t, seconds)
	return time.Duration(seconds) * time.Second
}

func requireTooMany(t *testing.T, a answer, detail string) time.Duration {
	t.Helper()
	require.Equal(t, http.StatusTooManyRequests, a.StatusCode, "%s", a.body)
	require.Equal(t, "application/problem+json", a.Header.Get("Content-Type"))
	require.Contains(t, string(a.body), detail)
	return retryAfter(t, a)
}

func TestRequestsOfAKey(t *testing.T) {
	clock := new(testClock)
	frozen := time.Now()
	now := func() time.Time { return frozen.Add(time.Duration(clock.ahead.Load())) }
	s := newService(t, withLines(t, access.Options{Now: now}, named("alice", "a", "requests-per-minute=4"), "b"))
	r := s.replied(s.do(s.with(`{"code":"x"}`, "X-API-Key", "a")))
	require.Equal(t, 200, s.call("GET", "/v1/environments", "X-API-Key", "a").StatusCode)
	require.Equal(t, 404, s.call("GET", "/v1/executions/"+r.ID, "X-API-Key", "a").StatusCode)
	require.Equal(t, 400, s.do(s.with(`{`, "X-API-Key", "a")).StatusCode, "a bad one counts")

	for range 3 {
		wait := requireTooMany(t, s.do(s.with(`{"code":"x"}`, "X-API-Key", "a")), "this API key may send 4 requests a minute")
		require.Equal(t, 15*time.Second, wait)
	}
	requireTooMany(t, s.call("DELETE", "/v1/executions/"+r.ID, "X-API-Key", "a"), "4 requests a minute")
	require.Len(t, s.started(), 1)
	for _, path := range []string{"/healthz", "/readyz", "/openapi.json"} {
		require.Equal(t, 200, s.call("GET", path, "X-API-Key", "a").StatusCode)
	}
	require.Equal(t, 200, s.get(r.Notebook.URL).StatusCode, "a link needs no key")
	for range 10 {
		require.Equal(t, 200, s.call("GET", "/v1/environments", "X-API-Key", "b").StatusCode)
		require.Equal(t, 401, s.call("GET", "/v1/environments", "X-API-Key", "c").StatusCode)
	}
	clock.advance(15 * time.Second)
	require.Equal(t, 200, s.call("GET", "/v1/environments", "X-API-Key", "a").StatusCode)
	requireTooMany(t, s.call("GET", "/v1/environments", "X-API-Key", "a"), "4 requests a minute")
	require.Contains(t, s.logged.String(), "caller=alice")
	require.NotContains(t, s.logged.String(), access.SecretOf("a").String())
}

// TestBatchesOfAKey: each message of MCP counts, also in one body with others.
func TestBatchesOfAKey(t *testing.T) {
	s := newService(t, withLines(t, access.Options{}, named("alice", "a", "requests-per-minute=6")))
	head := map[string]string{"X-API-Key": "a"}
	begun := s.mcpRequest("POST", strings.Replace(initialize, "2025-06-18", "2025-03-26", 1), head)
	head["Mcp-Session-Id"] = begun.Header.Get("Mcp-Session-Id")
	batch := func(n int) answer {
		return s.mcpRequest("POST", many(n, "[", `{"jsonrpc":"2.0","id":1%d,"method":"ping"}`, ",", "]"), head)
	}
	require.Equal(t, 200, batch(100).StatusCode, "of 3")
	requireTooMany(t, batch(100), "this API key may send 6 requests a minute")
}

// TestRunsOfAKey: what goes on counts, in whatever form it was asked for; what joins
// it does not.
func TestRunsOfAKey(t *testing.T) {
	s := newService(t, withLines(t, access.Options{}, named("alice", "a", "runs-at-once=2"), "b"))
	runs := s.hold()
	ask := func(body string, headers ...string) answer {
		return s.do(s.with(body, append(headers, "X-API-Key", "a")...))
	}
	one := s.accepted(ask(`{"code":"x"}`, "Prefer", async))
	two := s.accepted(ask(`{"code":"y"}`, "Prefer", async, idempotent, "k"))
	<-runs.started
	<-runs.started
	for _, headers := range [][]string{
		nil, {"Prefer", async}, {idempotent, "other"}, {"Accept", "text/event-stream"}, {"Prefer", async, idempotent, "another"},
	} {
		wait := requireTooMany(t, ask(`{"code":"z"}`, headers...), "this API key may have 2 runs at one time")
		require.LessOrEqual(t, wait, time.Minute)
	}
	for range 3 {
		require.Equal(t, two, s.accepted(ask(`{"code":"y"}`, "Prefer", async, idempotent, "k")))
	}
	s.accepted(s.do(s.with(`{"code":"x"}`, "Prefer", async, "X-API-Key", "b")))
	<-runs.started
	require.Len(t, s.started(), 3)
	require.Equal(t, 202, s.call("DELETE", "/v1/executions/"+one, "X-API-Key", "a").StatusCode)
	// Its place is back when it has ended, and the key of a refused request is free.
	require.Eventually(t, func() bool {
		return ask(`{"code":"other"}`, "Prefer", async, idempotent, "other").StatusCode == http.StatusAccepted
	}, time.Minute, 10*time.Millisecond)
	close(runs.letGo)
	require.NoError(t, s.server.Wait(t.Context()))
	s.replied(ask(`{"code":"x"}`))
}

// TestCPUOfAKey: each run is charged once, however many requests it answers, and a
// new process goes on counting.
func TestCPUOfAKey(t *testing.T) {
	noon := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	o := access.Options{Now: func() time.Time { return noon }, UsageFile: filepath.Join(t.TempDir(), "used")}
	keys := withLines(t, o, named("alice", "a", "cpu-seconds-per-day=10"), "b")
	s := newService(t, keys)
	cpu, cut := 3*time.Second, false
	s.run = func(_ context.Context, spec runner.Spec, _ runner.Sink) (*runner.Outcome, error) {
		if cut {
			return nil, &runner.Error{Code: runner.CodeUnavailable, Message: "no sandbox"}
		}
		out := executed(spec, runner.StatusError)
		out.Usage.CPU = cpu
		return out, nil
	}
	ask := func(headers ...string) answer {
		return s.do(s.with(`{"code":"x"}`, append(headers, "X-API-Key", "a")...))
	}
	for range 5 {
		s.replied(ask(idempotent, "k")) // 3 s, once
	}
	s.accepted(ask("Prefer", async)) // 6 s
	require.NoError(t, s.server.Wait(t.Context()))
	cut = true
	require.Equal(t, 503, ask().StatusCode)
	cut = false
	s.replied(ask()) // 9 s
	s.replied(ask()) // 12 s: what is left may be exceeded by what has begun
	require.Equal(t, 12*time.Hour, requireTooMany(t, ask(), "has used its 10 CPU-seconds of the day"))
	requireTooMany(t, ask("Prefer", async), "CPU-seconds")
	s.replied(ask(idempotent, "k")) // a reply that is there costs nothing
	require.Equal(t, 200, s.do(s.with(`{"code":"x"}`, "X-API-Key", "b")).StatusCode)

	require.NoError(t, s.server.Keys.Close())
	s = newService(t, withLines(t, o, named("alice", "a", "cpu-seconds-per-day=10")))
	requireTooMany(t, ask(), "CPU-seconds")
	require.Empty(t, s.started())
}

func TestEnvironmentsOfAKey(t *testing.T) {
	s := newService(t, withLines(t, access.Options{}, named("alice", "a", "environments=r"), named("bob", "b", "environments=jupyter network=no"), "c"))
	ask := func(key, body string) answer { return s.do(s.with(body, "X-API-Key", key)) }
	s.requireProblem(ask("a", `{"code":"x"}`), 403, "language: this API key may not run python; it may run: r")
	s.requireProblem(ask("a", `{"code":"x","language":"py"}`), 403, "may not run python")
	s.requireProblem(ask("b", `{"code":"x","language":"r"}`), 403, "may not run r")
	s.requireProblem(ask("b", `{"notebook":{"nbformat":4,"metadata":{"kernelspec":{"name":"ir","language":"R"}},"cells":[{"cell_type":"code","source":"x"}]}}`), 403, "may not run r")
	s.requireProblem(ask("b", `{"code":"x","network":true}`), 403, "network: ")
	s.requireProblem(ask("c", `{"code":"x","network":true}`), 403, "network: this service's operator allows none")
	s.replied(ask("a", `{"code":"x","language":"r"}`))
	s.replied(ask("b", `{"code":"x"}`))
	s.replied(ask("c", `{"code":"x","language":"r"}`))
	for key, want := range map[string][]string{"a": {"r"}, "b": {"python"}, "c": {"python", "r"}} {
		var list struct{ Environments []struct{ Language string } }
		require.NoError(t, json.Unmarshal(s.call("GET", "/v1/environments", "X-API-Key", key).body, &list))
		var got []string
		for _, e := range list.Environments {
			got = append(got, e.Language)
		}
		require.Equal(t, want, got)
	}
}

// TestReasonsOfRefusals: what is counted says which limit it was.
func TestReasonsOfRefusals(t *testing.T) {
	all := Refusals()
	for _, reason := range []access.Reason{
		access.ReasonRequests, access.ReasonRuns, access.ReasonCPU, access.ReasonSessions, access.ReasonEnvironment, access.ReasonNetwork,
	} {
		p := web.Problem(&access.Refusal{Reason: reason, Message: "no"})
		require.Equal(t, Refusal(reason), refusalOf(p))
		require.Contains(t, all, refusalOf(p))
	}
}

// TestNewKeyOfAName: what was made with the old key is there for the new one, and a
// plain key that was given a name keeps what it had.
func TestNewKeyOfAName(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys")
	write := func(lines ...string) {
		t.Helper()
		require.NoError(t, os.WriteFile(path+"~", []byte(strings.Join(lines, "\n")), 0o600))
		require.NoError(t, os.Rename(path+"~", path))
	}
	write(named("alice", "old", ""), "plain")
	keys, err := access.Open(path, access.Options{})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	var watch sync.WaitGroup
	watch.Go(func() { keys.Watch(ctx) })
	t.Cleanup(func() { stop(); watch.Wait() })
	s := newService(t, func(c *Config) { c.Keys = keys })
	runs := s.hold()
	status := func(key, id string) int {
		return s.call("GET", "/v1/executions/"+id, "X-API-Key", key).StatusCode
	}
	first := s.accepted(s.do(s.with(`{"code":"x"}`, "Prefer", async, idempotent, "k", "X-API-Key", "old")))
	second := s.accepted(s.do(s.with(`{"code":"x"}`, "Prefer", async, "X-API-Key", "plain")))

	write(named("alice", "new", ""), named("bob", "plain", "owner="+ownerOfKey("plain")))
	require.Eventually(t, func() bool { return status("new", first) == 200 }, time.Minute, 10*time.Millisecond)
	require.Equal(t, 401, status("old", first))
	require.Equal(t, 200, status("plain", second))
	require.Equal(t, 404, status("new", second))
	require.Equal(t, first, s.accepted(s.do(s.with(`{"code":"x"}`, "Prefer", async, idempotent, "k", "X-API-Key", "new"))), "joined")
	close(runs.letGo)
	require.NoError(t, s.server.Wait(t.Context()))
	require.Contains(t, string(s.call("GET", "/v1/executions/"+first, "X-API-Key", "new").body), `"status":"ok"`,
		"what a removed key had running has ended by itself")
	require.Contains(t, s.logged.String(), "caller=bob")
}

// TestNothingOfAnothers calls each route that needs a key with things of another's.
// A new route fails here until it has a row.
func TestNothingOfAnothers(t *testing.T) {
	offered := newSessions(t)
	s := newService(t, withLines(t, access.Options{}, named("alice", "a", ""), "b"), func(c *Config) { c.Sessions = offered })
	runs := s.hold()
	session := sessionsPath + "/" + s.opened(s.call("POST", sessionsPath, "X-API-Key", "a")).ID
	putFile := func(key, path, content string) answer {
		req := s.request("PUT", session+"/files/"+path, "", strings.NewReader(content))
		req.Header.Set("X-API-Key", key)
		return s.do(req)
	}
	require.Equal(t, 201, putFile("a", "theirs", "AAA").StatusCode)
	// notOthers holds that a session's route is another's 404, and does its work for
	// the owner.
	notOthers := func(method, path, contentType, body string, status int) func(*testing.T) {
		return func(t *testing.T) {
			for _, key := range []string{"b", "a"} {
				req := s.request(method, session+path, contentType, strings.NewReader(body))
				req.Header.Set("X-API-Key", key)
				a := s.do(req)
				require.Equal(t, map[string]int{"b": 404, "a": status}[key], a.StatusCode, "%s", a.body)
				if key == "b" {
					require.Contains(t, string(a.body), "there is nothing at this address")
				}
			}
		}
	}
	going := s.accepted(s.do(s.with(`{"code":"x","files":[{"name":"in","content":"QUFB"}]}`, "Prefer", async, idempotent, "k", "X-API-Key", "a")))
	<-runs.started
	kept := s.keptOf(s.upload(keyed("a"), "in", "AAA"))[0].ID
	rows := map[string]bool{}
	for _, call := range dify.Calls() {
		t.Run("POST "+call.Path(), func(t *testing.T) {
			require.Equal(t, 401, s.call("POST", call.Path()).StatusCode)
			notOthersSandbox(t, s, call, strings.TrimPrefix(session, sessionsPath+"/"))
		})
		rows["POST "+call.Path()] = true
	}
	for _, c := range []struct {
		route  string // as routes has it
		others func(t *testing.T)
	}{
		{"POST /v1/execute", func(t *testing.T) { // neither joined nor refused: another run, without the other's files
			id := s.accepted(s.do(s.with(`{"code":"y"}`, "Prefer", async, idempotent, "k", "X-API-Key", "b")))
			require.NotEqual(t, going, id)
			<-runs.started
			started := s.started()
			require.Empty(t, started[len(started)-1].Inputs)
		}},
		{"GET /v1/executions/:id", func(t *testing.T) {
			for _, method := range []string{"GET", "HEAD"} {
				require.Equal(t, 404, s.call(method, "/v1/executions/"+going, "X-API-Key", "b").StatusCode)
			}
			require.Equal(t, 200, s.call("GET", "/v1/executions/"+going, "X-API-Key", "a").StatusCode)
		}},
		{"DELETE /v1/executions/:id", func(t *testing.T) {
			require.Equal(t, 404, s.call("DELETE", "/v1/executions/"+going, "X-API-Key", "b").StatusCode)
			require.JSONEq(t, `{"id":"`+going+`","status":"running"}`, string(s.call("GET", "/v1/executions/"+going, "X-API-Key", "a").body))
		}},
		{"POST /v1/executions/:id/share", func(t *testing.T) { // TestShareIsItsOwners has those that have ended
			require.Equal(t, 404, s.call("POST", sharePath(going), "X-API-Key", "b").StatusCode)
			require.Equal(t, 409, s.call("POST", sharePath(going), "X-API-Key", "a").StatusCode)
		}},
		{"DELETE /v1/executions/:id/share", func(t *testing.T) {
			require.Equal(t, 404, s.call("DELETE", sharePath(going), "X-API-Key", "b").StatusCode)
		}},
		{"GET /v1/status", func(t *testing.T) { // of others there are numbers alone
			require.NotContains(t, string(s.call("GET", "/v1/status", "X-API-Key", "b").body), going)
			require.Contains(t, string(s.call("GET", "/v1/status", "X-API-Key", "a").body), going)
		}},
		{"GET /metrics", func(t *testing.T) { // of all callers together
			body := string(s.call("GET", "/metrics", "X-API-Key", "b").body)
			for _, of := range []string{going, "alice", access.NamedEntry("alice", access.Limits{}).Owner, ownerOfKey("b")} {
				require.NotContains(t, body, of)
			}
		}},
		{"GET /v1/environments", func(t *testing.T) {
			body := s.call("GET", "/v1/environments", "X-API-Key", "b").body
			require.NotContains(t, string(body), going)
			require.NotContains(t, string(body), "alice")
		}},
		{"GET /v1/tools", func(t *testing.T) {
			a := s.call("GET", "/v1/tools", "X-API-Key", "b")
			require.Equal(t, 200, a.StatusCode)
			require.NotContains(t, string(a.body), going)
			require.NotContains(t, string(a.body), "alice")
		}},
		{"POST /v1/tools/call", func(t *testing.T) { // neither a session nor a file of the other's
			for _, c := range []struct {
				beside, detail string
				status         int
			}{
				{`"session":"` + strings.TrimPrefix(session, sessionsPath+"/") + `"`, "session", 404},
				{`"files":[{"name":"in","id":"` + kept + `"}]`, "files[0].id", 422},
			} {
				req := s.request("POST", "/v1/tools/call", "application/json", strings.NewReader(`{"call":{"code":"x"},`+c.beside+`}`))
				req.Header.Set("X-API-Key", "b")
				a := s.do(req)
				require.Equal(t, c.status, a.StatusCode, "%s", a.body)
				require.Contains(t, string(a.body), c.detail)
			}
		}},
		{"POST /run", func(t *testing.T) { notOthersAnswer(t, s, "/run", going) }},
		{"POST /foo", func(t *testing.T) { notOthersAnswer(t, s, "/foo", going) }},
		{"POST /mcp", func(t *testing.T) { notOthersMCP(t, s, "POST") }},
		{"GET /mcp", func(t *testing.T) { notOthersMCP(t, s, "GET") }},
		{"DELETE /mcp", func(t *testing.T) { notOthersMCP(t, s, "DELETE") }},
		{"POST /v1/files", func(t *testing.T) { // the id of one is none of the other's
			a := s.do(s.with(`{"code":"x","files":[{"name":"in","id":"`+kept+`"}]}`, "X-API-Key", "b"))
			require.Equal(t, 422, a.StatusCode)
			require.Contains(t, string(a.body), "files[0].id")
			s.accepted(s.do(s.with(`{"code":"x","files":[{"name":"in","id":"`+kept+`"}]}`, "Prefer", async, "X-API-Key", "a")))
			<-runs.started
		}},
		{"DELETE /v1/files/*", func(t *testing.T) {
			require.Equal(t, 404, s.call("DELETE", "/v1/files/"+kept, "X-API-Key", "b").StatusCode)
			require.Equal(t, 204, s.call("DELETE", "/v1/files/"+kept, "X-API-Key", "a").StatusCode)
		}},
		{"POST /v1/sessions", func(t *testing.T) { // nor can code be run in one
			a := s.do(s.with(`{"code":"x","session":"`+strings.TrimPrefix(session, sessionsPath+"/")+`"}`, "X-API-Key", "b"))
			require.Equal(t, 404, a.StatusCode)
			require.Contains(t, string(a.body), "session: there is no such session")
		}},
		{"GET /v1/sessions", func(t *testing.T) {
			require.JSONEq(t, `{"sessions":[]}`, string(s.call("GET", sessionsPath, "X-API-Key", "b").body))
			require.Contains(t, string(s.call("GET", sessionsPath, "X-API-Key", "a").body), strings.TrimPrefix(session, sessionsPath+"/"))
		}},
		{"GET /v1/sessions/:id", notOthers("GET", "", "", "", 200)},
		{"POST /v1/sessions/:id/interrupt", notOthers("POST", "/interrupt", "", "", 204)},
		{"POST /v1/sessions/:id/restart", notOthers("POST", "/restart", "", "", 200)},
		{"GET /v1/sessions/:id/files", notOthers("GET", "/files", "", "", 200)},
		{"GET /v1/sessions/:id/files/*", notOthers("GET", "/files/theirs", "", "", 200)},
		{"PUT /v1/sessions/:id/files/*", func(t *testing.T) {
			require.Equal(t, 404, putFile("b", "theirs", "BBB").StatusCode)
			require.Equal(t, "AAA", string(s.call("GET", session+"/files/theirs", "X-API-Key", "a").body))
		}},
		{"POST /v1/sessions/:id/move", notOthers("POST", "/move", "application/json", `{"from":"theirs","to":"moved"}`, 200)},
		{"DELETE /v1/sessions/:id/files/*", notOthers("DELETE", "/files/moved", "", "", 204)},
		{"DELETE /v1/sessions/:id", notOthers("DELETE", "", "", "", 204)},
	} {
		t.Run(c.route, func(t *testing.T) {
			method, path, _ := strings.Cut(c.route, " ")
			require.Equal(t, 401, s.call(method, strings.Replace(path, ":id", going, 1)).StatusCode)
			c.others(t)
		})
		rows[c.route] = true
	}
	close(runs.letGo)
	require.NoError(t, s.server.Wait(t.Context()))
	for key, want := range map[string]int{"a": 200, "b": 404} {
		require.Equal(t, want, s.call("GET", "/v1/executions/"+going, "X-API-Key", key).StatusCode, "the reply of %s", key)
		require.Equal(t, want == 404, s.call("DELETE", "/v1/executions/"+going, "X-API-Key", key).StatusCode == 404)
	}
	for _, r := range s.server.calls {
		if !r.Open {
			require.True(t, rows[r.Method+" "+r.Path], "%s %s has no row here", r.Method, r.Path)
		}
	}
}

// notOthersSandbox holds that a sandbox of the Dify tool is none to another key.
func notOthersSandbox(t *testing.T, s *service, call dify.Call, sandbox string) {
	ask := func(key, name string, fields map[string]string) answer {
		body, err := json.Marshal(fields)
		require.NoError(t, err)
		req := s.request("POST", "/"+name, "application/json", bytes.NewReader(body))
		req.Header.Set("X-API-Key", key)
		return s.do(req)
	}
	fields := map[string]string{
		"sandbox_id": sandbox, "code": "x", "command": "ls", "content": "x", "remote_path": "theirs",
		"file_url": "https://files.example.org/x", "remote_filename": "x", "conversation_id": "c",
	}
	a := ask("b", call.Name, fields)
	switch call.Name {
	case "create_sandbox": // a conversation of the same id is another
		require.Equal(t, 200, a.StatusCode, "%s", a.body)
		var own, theirs struct {
			ID string `json:"sandbox_id"`
		}
		require.NoError(t, json.Unmarshal(a.body, &own))
		require.NoError(t, json.Unmarshal(ask("a", call.Name, fields).body, &theirs))
		require.NotEqual(t, own.ID, theirs.ID)
		fields["sandbox_id"] = own.ID
		require.JSONEq(t, `{"status":"stopped"}`, string(ask("b", "stop_sandbox", fields).body))
	case "stop_sandbox":
		require.JSONEq(t, `{"status":"not_found"}`, string(a.body))
	default:
		require.Equal(t, 404, a.StatusCode, "%s", a.body)
	}
}

// notOthersAnswer holds that a question tells nothing of another key's: there is no model
// here, and nothing is kept between questions.
func notOthersAnswer(t *testing.T, s *service, path, going string) {
	req := s.request("POST", path, "application/json", strings.NewReader(`{"input":"x"}`))
	req.Header.Set("X-API-Key", "b")
	a := s.do(req)
	require.Equal(t, 503, a.StatusCode, "%s", a.body)
	require.NotContains(t, string(a.body), going)
	require.NotContains(t, string(a.body), "alice")
}

// notOthersMCP holds that an MCP session is another key's 404.
func notOthersMCP(t *testing.T, s *service, method string) {
	began := s.mcpRequest("POST", initialize, map[string]string{"X-API-Key": "a"})
	require.Equal(t, 200, began.StatusCode)
	a := s.mcpRequest(method, `{"jsonrpc":"2.0","id":2,"method":"ping"}`,
		map[string]string{"X-API-Key": "b", "Mcp-Session-Id": began.Header.Get("Mcp-Session-Id")})
	require.Equal(t, 404, a.StatusCode)
}

func TestRefusalsAreDescribed(t *testing.T) {
	s := newService(t)
	doc := loadOpenAPI(t, s.get("/openapi.json").body)
	for _, r := range s.server.calls {
		if r.Open {
			continue
		}
		for _, method := range []string{r.Method, http.MethodHead} {
			op := doc.Paths.Find(documented(r.Path)).GetOperation(method)
			if method != r.Method && r.Method != http.MethodGet {
				continue
			}
			for _, status := range []string{"401", "429"} {
				require.NotNil(t, op.Responses.Value(status), "%s %s %s", method, r.Path, status)
			}
		}
	}
}
