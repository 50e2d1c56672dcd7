package server

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/stretchr/testify/require"

	"notebox/runner"
)

// toolCallAnswer is the answer of POST /v1/tools/call as a caller reads it.
type toolCallAnswer struct {
	Message  map[string]any
	Notation string
	Ran      bool
	Language string
	Code     string
	Result   *replyJSON
}

func (s *service) callTool(body string) toolCallAnswer {
	s.t.Helper()
	a := s.post("/v1/tools/call", "application/json", body)
	require.Equal(s.t, http.StatusOK, a.StatusCode, "%s", a.body)
	var out toolCallAnswer
	require.NoError(s.t, json.Unmarshal(a.body, &out))
	return out
}

func TestToolsAreListed(t *testing.T) {
	s := newService(t)
	var all struct {
		Name  string
		Tools map[string][]map[string]any
	}
	require.NoError(t, json.Unmarshal(s.get("/v1/tools").body, &all))
	require.Equal(t, "execute_python", all.Name)
	require.Len(t, all.Tools, 4)
	description := all.Tools["anthropic"][0]["description"].(string)
	for _, part := range []string{"numpy, pandas", "about: true", "Nothing is kept", "no network"} {
		require.Contains(t, description, part)
	}
	var one struct {
		Tools map[string][]map[string]any
	}
	require.NoError(t, json.Unmarshal(s.get("/v1/tools?notation=responses&session=true").body, &one))
	require.Len(t, one.Tools, 1)
	require.Contains(t, one.Tools["responses"][0]["description"], "Variables, imports and files stay")

	s.requireProblem(s.get("/v1/tools?notation=x"), 422, "notation")
	s.requireProblem(s.get("/v1/tools?x=1"), 400, "no parameter")
	s.requireProblem(s.get("/v1/tools?session=maybe"), 400, "session")
}

// TestToolCalls runs a call in each notation.
func TestToolCalls(t *testing.T) {
	s := newService(t)
	s.run = func(ctx context.Context, spec runner.Spec, events runner.Sink) (*runner.Outcome, error) {
		return executed(spec, runner.StatusOK, stdout("2\n"),
			`{"output_type":"display_data","metadata":{},"data":{"image/png":"`+onePixel+`"}}`), nil
	}
	for _, c := range []struct{ notation, call, in string }{
		{"chat_completions", `{"id":"call_1","type":"function","function":{"name":"execute_python","arguments":"{\"code\":\"print(2)\"}"}}`, `"tool_call_id":"call_1"`},
		{"responses", `{"type":"function_call","call_id":"call_1","name":"execute_python","arguments":"{\"code\":\"print(2)\"}"}`, `"image_url":"data:image/png;base64,` + onePixel},
		{"anthropic", `{"type":"tool_use","id":"call_1","name":"execute_python","input":{"code":"print(2)"}}`, `"data":"` + onePixel},
		{"gemini", `{"functionCall":{"name":"execute_python","args":{"code":"print(2)"}}}`, `"inlineData":{`},
	} {
		t.Run(c.notation, func(t *testing.T) {
			s.t = t
			a := s.callTool(`{"images":"parts","call":` + c.call + `}`)
			require.Equal(t, c.notation, a.Notation)
			require.True(t, a.Ran)
			require.Equal(t, "print(2)", a.Code)
			raw, err := json.Marshal(a.Message)
			require.NoError(t, err)
			require.Contains(t, string(raw), c.in)
			require.Contains(t, string(raw), "2\\n[image image_0.png: "+s.url)
			require.Equal(t, "ok", a.Result.Status)
			require.NotContains(t, a.Result.Images[0], "data")

			require.NotContains(t, fmt.Sprint(s.callTool(`{"call":`+c.call+`}`).Message), onePixel, "images are URLs by default")
		})
	}
	spec := s.started()[0]
	require.Equal(t, []string{"print(2)"}, sources(t, spec))
}

func TestToolCallIsAsTheApplicationWants(t *testing.T) {
	s := newService(t)
	s.run = func(ctx context.Context, spec runner.Spec, events runner.Sink) (*runner.Outcome, error) {
		in, err := readInputs(spec)
		require.NoError(t, err)
		require.Equal(t, map[string]string{"a.csv": "1,2"}, in)
		return executed(spec, runner.StatusError, stdout(strings.Repeat("row\n", 5000)), raised("ValueError", "no")), nil
	}
	a := s.callTool(`{"call":{"name":"python","arguments":{"code":"x","timeout":20}},"timeout":10,"budget":200,"notation":"anthropic",
		"files":[{"name":"a.csv","content":"MSwy"}],"env":{"A":"b"}}`)
	require.Equal(t, 10*time.Second, s.only().Limits.Timeout)
	require.Equal(t, map[string]string{"A": "b"}, s.only().Env)
	require.Equal(t, true, a.Message["is_error"])
	text := fmt.Sprint(a.Message)
	require.Less(t, len(text), 1500)
	require.Contains(t, text, "characters left out")
	require.Contains(t, text, "ValueError: no")
	require.Contains(t, text, "Hint: ")
}

func TestToolCallsThatTheApplicationGotWrong(t *testing.T) {
	s := newService(t)
	for _, c := range []struct {
		desc, body string
		status     int
		detail     string
	}{
		{"no call", `{}`, 400, "call"},
		{"null", `{"call":null}`, 400, "call"},
		{"no JSON", `{"call":`, 400, "JSON"},
		{"empty", ``, 400, "empty"},
		{"an unknown field", `{"call":{},"code":"x"}`, 400, "code"},
		{"an unknown notation", `{"call":{},"notation":"x"}`, 422, "notation"},
		{"a small budget", `{"call":{},"budget":1}`, 422, "budget"},
		{"half a token", `{"call":{},"budget":100.5}`, 422, "budget"},
		{"images", `{"call":{},"images":"x"}`, 422, "images"},
		{"a timeout", `{"call":{"code":"x"},"timeout":1e9}`, 422, "timeout"},
		{"a file", `{"call":{"code":"x"},"files":[{"name":"../a","content":""}]}`, 400, "files[0]"},
		{"network", `{"call":{"code":"x"},"network":true}`, 403, ""},
		{"half a character elsewhere", `{"call":"\ud800","env":{"A":"\ud800"}}`, 400, ""},
	} {
		t.Run(c.desc, func(t *testing.T) {
			s.t = t
			s.requireProblem(s.post("/v1/tools/call", "application/json", c.body), c.status, c.detail)
		})
	}
	s.requireProblem(s.post("/v1/tools/call", "text/plain", "x"), 415, "application/json")
	s.requireProblem(s.post("/v1/tools/call?x=1", "application/json", "{}"), 400, "parameter")
}

func TestToolCallsWhenTheServiceIsFull(t *testing.T) {
	s := newService(t)
	s.run = func(ctx context.Context, spec runner.Spec, events runner.Sink) (*runner.Outcome, error) {
		return nil, &runner.Error{Code: runner.CodeFull, Message: "full"}
	}
	a := s.post("/v1/tools/call", "application/json", `{"call":{"code":"x"}}`)
	require.Equal(t, http.StatusServiceUnavailable, a.StatusCode)
	require.NotEmpty(t, a.Header.Get("Retry-After"))
}

// TestToolAnswersAreAsDescribed holds calls and answers against openapi.json.
func TestToolAnswersAreAsDescribed(t *testing.T) {
	s := newService(t)
	doc := loadOpenAPI(t, s.get("/openapi.json").body)
	check := func(method, path, body string) {
		a := s.do(s.request(method, path, "application/json", strings.NewReader(body)))
		require.Equal(t, 200, a.StatusCode, "%s", a.body)
		item := doc.Paths.Value(path)
		input := &openapi3filter.RequestValidationInput{
			Request: s.request(method, path, "application/json", strings.NewReader(body)),
			Route:   &routers.Route{Spec: doc, Path: path, PathItem: item, Method: method, Operation: item.GetOperation(method)},
			Options: &openapi3filter.Options{IncludeResponseStatus: true, AuthenticationFunc: openapi3filter.NoopAuthenticationFunc},
		}
		require.NoError(t, openapi3filter.ValidateRequest(context.Background(), input))
		require.NoError(t, openapi3filter.ValidateResponse(context.Background(), &openapi3filter.ResponseValidationInput{
			RequestValidationInput: input, Status: 200, Header: a.Header, Body: io.NopCloser(strings.NewReader(string(a.body))), Options: input.Options,
		}), "%.1000s", a.body)
	}
	check("GET", "/v1/tools", "")
	check("POST", "/v1/tools/call", `{"call":{"code":"x"},"budget":500,"session":null}`)
	check("POST", "/v1/tools/call", `{"call":7}`)
	for name, example := range doc.Paths.Value("/v1/tools/call").Post.RequestBody.Value.Content["application/json"].Examples {
		raw, err := json.Marshal(example.Value.Value)
		require.NoError(t, err)
		t.Log(name)
		check("POST", "/v1/tools/call", string(raw))
	}
}

// TestToolsKnowAllLanguages: those that are installed, and no others.
func TestToolsKnowAllLanguages(t *testing.T) {
	f := calculating(t)
	s := withSessions(t, f, withShell, func(c *Config) { c.Available = func(name string) bool { return name != "r" } })
	require.Contains(t, string(s.get("/v1/tools?notation=anthropic").body), `"enum":["python","bash"]`)
	require.NotContains(t, string(s.get("/v1/tools?notation=anthropic&session=true").body), "enum")
	require.Contains(t, string(s.get("/v1/tools?notation=anthropic&session=true&language=sh").body), "Runs Bash code")
	s.requireProblem(s.get("/v1/tools?language=r"), 503, "the image of r is not installed")
	s.requireProblem(s.get("/v1/tools?language=x"), 422, "language")

	a := s.callTool(`{"call":{"code":"ls","language":"sh"}}`)
	require.Equal(t, "bash", a.Language)
	require.Equal(t, "bash", s.only().Environment.Name)
	require.Equal(t, "bash", s.callTool(`{"call":{"code":"ls"},"language":"bash"}`).Language)
	require.Equal(t, "python", s.callTool(`{"call":{"code":"ls","language":"py"},"language":"bash"}`).Language)
	a = s.callTool(`{"call":{"code":"ls","language":"r"}}`)
	require.False(t, a.Ran)
	require.Contains(t, fmt.Sprint(a.Message), "its language is \"r\", and this tool runs python, bash")

	id := s.open(`{}`).ID
	a = s.callTool(`{"session":"` + id + `","call":{"code":"echo hi","language":"bash"}}`)
	require.Equal(t, "bash", a.Language)
	require.Equal(t, "hi\n", a.Result.Text, "a command beside the kernel")
	require.Equal(t, "python", s.callTool(`{"session":"`+id+`","call":{"code":"x = 1"}}`).Language)
	shell := s.open(`{"language":"bash"}`).ID
	require.Equal(t, "bash", s.callTool(`{"session":"`+shell+`","call":{"code":"x = 1"}}`).Language)
	a = s.callTool(`{"session":"` + shell + `","call":{"code":"x = 1","language":"python"}}`)
	require.False(t, a.Ran)
	require.Contains(t, fmt.Sprint(a.Message), "its language is \"python\", and this session runs bash")
}

// TestToolCallsAboutTheTool: a model may ask for what the description leaves out, in each
// notation; nothing is run.
func TestToolCallsAboutTheTool(t *testing.T) {
	s := newService(t)
	for _, c := range []struct{ desc, call, notation, in string }{
		{"chat_completions", `{"id":"call_1","type":"function","function":{"name":"execute_python","arguments":"{\"code\":\"\",\"about\":true}"}}`, "chat_completions", `"tool_call_id":"call_1"`},
		{"responses, without code", `{"type":"function_call","call_id":"call_1","name":"execute_python","arguments":"{\"about\":true}"}`, "responses", `"type":"function_call_output"`},
		{"anthropic, with code", `{"type":"tool_use","id":"call_1","name":"execute_python","input":{"code":"print(2)","about":true}}`, "anthropic", `"type":"tool_result"`},
		{"gemini, as text", `{"functionCall":{"name":"execute_python","args":{"code":"","about":"true","language":"py"}}}`, "gemini", `"response":{"output":`},
	} {
		t.Run(c.desc, func(t *testing.T) {
			s.t = t
			a := s.callTool(`{"call":` + c.call + `}`)
			require.Equal(t, c.notation, a.Notation)
			require.False(t, a.Ran)
			require.Nil(t, a.Result)
			raw, err := json.Marshal(a.Message)
			require.NoError(t, err)
			for _, part := range []string{c.in, "Nothing was run.", "numpy, pandas", "No corpora.", "30 seconds", "up to 300", "Other languages, about which language asks: r."} {
				require.Contains(t, string(raw), part)
			}
		})
	}
	require.Contains(t, fmt.Sprint(s.callTool(`{"call":{"about":true,"language":"r"}}`).Message), "What there is to know of R here")
	require.Contains(t, fmt.Sprint(s.callTool(`{"call":{"about":true,"language":"x"}}`).Message), "this tool runs python, r")
	require.Empty(t, s.started())
	s.callTool(`{"call":{"code":"1","about":"what this is for"}}`)
	require.Equal(t, []string{"1"}, sources(t, s.only()), "another word is not the question")
}
