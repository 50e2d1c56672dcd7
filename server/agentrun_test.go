package server

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/stretchr/testify/require"

	"notebox/agent"
	"notebox/agent/agenttest"
	"notebox/agent/provider"
	"notebox/executor"
	"notebox/runner"
	"notebox/server/ask"
)

// askService has a scripted model and a fake runner.
func askService(t *testing.T, change func(*Config), dialogues ...agenttest.Dialogue) *service {
	t.Helper()
	model := agenttest.New(t, dialogues...)
	p, err := provider.Open(provider.Settings{API: provider.Chat, Model: "m", BaseURL: model.URL(), Retry: provider.RetryOptions{Tries: 1}})
	require.NoError(t, err)
	s := newService(t, func(c *Config) {
		c.Agent = &ask.Config{Provider: p, AtOnce: 1}
		if change != nil {
			change(c)
		}
	})
	s.run = func(ctx context.Context, spec runner.Spec, events runner.Sink) (*runner.Outcome, error) {
		switch code := sources(t, spec)[0]; {
		case strings.HasPrefix(code, "raise"):
			return executed(spec, runner.StatusError, raised("ValueError", "no")), nil
		case code == "full":
			return nil, &runner.Error{Code: runner.CodeFull, Message: "full", RetryAfter: time.Second}
		case code == "wait":
			<-ctx.Done()
			return executed(spec, runner.StatusCancelled), nil
		}
		require.NoError(t, events.File(ctx, "a.txt", strings.NewReader("1")))
		return executed(spec, runner.StatusOK, stdout("120\n")), nil
	}
	return s
}

func call(code string) []agenttest.Call {
	return []agenttest.Call{agenttest.Code("execute_python", code)}
}

var factorial = agenttest.Dialogue{Question: "factorial", Turns: []agenttest.Turn{
	{Text: "I run it.", Calls: call("raise")}, {Calls: call("print(120)"), Expect: []string{"ValueError"}},
	{Text: "{{tool:(\\d+)}} is in [a](sandbox:/mnt/data/a.txt)", Expect: []string{"120"}},
}}

func TestRunAnswers(t *testing.T) {
	s := askService(t, nil, factorial)
	schemas := loadOpenAPI(t, openAPI).Components.Schemas
	for _, path := range []string{"/run", "/foo"} {
		a := s.post(path, "application/json", `{"input":"5 factorial?"}`)
		require.Equal(t, http.StatusOK, a.StatusCode, "%s", a.body)
		var out ask.Answer
		require.NoError(t, json.Unmarshal(a.body, &out))
		require.Regexp(t, `^120 is in \[a\]\(`+s.url+`/v1/files/[^)]+\)$`, out.Output)
		require.Len(t, out.Steps, 2)
		require.Equal(t, "error", out.Steps[0].Status)
		require.Len(t, out.Files, 1)
		require.Equal(t, http.StatusOK, s.get(out.Files[0].URL).StatusCode)
		var v any
		require.NoError(t, json.Unmarshal(a.body, &v))
		require.NoError(t, schemas["Answer"].Value.VisitJSON(v, openapi3.EnableJSONSchema2020()))
	}
}

func TestRunRefuses(t *testing.T) {
	s := askService(t, nil)
	for _, c := range []struct {
		desc, body string
		status     int
		want       string
	}{
		{"no input", `{}`, 400, `{"error":"Missing input field"}`},
		{"empty input", `{"input":" "}`, 400, `{"error":"Missing input field"}`},
		{"another type", `{"input":7}`, 400, `{"error":"Missing input field"}`},
		{"null", `null`, 400, `{"error":"Missing input field"}`},
		{"nothing", ``, 400, `{"error":"Missing input field"}`},
		{"no JSON", `{"input`, 400, `JSON`},
		{"an unknown field", `{"input":"x","stream":false}`, 400, "stream: there is no such field"},
		{"an unknown field alone", `{"question":"x"}`, 400, `{"detail":"question: there is no such field","error":"Missing input field"}`},
		{"an unknown field of a file", `{"input":"x","files":[{"name":"a","txt":"b"}]}`, 400, "files[0].txt: there is no such field"},
		{"a file without a content", `{"input":"x","files":[{"name":"a"}]}`, 400, "files[0]: must have exactly one of content, text, url and id"},
		{"a file that is not there", `{"input":"x","files":[{"name":"a","id":"file_x"}]}`, 422, "files[0].id"},
		{"a file from where nothing may be fetched", `{"input":"x","files":[{"url":"http://127.0.0.1/a"}]}`, 422, "files[0].url"},
		{"too large", `{"input":"` + strings.Repeat("x", 1<<20) + `"}`, 413, `larger`},
	} {
		t.Run(c.desc, func(t *testing.T) {
			s.t = t
			a := s.post("/run", "application/json", c.body)
			require.Equal(t, c.status, a.StatusCode, "%s", a.body)
			require.Contains(t, string(a.body), c.want)
		})
	}
	t.Run("no model", func(t *testing.T) {
		a := newService(t).post("/run", "application/json", `{"input":"x"}`)
		require.Equal(t, http.StatusServiceUnavailable, a.StatusCode)
		require.Contains(t, string(a.body), "OPENAI_API_KEY")
	})
}

func TestRunFails(t *testing.T) {
	for _, c := range []struct {
		desc   string
		turn   agenttest.Turn
		status int
		want   string
	}{
		{"a wrong key", agenttest.Turn{Faults: []agenttest.Fault{{Status: 401, Message: "sk-secret"}}}, 502, "key"},
		{"a provider that is full", agenttest.Turn{Faults: []agenttest.Fault{{Status: 429}}}, 503, "no more requests"},
		{"a service that is full", agenttest.Turn{Calls: call("full")}, 503, "full"},
	} {
		t.Run(c.desc, func(t *testing.T) {
			s := askService(t, nil, agenttest.Dialogue{Turns: []agenttest.Turn{c.turn}})
			a := s.post("/run", "application/json", `{"input":"x"}`)
			require.Equal(t, c.status, a.StatusCode, "%s", a.body)
			require.Contains(t, string(a.body), c.want)
			require.NotContains(t, string(a.body), "sk-secret")
			if c.status == 503 {
				require.NotEmpty(t, a.Header.Get("Retry-After"))
			}
		})
	}
}

func TestRunStreams(t *testing.T) {
	s := askService(t, nil, factorial)
	req := s.request("POST", "/run", "application/json", strings.NewReader(`{"input":"5 factorial?"}`))
	req.Header.Set("Accept", "text/event-stream")
	a := s.do(req)
	require.Equal(t, http.StatusOK, a.StatusCode)
	require.Equal(t, "text/event-stream", a.Header.Get("Content-Type"))
	var names []string
	for line := range strings.Lines(string(a.body)) {
		if name, ok := strings.CutPrefix(line, "event: "); ok && (len(names) == 0 || names[len(names)-1] != strings.TrimSpace(name)) {
			names = append(names, strings.TrimSpace(name))
		}
	}
	require.Equal(t, []string{"started", "text", "call", "output", "turn", "call", "output", "turn", "text", "turn", "done"}, names)
	last := a.body[bytes.LastIndex(a.body, []byte("data: "))+len("data: "):]
	var out ask.Answer
	require.NoError(t, json.Unmarshal(last, &out))
	require.Len(t, out.Steps, 2)
}

// TestRunHasItsPlaces: a question that goes on keeps others out, and one whose client
// leaves is over.
func TestRunHasItsPlaces(t *testing.T) {
	s := askService(t, nil, agenttest.Dialogue{Question: "slow", Turns: []agenttest.Turn{{Calls: call("wait")}}}, agenttest.Dialogue{Turns: []agenttest.Turn{{Text: "Yes."}}})
	ctx, leave := context.WithCancel(context.Background())
	left := make(chan error, 1)
	go func() {
		req, err := http.NewRequestWithContext(ctx, "POST", s.url+"/run", strings.NewReader(`{"input":"slow"}`))
		if err == nil {
			var res *http.Response
			if res, err = http.DefaultTransport.RoundTrip(req); err == nil {
				_, _ = io.Copy(io.Discard, res.Body)
				res.Body.Close()
			}
		}
		left <- err
	}()
	status := func() int { return s.post("/run", "application/json", `{"input":"x"}`).StatusCode }
	require.Eventually(t, func() bool { s.mu.Lock(); defer s.mu.Unlock(); return len(s.runs) == 1 }, time.Minute, 10*time.Millisecond)
	require.Equal(t, http.StatusServiceUnavailable, status())
	leave()
	require.Error(t, <-left)
	require.Eventually(t, func() bool { return status() == http.StatusOK }, time.Minute, 20*time.Millisecond)
}

// TestRunCountsAsRuns: each run of the agent is one of its caller's.
func TestRunCountsAsRuns(t *testing.T) {
	s := askService(t, nil, agenttest.Dialogue{Turns: []agenttest.Turn{{Calls: call("print(1)")}, {Text: "x"}}})
	require.Equal(t, http.StatusOK, s.post("/run", "application/json", `{"input":"x"}`).StatusCode)
	require.Len(t, s.runs, 1)
	require.Regexp(t, "^run_", s.runs[0].ID)
	require.Equal(t, agent.DefaultLimits().Corrections, 3)
}

// TestRunTakesFiles: in both forms, as POST /v1/execute does, and each run has them.
func TestRunTakesFiles(t *testing.T) {
	upload, uploadText := formBody(formPart{`name="files"; filename="kept"`, "kept"})
	form, formText := formBody(formPart{`name="input"`, "5 factorial?"},
		formPart{`name="files"; filename="in/form.csv"`, "a,b"}, formPart{`name="files"`, `[{"name":"text.txt","text":"käse"}]`})
	for _, c := range []struct {
		desc, contentType, body string
		want                    map[string]string
	}{
		{"JSON", "application/json", `{"input":"5 factorial?","files":[{"name":"text.txt","text":"käse"},{"name":"in/b.csv","content":"YQ=="},{"name":"k","id":"%"}]}`,
			map[string]string{"text.txt": "käse", "in/b.csv": "a", "k": "kept"}},
		{"JSON without its Content-Type", "application/x-www-form-urlencoded", `{"input":"5 factorial?","files":[{"name":"a","text":""}]}`, map[string]string{"a": ""}},
		{"null", "application/json", `{"input":"5 factorial?","files":null}`, map[string]string{}},
		{"form", form, formText, map[string]string{"text.txt": "käse", "in/form.csv": "a,b"}},
	} {
		t.Run(c.desc, func(t *testing.T) {
			s := askService(t, nil, factorial)
			var kept []executor.KeptInput
			require.NoError(t, json.Unmarshal(s.post("/v1/files", upload, uploadText).body, &kept))
			run := s.run
			var got []map[string]string
			s.run = func(ctx context.Context, spec runner.Spec, events runner.Sink) (*runner.Outcome, error) {
				files, err := readInputs(spec)
				got = append(got, files)
				require.NoError(t, err)
				return run(ctx, spec, events)
			}
			a := s.post("/run", c.contentType, strings.Replace(c.body, "%", kept[0].ID, 1))
			require.Equal(t, http.StatusOK, a.StatusCode, "%s", a.body)
			require.Equal(t, []map[string]string{c.want, c.want}, got)
			entries, err := os.ReadDir(s.temp)
			require.NoError(t, err)
			require.Empty(t, entries)
		})
	}
}
