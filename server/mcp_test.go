package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"notebox/runner"
)

// withHeader adds to every request of a client.
type withHeader struct{ name, value string }

func (h withHeader) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	if h.name != "" {
		r.Header.Set(h.name, h.value)
	}
	return http.DefaultTransport.RoundTrip(r)
}

// mcpClient is the official client, connected to the service.
func (s *service) mcpClient(key string, o *sdk.ClientOptions) *sdk.ClientSession {
	s.t.Helper()
	h := withHeader{}
	if key != "" {
		h = withHeader{"Authorization", "Bearer " + key}
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	session, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, o).Connect(ctx,
		&sdk.StreamableClientTransport{Endpoint: s.url + "/mcp", HTTPClient: &http.Client{Transport: h}}, nil)
	require.NoError(s.t, err)
	s.t.Cleanup(func() { _ = session.Close() })
	return session
}

func callMCP(t *testing.T, session *sdk.ClientSession, name string, arguments map[string]any) *sdk.CallToolResult {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	result, err := session.CallTool(ctx, &sdk.CallToolParams{Name: name, Arguments: arguments})
	require.NoError(t, err)
	return result
}

func decoded(t *testing.T, object string) (v map[string]any) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(object), &v))
	return v
}

func mcpJSON(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	require.NoError(t, err)
	return string(raw)
}

// mcpText is the first part of a result.
func mcpText(t *testing.T, r *sdk.CallToolResult) string {
	t.Helper()
	text, ok := r.Content[0].(*sdk.TextContent)
	require.True(t, ok, "%T", r.Content[0])
	return text.Text
}

func TestMCPListsTools(t *testing.T) {
	for _, c := range []struct {
		desc   string
		change []func(*Config)
		want   []string
	}{
		{"alone", nil, []string{"run_python", "run_r", "about"}},
		{"with sessions", []func(*Config){func(c *Config) { c.Sessions = newSessions(t) }},
			[]string{"run_python", "run_r", "about", "create_session", "close_session", "list_files", "read_file", "write_file"}},
	} {
		t.Run(c.desc, func(t *testing.T) {
			s := newService(t, c.change...)
			client := s.mcpClient("", nil)
			list, err := client.ListTools(context.Background(), nil)
			require.NoError(t, err)
			var names []string
			for _, tool := range list.Tools {
				names = append(names, tool.Name)
			}
			require.ElementsMatch(t, c.want, names)
			for _, name := range append(names, "execute_python") { // nothing names a tool that is not there
				require.Equal(t, slices.Contains(names, name), strings.Contains(client.InitializeResult().Instructions+mcpJSON(t, list), name), name)
			}
			told := mcpText(t, callMCP(t, client, "about", map[string]any{"language": "py"}))
			for _, part := range []string{"numpy, pandas", "No corpora.", "30 seconds", "up to 300", "Other languages, about which language asks: r"} {
				require.Contains(t, told, part)
			}
			require.Empty(t, s.started())
		})
	}
}

func TestMCPRunsCode(t *testing.T) {
	s := newService(t)
	s.run = func(ctx context.Context, spec runner.Spec, events runner.Sink) (*runner.Outcome, error) {
		if err := events.File(ctx, "out.csv", strings.NewReader("1")); err != nil {
			return nil, err
		}
		return executed(spec, runner.StatusOK, stdout("2\n"),
			`{"output_type":"display_data","metadata":{},"data":{"image/png":"`+onePixel+`","text/html":"<img src='data:image/png;base64,`+onePixel+`'>"}}`), nil
	}
	r := callMCP(t, s.mcpClient("", nil), "run_python", map[string]any{"code": "print(2)"})
	require.False(t, r.IsError)
	require.Len(t, r.Content, 4)
	require.Contains(t, mcpText(t, r), "2\n[image image_0.png: "+s.url)
	image, ok := r.Content[1].(*sdk.ImageContent)
	require.True(t, ok)
	require.Equal(t, "image/png", image.MIMEType)
	for i, name := range []string{"image_0.png", "out.csv"} {
		link, ok := r.Content[2+i].(*sdk.ResourceLink)
		require.True(t, ok)
		require.Equal(t, name, link.Name)
		require.Equal(t, 200, s.get(link.URI).StatusCode)
	}
	structured, err := json.Marshal(r.StructuredContent)
	require.NoError(t, err)
	require.Contains(t, string(structured), `"status":"ok"`)
	require.NotContains(t, string(structured), onePixel)
}

func TestMCPTellsOfFailures(t *testing.T) {
	s := newService(t)
	s.run = func(ctx context.Context, spec runner.Spec, events runner.Sink) (*runner.Outcome, error) {
		return executed(spec, runner.StatusError, raised("ValueError", "no")), nil
	}
	client := s.mcpClient("", nil)
	r := callMCP(t, client, "run_python", map[string]any{"code": "x"})
	require.True(t, r.IsError)
	require.Contains(t, mcpText(t, r), "ValueError: no")
	require.Contains(t, mcpText(t, r), "Hint: ")

	for _, c := range []struct{ arguments, want string }{
		{`{}`, "could not be read"}, {`{"code":""}`, "Call run_python again"}, {`{"code":"1","dependencies":[1]}`, "Call run_python again"},
		{`{"code":"","about":true}`, "ask the tool about"},
	} {
		r = callMCP(t, client, "run_python", decoded(t, c.arguments))
		require.True(t, r.IsError)
		require.Contains(t, mcpText(t, r), c.want)
		require.NotContains(t, mcpText(t, r), "execute_python")
	}
	r = callMCP(t, client, "run_python", map[string]any{"code": "x", "timeout": 1e9})
	require.True(t, r.IsError)
	require.Contains(t, mcpText(t, r), "timeout")
}

func TestMCPProgressAndCancellation(t *testing.T) {
	s := newService(t)
	cancelled := make(chan struct{})
	s.run = func(ctx context.Context, spec runner.Spec, events runner.Sink) (*runner.Outcome, error) {
		events.Output(runner.Event{Kind: runner.EventOutput, Output: []byte(stdout("half way\n"))})
		<-ctx.Done()
		close(cancelled)
		return &runner.Outcome{Status: runner.StatusCancelled}, nil
	}
	var told atomic.Int64
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	client := s.mcpClient("", &sdk.ClientOptions{ProgressNotificationHandler: func(_ context.Context, n *sdk.ProgressNotificationClientRequest) {
		if told.Add(1); strings.Contains(n.Params.Message, "half way") {
			cancel() // the client sends notifications/cancelled
		}
	}})
	params := &sdk.CallToolParams{Name: "run_python", Arguments: map[string]any{"code": "x"}}
	params.SetProgressToken("p")
	_, err := client.CallTool(ctx, params)
	require.ErrorIs(t, err, context.Canceled)
	select {
	case <-cancelled:
	case <-time.After(time.Minute):
		t.Fatal("the run was not cancelled")
	}
	require.Positive(t, told.Load())
}

func TestMCPSessions(t *testing.T) {
	s := newService(t, func(c *Config) { c.Sessions = newSessions(t) })
	client := s.mcpClient("", nil)
	r := callMCP(t, client, "create_session", map[string]any{})
	require.False(t, r.IsError, "%v", mcpText(t, r))
	id := r.StructuredContent.(map[string]any)["id"].(string)

	r = callMCP(t, client, "write_file", map[string]any{"session": id, "path": "a/b.txt", "content": "hällo"})
	require.False(t, r.IsError, "%v", mcpText(t, r))
	require.Equal(t, "hällo", mcpText(t, callMCP(t, client, "read_file", map[string]any{"session": id, "path": "/mnt/data/a/b.txt"})))
	require.Contains(t, mcpText(t, callMCP(t, client, "list_files", map[string]any{"session": id})), "/mnt/data/a/b.txt (file, 6 bytes)")

	r = callMCP(t, client, "create_session", map[string]any{"lang": "r"})
	require.True(t, r.IsError)
	require.Contains(t, mcpText(t, r), `unknown field "lang"`)
	r = callMCP(t, client, "list_files", map[string]any{"session": "x"})
	require.True(t, r.IsError)
	require.Contains(t, mcpText(t, r), "create_session")
	r = callMCP(t, client, "write_file", map[string]any{"session": id, "path": "b.bin", "content": "AAH/", "encoding": "base64"})
	require.False(t, r.IsError)
	r = callMCP(t, client, "read_file", map[string]any{"session": id, "path": "b.bin"})
	require.True(t, r.IsError)
	require.Contains(t, mcpText(t, r), "no text")
	for _, path := range []string{"../x", "a/../../x", "..", "missing", ""} {
		require.True(t, callMCP(t, client, "read_file", map[string]any{"session": id, "path": path}).IsError, path)
	}
	require.False(t, callMCP(t, client, "close_session", map[string]any{"session": id}).IsError)
	r = callMCP(t, client, "list_files", map[string]any{"session": id})
	require.True(t, r.IsError)
	require.Contains(t, mcpText(t, r), "create_session")
}

// initialize is the first message of an MCP session.
const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`

func (s *service) mcpRequest(method, body string, head map[string]string) answer {
	s.t.Helper()
	req := s.request(method, "/mcp", "application/json", strings.NewReader(body))
	req.Header.Set("Accept", "application/json, text/event-stream")
	for name, value := range head {
		req.Header.Set(name, value)
	}
	return s.do(req)
}

func TestMCPIsGuarded(t *testing.T) {
	s := newService(t)
	for _, head := range []map[string]string{
		{"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"}, {"Origin": "null"},
	} {
		require.Equal(t, http.StatusForbidden, s.mcpRequest("POST", initialize, head).StatusCode, "%v", head)
	}
	rebound := s.request("POST", "/mcp", "application/json", strings.NewReader(initialize))
	rebound.Host = "evil.example"
	require.Equal(t, http.StatusForbidden, s.do(rebound).StatusCode)
	require.Equal(t, http.StatusOK, s.mcpRequest("POST", initialize, map[string]string{"Origin": s.url}).StatusCode)
}

func TestMCPSessionsBelongToTheirKey(t *testing.T) {
	keys, err := NewKeys("first-key-first-key", "second-key-second-key")
	require.NoError(t, err)
	s := newService(t, func(c *Config) { c.Keys = keys })
	require.Equal(t, http.StatusUnauthorized, s.mcpRequest("POST", initialize, nil).StatusCode)
	first, second := map[string]string{"Authorization": "Bearer first-key-first-key"}, map[string]string{"X-API-Key": "second-key-second-key"}
	for origin, status := range map[string]int{"https://evil.example": 403, "null": 403, s.url: 200, strings.Replace(s.url, "http:", "https:", 1): 200} {
		r := s.mcpRequest("POST", initialize, map[string]string{"Authorization": "Bearer first-key-first-key", "Origin": origin})
		require.Equal(t, status, r.StatusCode, origin)
	}
	began := s.mcpRequest("POST", initialize, first)
	require.Equal(t, http.StatusOK, began.StatusCode, "%s", began.body)
	id := began.Header.Get("Mcp-Session-Id")
	require.NotEmpty(t, id)
	const ping = `{"jsonrpc":"2.0","id":2,"method":"ping"}`
	first["Mcp-Session-Id"], second["Mcp-Session-Id"] = id, id
	require.Equal(t, http.StatusOK, s.mcpRequest("POST", ping, first).StatusCode)
	require.Equal(t, http.StatusNotFound, s.mcpRequest("POST", ping, second).StatusCode)
	require.Equal(t, http.StatusNotFound, s.mcpRequest("DELETE", "", second).StatusCode)
	require.Equal(t, http.StatusUnauthorized, s.mcpRequest("POST", ping, map[string]string{"Mcp-Session-Id": id}).StatusCode)
	require.Equal(t, http.StatusNoContent, s.mcpRequest("DELETE", "", first).StatusCode)
	require.Equal(t, http.StatusNotFound, s.mcpRequest("POST", ping, first).StatusCode)
	r := callMCP(t, s.mcpClient("second-key-second-key", nil), "run_python", map[string]any{"code": "x"})
	require.False(t, r.IsError)
	require.NotEmpty(t, s.only().Owner, "the run is its caller's")
}

func TestMCPSessionsAreBounded(t *testing.T) {
	s := newService(t)
	last := 0
	for range 101 {
		last = s.mcpRequest("POST", initialize, nil).StatusCode
	}
	require.Equal(t, http.StatusTooManyRequests, last)
}

// TestMCPMessagesAreBounded: what a session keeps of its client, and what is sent back with each
// word of progress, is small; arguments of a tool may be large.
func TestMCPMessagesAreBounded(t *testing.T) {
	s := newService(t)
	long := strings.Repeat("x", 100<<10)
	head := map[string]string{"Mcp-Session-Id": s.mcpRequest("POST", initialize, nil).Header.Get("Mcp-Session-Id")}
	call := func(id, arguments, params string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":"%s","method":"tools/call","params":{"name":"run_python","arguments":{"code":"%s"}%s}}`, id, arguments, params)
	}
	for desc, body := range map[string]string{
		"client":          strings.Replace(initialize, `"clientInfo":{`, `"clientInfo":{"title":"`+long+`",`, 1),
		"token":           call("1", "x", `,"_meta":{"progressToken":"`+long+`"}`),
		"id":              call(long, "x", ""),
		"arguments twice": call("1", long, `,"arguments":{"code":"x"}`),
		"in a batch":      "[" + call("1", "x", "") + "," + call(long, "x", "") + "]",
		"code":            call("1", strings.Repeat(long, 12), ""),
		"no JSON":         call("1", "x", "") + long,
	} {
		r := s.mcpRequest("POST", body, head)
		require.Equal(t, http.StatusRequestEntityTooLarge, r.StatusCode, "%s: %s", desc, r.body)
	}
	require.Equal(t, http.StatusOK, s.mcpRequest("POST", call("1", long, ""), head).StatusCode)
	require.Equal(t, []string{long}, sources(t, s.only()))
}

// TestMCPLogsNothingOfCallers: what clients send is in no log, and no error of theirs is one of
// the service's.
func TestMCPLogsNothingOfCallers(t *testing.T) {
	s := newService(t)
	for _, call := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"CANARY"}}`,
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"CANARY","arguments":{}}}`,
		`{"jsonrpc":"2.0","id":3,"method":"resources/subscribe","params":{"uri":"file:///CANARY"}}`,
		`{"jsonrpc":"2.0","id":4,"method":"CANARY"}`,
	} {
		r := s.mcpRequest("POST", call, nil)
		require.NotEqual(t, http.StatusNotFound, r.StatusCode, "%s", r.body)
	}
	require.NotContains(t, s.logged.String(), "CANARY")
	require.NotContains(t, s.logged.String(), "level=ERROR")
}

// TestMCPRunsAreGuarded: a run of MCP has the guards of a request: a panic is its failure, its
// code has a bound, and its links have the host that its own call came to.
func TestMCPRunsAreGuarded(t *testing.T) {
	var panics atomic.Bool
	s := newService(t, func(c *Config) {
		c.MaxBody = 1000
		c.Available = func(string) bool {
			if panics.Load() {
				panic("an environment")
			}
			return true
		}
	})
	s.produceAll("out.csv")
	head := map[string]string{}
	head["Mcp-Session-Id"] = s.mcpRequest("POST", initialize, nil).Header.Get("Mcp-Session-Id")
	call := func(code string) string {
		return string(s.mcpRequest("POST", `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"run_python","arguments":{"code":"`+code+`"}}}`, head).body)
	}
	require.Contains(t, call(strings.Repeat("x", 2000)), "code: is larger than 1000 bytes")
	own := call("x")
	require.Contains(t, own, s.url+"/v1/files/")
	req := s.request("POST", "/mcp", "application/json", strings.NewReader(`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"run_python","arguments":{"code":"x"}}}`))
	req.Host = strings.Replace(strings.TrimPrefix(s.url, "http://"), "127.0.0.1", "localhost", 1)
	req.Header.Set("Accept", "application/json, text/event-stream")
	req.Header.Set("Mcp-Session-Id", head["Mcp-Session-Id"])
	require.Contains(t, string(s.do(req).body), "http://"+req.Host+"/v1/files/")
	panics.Store(true)
	require.Contains(t, call("x"), "the service failed")
}
