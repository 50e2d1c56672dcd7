package server

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/stretchr/testify/require"

	"notebox/access"
	"notebox/executor"
	"notebox/runner"
	"notebox/runner/runnertest"
	"notebox/runner/session"
	"notebox/server/native"
	"notebox/server/web"
)

// sessionPatience is for what a busy machine does late.
const sessionPatience = time.Minute

// hosted are sessions in sandboxes of a fake engine.
type hosted struct {
	*session.Sessions
	*runnertest.Fake
	// onOpen is called at the begin of each Open, which an error of it ends; may be nil.
	onOpen func(context.Context, runner.SessionSpec) error
}

func newSessions(t testing.TB) *hosted {
	host := runnertest.NewFake()
	return &hosted{Sessions: runnertest.Sessions(t, host, 0), Fake: host}
}

func (h *hosted) Open(ctx context.Context, spec runner.SessionSpec) (runner.Session, error) {
	if h.onOpen != nil {
		if err := h.onOpen(ctx, spec); err != nil {
			return nil, err
		}
	}
	return h.Sessions.Open(ctx, spec)
}

// longAfter its end, nobody knows of a session any more.
const longAfter = 25 * time.Hour

// withSessions is a service that offers these.
func withSessions(t *testing.T, f *hosted, change ...func(*Config)) *service {
	return newService(t, append([]func(*Config){func(c *Config) { c.Sessions = f }}, change...)...)
}

// opened is the session in an answer 201.
func (s *service) opened(a answer) native.SessionEntry {
	s.t.Helper()
	require.Equal(s.t, http.StatusCreated, a.StatusCode, "%s", a.body)
	var entry native.SessionEntry
	require.NoError(s.t, json.Unmarshal(a.body, &entry))
	require.Equal(s.t, sessionsPath+"/"+entry.ID, a.Header.Get("Location"))
	require.Equal(s.t, "no-store", a.Header.Get("Cache-Control"))
	return entry
}

// open opens a session with what this JSON asks for.
func (s *service) open(body string) native.SessionEntry {
	s.t.Helper()
	return s.opened(s.post(sessionsPath, "application/json", body))
}

func (s *service) put(path, content string) answer {
	s.t.Helper()
	return s.do(s.request("PUT", path, "", strings.NewReader(content)))
}

// described is openapi.json, read once.
var described = sync.OnceValue(func() *openapi3.T {
	doc, err := openapi3.NewLoader().LoadFromData(openAPI)
	if err != nil {
		panic(err) // TestOpenAPIDescribesEveryRoute says it better
	}
	return doc
})

// asDescribed holds an answer against openapi.json. template is the path there.
func (s *service) asDescribed(method, template string, a answer) {
	s.t.Helper()
	doc := described()
	item := doc.Paths.Value(template)
	require.NotNil(s.t, item, template)
	op := item.GetOperation(method)
	require.NotNil(s.t, op.Responses.Status(a.StatusCode), "%s %s %d is not described", method, template, a.StatusCode)
	if _, any := op.Responses.Status(a.StatusCode).Value.Content["*/*"]; any {
		return
	}
	req := s.request(method, template, "", nil)
	input := &openapi3filter.RequestValidationInput{
		Request: req, Route: &routers.Route{Spec: doc, Path: template, PathItem: item, Method: method, Operation: op},
		Options: &openapi3filter.Options{IncludeResponseStatus: true, AuthenticationFunc: openapi3filter.NoopAuthenticationFunc},
	}
	require.NoError(s.t, openapi3filter.ValidateResponse(context.Background(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: input, Status: a.StatusCode, Header: a.Header, Body: io.NopCloser(bytes.NewReader(a.body)), Options: input.Options,
	}), "%s", a.body)
}

// requireRefused checks a problem that may have been preceded by runs.
func (s *service) requireRefused(a answer, status int, detail string) {
	s.t.Helper()
	require.Equal(s.t, status, a.StatusCode, "%s", a.body)
	require.Equal(s.t, "application/problem+json", a.Header.Get("Content-Type"))
	var p web.ProblemBody
	require.NoError(s.t, json.Unmarshal(a.body, &p), "%s", a.body)
	require.Contains(s.t, p.Detail, detail)
	if status == 429 || status == 503 {
		retryAfter(s.t, a)
	}
	s.requireNoFiles()
}

func TestOpenSession(t *testing.T) {
	const form = "form"
	for _, c := range []struct {
		desc, contentType, body string
		want                    func(*testing.T, runner.SessionSpec)
	}{
		{"no body", "", "", func(t *testing.T, s runner.SessionSpec) {
			require.Equal(t, "jupyter", s.Environment.Name)
			require.Equal(t, time.Hour, s.TTL)
			require.Equal(t, 15*time.Minute, s.Idle)
			require.Nil(t, s.Network)
			require.Empty(t, s.Inputs)
			require.Empty(t, s.Env)
			require.Equal(t, runner.DefaultLimits(), s.Limits)
		}},
		{"no fields", "application/json", `{}`, func(t *testing.T, s runner.SessionSpec) { require.Equal(t, time.Hour, s.TTL) }},
		{"null", "application/json", `{"ttl":null,"files":null,"env":null,"language":null}`, func(t *testing.T, s runner.SessionSpec) {
			require.Equal(t, time.Hour, s.TTL)
		}},
		{"all fields", "application/json", `{"language":"R","ttl":60,"idle":2.5,"env":{"A":"b"},"network":true,"files":[{"name":"d/a","content":"YQ=="}]}`,
			func(t *testing.T, s runner.SessionSpec) {
				require.Equal(t, "r", s.Environment.Name)
				require.Equal(t, time.Minute, s.TTL)
				require.Equal(t, 2500*time.Millisecond, s.Idle)
				require.Equal(t, map[string]string{"A": "b"}, s.Env)
				require.NotNil(t, s.Network)
				require.Equal(t, "d/a", s.Inputs[0].Path)
			}},
		{"idle within a short life", "application/json", `{"ttl":60}`, func(t *testing.T, s runner.SessionSpec) {
			require.Equal(t, time.Minute, s.Idle)
		}},
		{"form", form, "", func(t *testing.T, s runner.SessionSpec) {
			require.Equal(t, 90*time.Second, s.TTL)
			require.Len(t, s.Inputs, 2)
			require.Equal(t, map[string]string{"A": "b"}, s.Env)
		}},
	} {
		t.Run(c.desc, func(t *testing.T) {
			f := newSessions(t)
			var spec runner.SessionSpec
			f.onOpen = func(_ context.Context, s runner.SessionSpec) error { spec = s; return nil }
			s := withSessions(t, f, func(cfg *Config) { cfg.Network = noNetwork{} })
			if c.contentType == form {
				c.contentType, c.body = formBody(formPart{`name="ttl"`, "90"}, formPart{`name="env"`, `{"A":"b"}`},
					formPart{`name="files"; filename="a"`, "1"}, formPart{`name="files"`, `[{"name":"b","content":"Mg=="}]`})
			}
			a := s.post(sessionsPath, c.contentType, c.body)
			entry := s.opened(a)
			s.asDescribed("POST", "/v1/sessions", a)
			require.True(t, executor.IsSessionID(entry.ID), entry.ID)
			require.Equal(t, entry.ID, spec.ID)
			require.Equal(t, "idle", entry.Status)
			require.Equal(t, spec.Network != nil, entry.Network)
			require.Equal(t, spec.TTL.Truncate(time.Second), entry.ExpiresAt.Sub(entry.CreatedAt))
			c.want(t, spec)
			s.requireNoFiles()

			get := s.get(sessionsPath + "/" + entry.ID)
			require.Equal(t, 200, get.StatusCode)
			s.asDescribed("GET", "/v1/sessions/{id}", get)
			list := s.get(sessionsPath)
			s.asDescribed("GET", "/v1/sessions", list)
			require.Contains(t, string(list.body), entry.ID)
		})
	}
}

func TestOpenSessionRefusals(t *testing.T) {
	for _, c := range []struct {
		desc, contentType, body string
		status                  int
		detail                  string
		fault                   error
	}{
		{"unknown language", "application/json", `{"language":"perl"}`, 422, `language: "perl" is not known; there are: python, r`, nil},
		{"bash alone", "application/json", `{"language":"bash"}`, 422, "bash runs in a session of each of them", nil},
		{"life too long", "application/json", `{"ttl":86401}`, 422, "ttl: must be from 1 to 86400 seconds", nil},
		{"no life", "application/json", `{"ttl":0}`, 422, "ttl: must be from 1", nil},
		{"negative idle", "application/json", `{"idle":-1}`, 422, "idle: must be from 1", nil},
		{"endless idle", "application/json", `{"idle":1e999}`, 422, "idle: must be from 1", nil},
		{"life of no number", "application/json", `{"ttl":"1"}`, 400, "ttl: must be a number", nil},
		{"code", "application/json", `{"code":"x"}`, 400, "code: there is no such field", nil},
		{"not JSON", "application/json", `{`, 400, "not valid JSON", nil},
		{"variable", "application/json", `{"env":{"1":"x"}}`, 422, "env.1: ", nil},
		{"network", "application/json", `{"network":true}`, 403, "network: this service's operator allows none", nil},
		{"file's name", "application/json", `{"files":[{"name":"../x","content":""}]}`, 400, "files[0].name: leaves /mnt/data/", nil},
		{"file by an unknown id", "application/json", `{"files":[{"name":"x","id":"x"}]}`, 422, "files[0].id: ", nil},
		{"file from this machine", "application/json", `{"files":[{"name":"x","url":"http://127.0.0.1:1/x"}]}`, 422, "files[0].url", nil},
		{"text", "text/plain", `x`, 415, "a session is opened with application/json", nil},
		{"form with code", "multipart/form-data; boundary=b", "--b\r\nContent-Disposition: form-data; name=code\r\n\r\nx\r\n--b--", 400, "code: there is no such field", nil},
		{"variables that stop a kernel", "application/json", `{"env":{"BAD":"x"}}`, 422, "env: the kernel does not start", &runner.Error{Code: runner.CodeEnv, Message: "the kernel does not start with these variables"}},
		{"full", "application/json", `{}`, 429, "no room", &runner.Error{Code: runner.CodeFull, Message: "no room"}},
		{"share", "application/json", `{}`, 429, "share", &runner.Error{Code: runner.CodeShare, Message: "share"}},
		{"unavailable", "application/json", `{}`, 503, "away", &runner.Error{Code: runner.CodeUnavailable, Message: "away"}},
		{"broken", "application/json", `{}`, 500, "the service failed", io.ErrUnexpectedEOF},
	} {
		t.Run(c.desc, func(t *testing.T) {
			f := newSessions(t)
			f.OnStart = func(context.Context, runner.Environment) error { return c.fault }
			if c.status == http.StatusInternalServerError { // which no engine brings about
				f.onOpen = func(context.Context, runner.SessionSpec) error { return c.fault }
			}
			s := withSessions(t, f)
			a := s.post(sessionsPath, c.contentType, c.body)
			s.requireRefused(a, c.status, c.detail)
			s.asDescribed("POST", "/v1/sessions", a)
			require.Empty(t, f.List(""))
		})
	}
}

// TestNoSessions: every route says that the operator allows none.
func TestNoSessions(t *testing.T) {
	s := newService(t)
	for _, r := range s.server.calls {
		if !strings.HasPrefix(r.Path, sessionsPath) {
			continue
		}
		path := strings.NewReplacer(":id", "ses_01KAJ3V7Q1R2S3T4V5W6X7Y8Z9", "*", "x").Replace(r.Path)
		a := s.do(s.request(r.Method, path, "application/json", strings.NewReader(`{"from":"a","to":"b"}`)))
		s.requireProblem(a, 403, "this service's operator allows no sessions")
	}
	s.requireProblem(s.postJSON(`{"code":"x","session":"ses_01KAJ3V7Q1R2S3T4V5W6X7Y8Z9"}`), 403, "session: this service's operator allows no sessions")
	require.Contains(t, string(s.get("/v1/environments").body), `"sessions":false`)
}

func TestSessionEnds(t *testing.T) {
	path := func(s *service) string { return sessionsPath + "/" + s.open(`{"ttl":3600,"idle":600}`).ID }
	for reason, c := range map[runner.GoneReason]struct {
		detail string
		end    func(t *testing.T, s *service, host *runnertest.Fake, path string)
	}{
		runner.GoneClosed: {"it was closed", func(t *testing.T, s *service, _ *runnertest.Fake, path string) {
			require.Equal(t, 204, s.call("DELETE", path).StatusCode)
		}},
		runner.GoneExpired: {"time to live", func(t *testing.T, s *service, _ *runnertest.Fake, path string) {
			for range 7 { // it is used all the time
				time.Sleep(8 * time.Minute)
				require.Equal(t, 200, s.get(path+"/files").StatusCode)
			}
			time.Sleep(8 * time.Minute)
		}},
		runner.GoneIdle: {"idle time", func(*testing.T, *service, *runnertest.Fake, string) { time.Sleep(10 * time.Minute) }},
		runner.GoneEvicted: {"room was short", func(t *testing.T, s *service, _ *runnertest.Fake, _ string) {
			time.Sleep(time.Minute) // for so long an idle one is let be
			require.Equal(t, 204, s.call("DELETE", path(s)).StatusCode)
		}},
		runner.GoneLost: {"restart of the service", func(_ *testing.T, _ *service, host *runnertest.Fake, _ string) {
			host.End(host.Sandboxes("")[0])
			synctest.Wait()
		}},
	} {
		t.Run(string(reason), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				host := runnertest.NewFake()
				s := withSessions(t, &hosted{Sessions: runnertest.Sessions(t, host, 1)}, inMemory)
				path := path(s)
				id := strings.TrimPrefix(path, sessionsPath+"/")
				c.end(t, s, host, path)
				for _, r := range s.server.calls {
					if !strings.HasPrefix(r.Path, sessionPath) {
						continue
					}
					req := s.request(r.Method, strings.NewReplacer(":id", id, "*", "x").Replace(r.Path), "application/json", strings.NewReader(`{"from":"a","to":"b"}`))
					a := s.do(req)
					s.requireRefused(a, 410, c.detail)
					s.asDescribed(r.Method, documented(r.Path), a)
				}
				run := s.postJSON(`{"code":"x","session":"` + id + `"}`)
				s.requireRefused(run, 410, c.detail)
				s.asDescribed("POST", "/v1/execute", run)
				require.JSONEq(t, `{"sessions":[]}`, string(s.get(sessionsPath).body))
				time.Sleep(longAfter)
				s.requireRefused(s.get(path), 404, "there is nothing at this address")
				s.requireRefused(s.postJSON(`{"code":"x","session":"`+id+`"}`), 404, "session: there is no such session")
			})
		})
	}
	s := withSessions(t, newSessions(t))
	for _, id := range []string{"x", "ses_", "ses_01KAJ3V7Q1R2S3T4V5W6X7Y8Z9", "run_01KAJ3V7Q1R2S3T4V5W6X7Y8Z9", "..%2fx", "ses_01KAJ3V7Q1R2S3T4V5W6X7Y8Z9%0a"} {
		s.requireRefused(s.get(sessionsPath+"/"+id), 404, "there is nothing at this address")
		raw, err := json.Marshal(id)
		require.NoError(t, err)
		s.requireRefused(s.postJSON(`{"code":"x","session":`+string(raw)+`}`), 404, "session: there is no such session")
	}
}

// TestSessionsOfAKey: what a key may not, a session may not either.
func TestSessionsOfAKey(t *testing.T) {
	f := newSessions(t)
	var spec runner.SessionSpec
	f.onOpen = func(_ context.Context, s runner.SessionSpec) error { spec = s; return nil }
	s := withSessions(t, f, func(c *Config) { c.Network = noNetwork{} }, withLines(t, access.Options{},
		named("two", "2", "sessions=2"), named("none", "0", "sessions=no"), named("r", "r", "environments=r network=no"), "b"))
	open := func(key, body string) answer {
		req := s.request("POST", sessionsPath, "application/json", strings.NewReader(body))
		req.Header.Set("X-API-Key", key)
		return s.do(req)
	}
	first := s.opened(open("2", `{}`))
	require.Equal(t, 2, spec.MaxOwned)
	require.Regexp(t, "^[0-9a-f]{16}$", spec.Owner)
	s.opened(open("2", `{}`))
	requireTooMany(t, open("2", `{}`), "this API key may have 2 sessions open")
	require.Equal(t, 204, s.call("DELETE", sessionsPath+"/"+first.ID, "X-API-Key", "2").StatusCode)
	s.opened(open("2", `{}`))
	s.requireRefused(open("0", `{}`), 403, "this API key may not open sessions")
	s.requireRefused(open("r", `{}`), 403, "this API key may not run python")
	s.requireRefused(open("r", `{"language":"r","network":true}`), 403, "network")
	s.opened(open("r", `{"language":"r"}`))
	for range 3 {
		s.opened(open("b", `{}`))
	}
	require.Zero(t, spec.MaxOwned)
}

func TestInterruptAndRestart(t *testing.T) {
	f := newSessions(t)
	s := withSessions(t, f)
	entry := s.open(`{}`)
	path := sessionsPath + "/" + entry.ID
	require.Equal(t, 204, s.call("POST", path+"/interrupt").StatusCode, "of nothing")
	running := func() native.SessionEntry {
		var now native.SessionEntry
		require.NoError(t, json.Unmarshal(s.get(path).body, &now))
		return now
	}
	run := func(code string) chan answer {
		body, _ := json.Marshal(map[string]string{"code": code, "session": entry.ID})
		ends := make(chan answer, 1)
		go func() { ends <- s.postJSON(string(body)) }()
		return ends
	}
	first := run(runnertest.CellSleep)
	require.Eventually(t, func() bool { return running().Status == "running" }, sessionPatience, time.Millisecond)
	require.Nil(t, running().IdleExpiresAt)
	second := run(runnertest.CellHello)
	require.Eventually(t, func() bool { return running().Waiting == 1 }, sessionPatience, time.Millisecond)
	// An interrupt may come before the cell heeds it.
	require.Eventually(t, func() bool {
		require.Equal(t, 204, s.call("POST", path+"/interrupt").StatusCode)
		return len(first)+len(second) == 2
	}, sessionPatience, 10*time.Millisecond)
	a, b := s.replied(<-first), s.replied(<-second)
	require.Equal(t, "error", a.Status)
	require.Equal(t, "KeyboardInterrupt", a.Error["name"])
	require.Equal(t, "The code was interrupted; the variables and files of this session are kept.", a.Hint)
	require.False(t, a.Session.KernelRestarted)
	require.Equal(t, "hello\n", b.Text)

	first = run(runnertest.CellStubborn)
	require.Eventually(t, func() bool { return running().Status == "running" }, sessionPatience, time.Millisecond)
	restarted := s.call("POST", path+"/restart")
	require.Equal(t, 200, restarted.StatusCode)
	s.asDescribed("POST", "/v1/sessions/{id}/restart", restarted)
	a = s.replied(<-first)
	require.Equal(t, "killed", a.Status)
	require.True(t, a.Session.KernelRestarted)
	require.Contains(t, a.Text, toldOfRestart)
	require.Contains(t, a.Hint, toldOfRestart)
	require.Equal(t, 1, running().KernelRestarts)
}
