package server

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/agent/agenttest"
	"notebox/agent/provider"
	"notebox/executor"
	"notebox/runner/runnertest"
	"notebox/server/ask"
	"notebox/server/openapitest"
	"notebox/server/share"
)

// What the examples of openapi.json call the things that a service has.
const (
	exampleRun       = "run_01KAJ3V7Q1R2S3T4V5W6X7Y8Z9"
	exampleFile      = "file_01KAJ3V7Q1R2S3T4V5W6X7Y8Z9"
	exampleKey       = "runs/2026-11-21/" + exampleRun + "/notebook.ipynb"
	exampleExpires   = "1795310000"
	exampleSignature = "c2lnbmF0dXJl"
	exampleSession   = "ses_01KAJ3V7Q1R2S3T4V5W6X7Y8Z9"

	exampleSandbox          = "ses_01KB3Z6Q5W8R2M4X7C9V1N0J3H"
	exampleCopy             = "run_01KB3Z8M5T7V9X1A3C5E7G9J1M"
	exampleSandboxExpires   = "1796000000"
	exampleSandboxSignature = "b2YtYS1jb3B5"
	exampleShare            = "AWSYEGIKYD4IVE2JTUPGVG37MZ"
	exampleShareExpires     = "1795310001"
	exampleShareSignature   = "b2YtYS1zaGFyZQ"
	exampleUpload           = "https://files.example.org/sales.csv"
)

// TestExamplesAreServed sends every example of every operation to a service, with a key and
// without keys. openapitest holds the requests and the answers against the document.
func TestExamplesAreServed(t *testing.T) {
	const key = "key-of-the-examples"
	for _, keyed := range []bool{false, true} {
		t.Run(map[bool]string{false: "without keys", true: "with a key"}[keyed], func(t *testing.T) {
			host := newSessions(t)
			describe := func(k *runnertest.Kernel) { k.Print("count 1.0\n") }
			host.On("print(1 + 1)", func(k *runnertest.Kernel) {
				k.Print("2\n")
				k.Output(map[string]any{"output_type": "display_data", "metadata": map[string]any{}, "data": map[string]any{"image/png": strings.TrimSpace(onePixel)}})
				k.Files["out.csv"] = "a\n"
			})
			host.On("x = 6", func(*runnertest.Kernel) {})
			host.On("print(x)", func(k *runnertest.Kernel) { k.Print("6\n") })
			host.On(`run("/mnt/data/src/main.py", '/mnt/data/src/main.py')`, func(k *runnertest.Kernel) { k.Print("hello world\n") })
			for _, name := range []string{"in.csv", "example-0.csv"} {
				host.On("import pandas as pd\npd.read_csv('/mnt/data/"+name+"').describe()", describe)
			}
			// What upload_file fetches.
			origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("a,b\n1,2\n")) }))
			t.Cleanup(origin.Close)
			model := agenttest.New(t, agenttest.Dialogue{Question: "5 factorial", Turns: []agenttest.Turn{{Text: "120"}}},
				agenttest.Dialogue{Question: "column b", Turns: []agenttest.Turn{{Text: "2"}}})
			asked, err := provider.Open(provider.Settings{API: provider.Chat, Model: "m", BaseURL: model.URL()})
			require.NoError(t, err)
			host.On("ls -la /mnt/data", func(k *runnertest.Kernel) { k.Print("total 0\n") })
			s := newService(t, func(c *Config) {
				c.Runner = runnertest.Single(t, host.Engine("examples"), runnertest.Log(t))
				c.Sessions = host
				c.Agent = &ask.Config{Provider: asked}
				c.FetchAllow = []string{"127.0.0.1"}
				c.Metrics = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("Content-Type", "text/plain; version=0.0.4")
					_, _ = w.Write([]byte("notebox_running 0\n"))
				})
				if keyed {
					keys, err := NewKeys(key)
					require.NoError(t, err)
					c.Keys = keys
				}
			})
			doc := openapitest.Load(t, s.get("/openapi.json").body)
			service := openapitest.Service{URL: s.url, Header: http.Header{}}
			if keyed {
				service.Header.Set("X-API-Key", key)
			}
			service.Live = func(openapitest.Call) map[string]string {
				live := s.live(service.Header)
				live[exampleUpload] = origin.URL + "/sales.csv"
				return live
			}
			// Its calls belong together, and a GET has no end: the protocol's own suite sends them.
			doc.Paths.Delete(mcpPath)
			calls := openapitest.Calls(t, doc)
			sent := map[string]bool{}
			for _, call := range calls {
				sent[call.Operation.OperationID] = true
				t.Run(call.String(), func(t *testing.T) {
					answer := service.Send(t, call)
					if call.Path == "/v1/execute" {
						var reply replyJSON
						require.NoError(t, json.Unmarshal(answer.Body, &reply))
						require.Equal(t, "ok", reply.Status, "%s", answer.Body)
					}
				})
			}
			count := 0
			for _, item := range doc.Paths.Map() {
				count += len(item.Operations())
			}
			require.Len(t, sent, count)
		})
	}
}

// live makes what the examples name: a run that is kept, a link to its notebook, a kept file.
func (s *service) live(header http.Header) map[string]string {
	s.t.Helper()
	send := func(method, path, contentType, body string, headers ...string) answer {
		r := s.request(method, path, contentType, strings.NewReader(body))
		for name, values := range header {
			r.Header[name] = values
		}
		for i := 0; i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		return s.do(r)
	}
	accepted := send("POST", "/v1/execute", "text/plain", "print(1 + 1)", "Prefer", async)
	require.Equal(s.t, http.StatusAccepted, accepted.StatusCode, "%s", accepted.body)
	var run struct{ ID string }
	require.NoError(s.t, json.Unmarshal(accepted.body, &run))
	var reply replyJSON
	require.Eventually(s.t, func() bool {
		state := send("GET", "/v1/executions/"+run.ID, "", "")
		reply = replyJSON{}
		return state.StatusCode == http.StatusOK && json.Unmarshal(state.body, &reply) == nil && reply.Status == "ok"
	}, time.Minute, 10*time.Millisecond)
	link, err := url.Parse(reply.Notebook.URL)
	require.NoError(s.t, err)

	contentType, form := formBody(formPart{`name="files"; filename="in.csv"`, "a,b\n1,2\n"})
	uploaded := send("POST", "/v1/files", contentType, form)
	require.Equal(s.t, http.StatusCreated, uploaded.StatusCode, "%s", uploaded.body)
	var kept []executor.KeptInput
	require.NoError(s.t, json.Unmarshal(uploaded.body, &kept))

	opened := send("POST", "/v1/sessions", "application/json", `{"files": [{"name": "in.csv", "content": "YSxiCjEsMgo="}]}`)
	require.Equal(s.t, http.StatusCreated, opened.StatusCode, "%s", opened.body)
	var session struct{ ID string }
	require.NoError(s.t, json.Unmarshal(opened.body, &session))
	sandbox, download := s.liveSandbox(send)
	var shared share.Link
	require.NoError(s.t, json.Unmarshal(send("POST", sharePath(run.ID), "", "").body, &shared))
	page, err := url.Parse(shared.URL)
	require.NoError(s.t, err)
	return map[string]string{
		exampleSession: session.ID, exampleSandbox: sandbox, exampleCopy: download.Get("copy"),
		exampleSandboxExpires: download.Get("expires"), exampleSandboxSignature: download.Get("signature"),
		exampleKey: strings.TrimPrefix(link.Path, filesPrefix), exampleRun: run.ID, exampleFile: kept[0].ID,
		exampleShare: page.Query().Get("share"), exampleShareExpires: page.Query().Get("expires"), exampleShareSignature: page.Query().Get("signature"),
		exampleExpires: link.Query().Get("expires"), exampleSignature: link.Query().Get("signature"),
	}
}

// liveSandbox makes what the examples of the Dify tool name: a sandbox with files, and a
// link to one.
func (s *service) liveSandbox(send func(method, path, contentType, body string, headers ...string) answer) (id string, download url.Values) {
	s.t.Helper()
	call := func(name string, fields map[string]string, into any) {
		body, err := json.Marshal(fields)
		require.NoError(s.t, err)
		a := send("POST", "/"+name, "application/json", string(body))
		require.Equal(s.t, http.StatusOK, a.StatusCode, "%s", a.body)
		require.NoError(s.t, json.Unmarshal(a.body, into))
	}
	var created struct {
		ID string `json:"sandbox_id"`
	}
	call("create_sandbox", map[string]string{}, &created)
	var none struct{}
	for _, path := range []string{"total.csv", "sales.csv"} {
		call("write_file", map[string]string{"sandbox_id": created.ID, "remote_path": path, "content": "a,b\n1,2\n"}, &none)
	}
	var link struct {
		URL string `json:"download_url"`
	}
	call("download_file", map[string]string{"sandbox_id": created.ID, "remote_path": "total.csv"}, &link)
	at, err := url.Parse(link.URL)
	require.NoError(s.t, err)
	return created.ID, at.Query()
}
