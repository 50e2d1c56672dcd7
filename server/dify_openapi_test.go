package server

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/stretchr/testify/require"

	"notebox/access"
	"notebox/runner"
	"notebox/runner/runnertest"
	"notebox/server/dify"
)

// difyDocument is what the service serves for Dify, found valid.
func (s *difyService) difyDocument() *openapi3.T {
	s.t.Helper()
	a := s.get("/dify/openapi.json")
	require.Equal(s.t, http.StatusOK, a.StatusCode)
	require.Equal(s.t, "application/json", a.Header.Get("Content-Type"))
	doc := loadOpenAPI(s.t, a.body)
	require.True(s.t, doc.IsOpenAPI31OrLater())
	return doc
}

// requireDescribed checks an answer to a call against the document.
func requireDescribed(t *testing.T, doc *openapi3.T, call dify.Call, req *http.Request, a answer) {
	t.Helper()
	item := doc.Paths.Value(call.Path())
	require.NotNil(t, item.Post.Responses.Status(a.StatusCode), "status %d is not described", a.StatusCode)
	input := &openapi3filter.RequestValidationInput{
		Request: req,
		Route:   &routers.Route{Spec: doc, Path: call.Path(), PathItem: item, Method: http.MethodPost, Operation: item.Post},
		Options: &openapi3filter.Options{IncludeResponseStatus: true, AuthenticationFunc: openapi3filter.NoopAuthenticationFunc},
	}
	if a.StatusCode == http.StatusOK {
		require.NoError(t, openapi3filter.ValidateRequest(context.Background(), input))
	}
	require.NoError(t, openapi3filter.ValidateResponse(context.Background(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: input, Status: a.StatusCode, Header: a.Header,
		Body: io.NopCloser(bytes.NewReader(a.body)), Options: input.Options,
	}), "%.2000s", a.body)
}

// described sends a call whose answer must be as described.
func (s *difyService) described(doc *openapi3.T, call dify.Call, body string, status int, headers ...string) answer {
	s.t.Helper()
	request := func() *http.Request {
		req := s.request(http.MethodPost, call.Path(), "application/json", strings.NewReader(body))
		for i := 0; i < len(headers); i += 2 {
			req.Header.Set(headers[i], headers[i+1])
		}
		return req
	}
	a := s.do(request())
	require.Equal(s.t, status, a.StatusCode, "%s: %s", call.Name, a.body)
	requireDescribed(s.t, doc, call, request(), a)
	return a
}

// TestDifyExamplesAreRun sends each operation's example, in the order of the document's
// workflow, and holds the answers against their schemas.
func TestDifyExamplesAreRun(t *testing.T) {
	source := newOrigin(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "name,amount\npears,3\n") })
	s := newDify(t, func(c *Config) { c.PublicURL = "https://code.example.org/box" })
	doc := s.difyDocument()
	require.Len(t, doc.Servers, 1)
	require.Equal(t, "https://code.example.org/box", doc.Servers[0].URL)
	s.sessions.On("total = sum(range(10))\ntotal", func(k *runnertest.Kernel) {
		k.Output(map[string]any{"output_type": "execute_result", "execution_count": 1, "metadata": map[string]any{}, "data": map[string]any{"text/plain": "45"}})
	})
	id := ""
	for _, call := range dify.Calls() {
		media := doc.Paths.Value(call.Path()).Post.RequestBody.Value.Content["application/json"]
		fields := map[string]string{}
		for name, value := range media.Example.(map[string]any) {
			fields[name] = value.(string)
		}
		if fields["sandbox_id"] != "" {
			fields["sandbox_id"] = id
		}
		if fields["file_url"] != "" {
			fields["file_url"] = "http://127.0.0.1:" + source.port() + "/sales.csv"
		}
		body, err := json.Marshal(fields)
		require.NoError(t, err)
		a := s.described(doc, call, string(body), http.StatusOK)
		var got, example map[string]any
		require.NoError(t, json.Unmarshal(a.body, &got))
		example = doc.Paths.Value(call.Path()).Post.Responses.Status(200).Value.Content["application/json"].Example.(map[string]any)
		for name := range example {
			require.Contains(t, got, name, "%s: its example shows a field that is not there", call.Name)
		}
		if call.Name == "create_sandbox" {
			id = got["sandbox_id"].(string)
		}
	}
}

// TestDifyErrorsAreAsDescribed brings about each status that the document has.
func TestDifyErrorsAreAsDescribed(t *testing.T) { synctest.Test(t, testDifyErrors) }

func testDifyErrors(t *testing.T) {
	s := newDify(t, withLines(t, access.Options{}, "free", named("bounded", "bounded", "sessions=1"), named("other", "other", "environments=r")),
		func(c *Config) { c.MaxBody = 1000 }, inMemory)
	var slow atomic.Bool
	s.sessions.OnStart = func(ctx context.Context, _ runner.Environment) error {
		if slow.Load() {
			<-ctx.Done()
		}
		return ctx.Err()
	}
	doc := s.difyDocument()
	key := func(key string) []string { return []string{"X-API-Key", key} }
	calls := map[string]dify.Call{}
	for _, call := range dify.Calls() {
		calls[call.Name] = call
		if call.Name != "create_sandbox" {
			s.described(doc, call, `{}`, 422, key("free")...)
		}
		s.described(doc, call, `{`, 422, key("free")...)
		s.described(doc, call, `{}`, 401)
		s.described(doc, call, `{"conversation_id":"`+strings.Repeat("x", 1000)+`"}`, 413, key("free")...)
		if call.Name != "create_sandbox" && call.Name != "stop_sandbox" {
			s.described(doc, call, `{"sandbox_id":"x","code":"x","command":"x","content":"x","remote_path":"x","file_url":"x","remote_filename":"x"}`, 404, key("free")...)
		}
	}
	s.described(doc, calls["stop_sandbox"], `{"sandbox_id":"x"}`, 200, key("free")...)
	s.described(doc, calls["create_sandbox"], `{}`, 403, key("other")...)
	s.described(doc, calls["create_sandbox"], `{}`, 200, key("bounded")...)
	s.described(doc, calls["create_sandbox"], `{}`, 429, key("bounded")...)
	slow.Store(true)
	s.described(doc, calls["create_sandbox"], `{}`, 503, key("free")...)
	slow.Store(false)
	s.sessions.onOpen = func(context.Context, runner.SessionSpec) error { return io.ErrUnexpectedEOF }
	s.described(doc, calls["create_sandbox"], `{}`, 500, key("free")...)
	s.sessions.onOpen = nil
	id := s.create("", key("free")...)
	s.sessions.On("kill", func(k *runnertest.Kernel) { k.Die(runner.StatusKilled) })
	for source, status := range map[string]int{"1/0": 200, "plot": 200, "loop": 200, "kill": 200} {
		s.described(doc, calls["run_code"], `{"sandbox_id":"`+id+`","code":"`+source+`"}`, status, key("free")...)
	}
}
