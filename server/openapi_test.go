package server

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/stretchr/testify/require"

	"notebox/executor"
	"notebox/runner"
	"notebox/runner/pool"
)

func loadOpenAPI(t *testing.T, raw []byte) *openapi3.T {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromData(raw)
	require.NoError(t, err)
	require.NoError(t, doc.Validate(context.Background()))
	return doc
}

// namedPart is a part of a path as echo names it.
var namedPart = regexp.MustCompile(`:(\w+)`)

// documented is the path by which openapi.json describes a route's.
func documented(path string) string {
	rest := "{key}"
	if strings.HasPrefix(path, sessionsPath) {
		rest = "{path}"
	}
	return namedPart.ReplaceAllString(strings.ReplaceAll(path, "*", rest), "{$1}")
}

func TestOpenAPIDescribesEveryRoute(t *testing.T) {
	s := newService(t, func(c *Config) { c.PublicURL = "https://code.example.org/box" })
	a := s.get("/openapi.json")
	require.Equal(t, 200, a.StatusCode)
	require.Equal(t, "application/json", a.Header.Get("Content-Type"))
	doc := loadOpenAPI(t, a.body)
	require.True(t, doc.IsOpenAPI31OrLater())
	require.Len(t, doc.Servers, 1)
	require.Equal(t, "https://code.example.org/box", doc.Servers[0].URL)

	served := map[string]bool{}
	for _, r := range s.server.echo.Routes() {
		served[r.Method+" "+documented(r.Path)] = true
	}
	for path, item := range doc.Paths.Map() {
		for method := range item.Operations() {
			require.True(t, served[method+" "+path], "%s %s is described and not served", method, path)
			delete(served, method+" "+path)
		}
	}
	require.Empty(t, served, "served and not described")
}

// TestOpenAPIIsNotCopied for each of its readers: who reads slowly would hold the copy.
func TestOpenAPIIsNotCopied(t *testing.T) {
	const readers = 20
	s := newService(t, func(c *Config) { c.PublicURL = "https://code.example.org/box" })
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range readers {
		s.server.echo.ServeHTTP(unheeded{}, httptest.NewRequest(http.MethodGet, "/openapi.json", nil))
	}
	runtime.ReadMemStats(&after)
	require.Less(t, int(after.TotalAlloc-before.TotalAlloc)/readers, len(openAPI)/2)
}

// unheeded takes an answer that nobody reads.
type unheeded struct{}

func (unheeded) Header() http.Header         { return http.Header{} }
func (unheeded) Write(p []byte) (int, error) { return len(p), nil }
func (unheeded) WriteHeader(int)             {}

// TestAnswersAreAsDescribed sends requests and holds the answers, and those
// requests that are good, against the document.
func TestAnswersAreAsDescribed(t *testing.T) {
	s := newService(t, func(c *Config) {
		c.Pool = func() pool.Stats { return pool.Stats{Size: 2, Warm: 1, Starting: 1, Sandboxes: 2} }
	})
	doc := loadOpenAPI(t, s.get("/openapi.json").body)
	s.run = func(ctx context.Context, spec runner.Spec, events runner.Sink) (*runner.Outcome, error) {
		if sources(t, spec)[0] == "full" {
			return nil, &runner.Error{Code: runner.CodeFull, Message: "full"}
		}
		if sources(t, spec)[0] == "share" {
			return nil, &runner.Error{Code: runner.CodeShare, Message: "share"}
		}
		if sources(t, spec)[0] == "broken" {
			return nil, io.ErrUnexpectedEOF
		}
		require.NoError(t, events.File(ctx, "a/b.csv", strings.NewReader("1")))
		out := executed(spec, runner.StatusError, stdout("x"), raised("ValueError", "y"),
			`{"output_type":"display_data","metadata":{},"data":{"text/html":"<b>","image/png":"`+onePixel+`","application/json":[1]}}`,
			`{"output_type":"execute_result","execution_count":1,"metadata":{},"data":{"text/plain":"7"}}`)
		out.Skipped = []runner.Skipped{{Path: "/mnt/data/x", Reason: "y"}}
		return out, nil
	}
	link := strings.TrimPrefix(s.replied(s.postJSON(`{"code":"x"}`)).Notebook.URL, s.url)
	upload, uploadText := formBody(formPart{`name="files"; filename="a.csv"`, "1,2"}, formPart{`name="files"; filename="b"`, ""})
	var kept []executor.KeptInput
	require.NoError(t, json.Unmarshal(s.post("/v1/files", upload, uploadText).body, &kept))
	form, formText := formBody(formPart{`name="code"`, "x"}, formPart{`name="files"; filename="a"`, "y"})
	for _, c := range []struct {
		desc, method, path, contentType, body string
		status                                int
	}{
		{"JSON", "POST", "/v1/execute", "application/json", `{"code":"x","files":[{"name":"a","content":"YQ=="}],"env":{"A":"b"},"timeout":1,"session":null}`, 200},
		{"cells", "POST", "/v1/execute?images=url", "application/json", `{"cells":["x"],"code":null,"dependencies":[],"network":false,"stop_on_error":false,"language":"python"}`, 200},
		{"notebook", "POST", "/v1/execute", "application/json", `{"notebook":{"nbformat":4,"cells":[{"cell_type":"code","source":"x"}]}}`, 200},
		{"form", "POST", "/v1/execute", form, formText, 200},
		{"code", "POST", "/v1/execute", "text/x-python", "x", 200},
		{"malformed", "POST", "/v1/execute", "application/json", `{`, 400},
		{"unprocessable", "POST", "/v1/execute", "application/json", `{"code":"x","timeout":-1}`, 422},
		{"unsupported", "POST", "/v1/execute", "image/png", `x`, 415},
		{"too large", "POST", "/v1/execute", "text/plain", strings.Repeat("x", DefaultMaxBody+1), 413},
		{"full", "POST", "/v1/execute", "text/plain", "full", 503},
		{"share", "POST", "/v1/execute", "text/plain", "share", 429},
		{"broken", "POST", "/v1/execute", "text/plain", "broken", 500},
		{"kept file", "POST", "/v1/execute", "application/json", `{"code":"x","files":[{"name":"a","id":"` + kept[0].ID + `"}]}`, 200},
		{"unknown file", "POST", "/v1/execute", "application/json", `{"code":"x","files":[{"name":"a","id":"x"}]}`, 422},
		{"upload", "POST", "/v1/files", upload, uploadText, 201},
		{"bad upload", "POST", "/v1/files", upload, "x", 400},
		{"upload of no form", "POST", "/v1/files", "text/plain", "x", 415},
		{"delete", "DELETE", "/v1/files/" + kept[0].ID, "", "", 204},
		{"delete again", "DELETE", "/v1/files/" + kept[0].ID, "", "", 404},
		{"environments", "GET", "/v1/environments", "", "", 200},
		{"environments' head", "HEAD", "/v1/environments", "", "", 200},
		{"file", "GET", link, "", "", 200},
		{"forged file", "GET", link + "x", "", "", 403},
		{"no file", "GET", "/v1/files/..%2fx?expires=1&signature=x", "", "", 404},
		{"health", "GET", "/healthz", "", "", 200},
		{"readiness", "GET", "/readyz", "", "", 200},
		{"schema", "GET", "/openapi.json", "", "", 200},
	} {
		t.Run(c.desc, func(t *testing.T) {
			s.t = t
			a := s.do(s.request(c.method, c.path, c.contentType, strings.NewReader(c.body)))
			require.Equal(t, c.status, a.StatusCode, "%.500s", a.body)
			path, _, _ := strings.Cut(c.path, "?")
			if strings.HasPrefix(path, "/v1/files/") {
				path = "/v1/files/{key}"
			}
			item := doc.Paths.Value(path)
			op := item.GetOperation(c.method)
			require.NotNil(t, op.Responses.Status(c.status), "status %d is not described", c.status)
			input := &openapi3filter.RequestValidationInput{
				Request:    s.request(c.method, c.path, c.contentType, strings.NewReader(c.body)),
				PathParams: map[string]string{"key": "x"},
				Route:      &routers.Route{Spec: doc, Path: path, PathItem: item, Method: c.method, Operation: op},
				Options:    &openapi3filter.Options{IncludeResponseStatus: true, AuthenticationFunc: openapi3filter.NoopAuthenticationFunc},
			}
			if c.status == http.StatusOK && c.contentType == "application/json" {
				require.NoError(t, openapi3filter.ValidateRequest(context.Background(), input))
			}
			if path == "/v1/files/{key}" && c.status == http.StatusOK {
				return // any bytes
			}
			require.NoError(t, openapi3filter.ValidateResponse(context.Background(), &openapi3filter.ResponseValidationInput{
				RequestValidationInput: input, Status: a.StatusCode, Header: a.Header,
				Body: io.NopCloser(bytes.NewReader(a.body)), Options: input.Options,
			}), "%.2000s", a.body)
		})
	}
}

func TestOpenAPIRefusesWhatTheServiceRefuses(t *testing.T) {
	doc := loadOpenAPI(t, openAPI)
	schema := doc.Components.Schemas["Request"].Value
	for _, body := range []string{
		`{}`, `{"code":"x","cells":["y"]}`, `{"code":"x","unknown":1}`, `{"code":1}`, `{"code":"x","timeout":0}`,
		`{"code":"x","files":[{"name":"a"}]}`, `{"code":"x","files":[{"id":"a"}]}`, `{"code":"x","files":[{"name":"a","content":"","id":"x"}]}`, `{"code":"x","files":[{"name":"a","content":"","url":"http://x"}]}`,
		`{"code":"x","env":{"1":"x"}}`, `{"cells":[]}`, `{"code":""}`,
	} {
		var v any
		require.NoError(t, json.Unmarshal([]byte(body), &v))
		require.Error(t, schema.VisitJSON(v, openapi3.EnableJSONSchema2020()), body)
	}
}

// TestEventsAreAsDescribed holds the data of each event against its schema.
func TestEventsAreAsDescribed(t *testing.T) {
	s := newService(t)
	schemas := loadOpenAPI(t, openAPI).Components.Schemas
	s.run = func(ctx context.Context, spec runner.Spec, events runner.Sink) (*runner.Outcome, error) {
		for _, e := range []runner.Event{
			{Kind: runner.EventOutput, Output: []byte(stdout("10%"))},
			{Kind: runner.EventOutput, Output: []byte(stdout("\r20%"))},
			{Kind: runner.EventOutput, Output: []byte(picture("x"))},
			{Kind: runner.EventUpdate, Output: []byte(picture("x"))},
			{Kind: runner.EventOutput, Output: []byte(raised("ValueError", "y"))},
		} {
			events.Output(e)
		}
		require.NoError(t, events.File(ctx, "a/b.csv", strings.NewReader("1")))
		if sources(t, spec)[0] == "broken" {
			return nil, &runner.Error{Code: runner.CodeFull, Message: "full"}
		}
		return executed(spec, runner.StatusOK, stdout("x")), nil
	}
	for _, code := range []string{"good", "broken"} {
		r := s.stream(context.Background(), `{"code":"`+code+`"}`)
		r.want("started", nil)
		for e, ok := r.next(); ok; e, ok = r.next() {
			name := map[string]string{"output": "Output", "file": "File", "done": "Reply", "error": "Problem"}[e.name]
			require.NotEmpty(t, name, e.name)
			var data any
			require.NoError(t, json.Unmarshal([]byte(e.data), &data))
			require.NoError(t, schemas[name].Value.VisitJSON(data, openapi3.EnableJSONSchema2020()), e.data)
		}
	}
}
