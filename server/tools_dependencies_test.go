package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"notebox/agent/agenttest"
	"notebox/dependencies"
	"notebox/environments"
	"notebox/executor"
	"notebox/runner"
	"notebox/runner/runnertest"
	"notebox/server/ask"
)

// withAllPackages has bash install, too.
func withAllPackages(f *fakePackages) func(*Config) {
	return func(c *Config) {
		withPackages(f)(c)
		withShell(c)
		c.Environments[2].Dependencies = &environments.Dependencies{Notation: "apt", Installer: "/i.py"}
	}
}

func TestToolCallsWithPackages(t *testing.T) {
	f := &fakePackages{}
	s := newService(t, withAllPackages(f))
	for _, c := range []struct {
		desc, call string
		want       []string
	}{
		{"a list", `{"name":"python","arguments":{"code":"x","dependencies":["Polars == 1.*"]}}`, []string{"polars==1.*"}},
		{"as models write them", `{"name":"python","arguments":"{\"code\":\"print(\"a\")\",\"packages\":[\"six\"]}"}`, []string{"six"}},
		{"of another language", `{"code":"jq","language":"sh","dependencies":"jq yq"}`, []string{"jq", "yq"}},
		{"none", `{"code":"x","dependencies":[]}`, nil},
	} {
		t.Run(c.desc, func(t *testing.T) {
			s.t, f.asked = t, nil
			a := s.post("/v1/tools/call", "application/json", `{"call":`+c.call+`}`)
			s.asDescribed("POST", "/v1/tools/call", a)
			var out struct {
				Ran          bool
				Dependencies []string
				Result       struct{ Install *executor.Install }
			}
			require.NoError(t, json.Unmarshal(a.body, &out))
			require.True(t, out.Ran, "%s", a.body)
			require.Len(t, out.Dependencies, len(c.want))
			require.Equal(t, c.want != nil, out.Result.Install != nil)
			if c.want != nil {
				require.Equal(t, c.want, f.asked[0].Set.Entries)
			}
		})
	}
}

// TestToolCallsWithPackagesThatCannotBe: the model is told, in words that it can act on.
func TestToolCallsWithPackagesThatCannotBe(t *testing.T) {
	away := &runner.Error{Code: runner.CodeUnavailable, Message: "dependencies: the package registry cannot be reached", RetryAfter: 5 * time.Second}
	only := dependencies.Policy{Allow: []string{"polars"}}
	for _, c := range []struct {
		desc, arguments string
		packages        *fakePackages // nil: the operator allows none
		ran             bool
		want            string
	}{
		{"an option", `{"code":"x","dependencies":["six","-r x"]}`, &fakePackages{}, false, "dependencies[1]: is not a package's name with versions, such as polars"},
		{"not allowed", `{"code":"x","dependencies":["six"]}`, &fakePackages{policy: only}, false, "does not allow six; allowed are: polars"},
		{"none allowed", `{"code":"x","dependencies":["six"]}`, nil, false, "this service's operator allows none"},
		{"a language without", `{"code":"x","language":"r","dependencies":["six"]}`, &fakePackages{}, false, "dependencies: are not supported for r"},
		{"no list", `{"code":"x","dependencies":{"six":"*"}}`, &fakePackages{}, false, "its dependencies are no list of strings"},
		{"the registry is away", `{"code":"x","dependencies":["six"]}`, &fakePackages{fail: away}, false, "the package registry cannot be reached. Nothing was run. Call execute_python again without dependencies"},
		{"no such package", `{"code":"x","dependencies":["six"]}`,
			&fakePackages{say: []string{"Collecting six\n"}, fail: &dependencies.Failure{Name: dependencies.Unresolvable, Message: "No matching distribution found for six"}}, true,
			"its packages could not be installed, and no code was run.]\nCollecting six\nUnresolvable: No matching distribution found for six\nHint: The packages in dependencies cannot be had together"},
	} {
		t.Run(c.desc, func(t *testing.T) {
			s := newService(t, withPackages(c.packages), func(cfg *Config) {
				if c.packages == nil {
					cfg.Dependencies = nil
				}
			})
			a := s.callTool(`{"call":{"name":"execute_python","arguments":` + c.arguments + `},"notation":"anthropic"}`)
			require.Equal(t, c.ran, a.Ran)
			require.Equal(t, true, a.Message["is_error"])
			require.Contains(t, fmt.Sprint(a.Message), c.want)
			require.Empty(t, s.started())
			s.requireNoFiles()
		})
	}
	t.Run("a full service is the application's", func(t *testing.T) {
		s := newService(t, withPackages(&fakePackages{fail: &runner.Error{Code: runner.CodeFull, Message: "full", RetryAfter: time.Second}}))
		s.requireProblem(s.post("/v1/tools/call", "application/json", `{"call":{"code":"x","dependencies":["six"]}}`), 503, "full")
	})
}

func TestToolsSayWhatCanBeInstalled(t *testing.T) {
	s := newService(t, withAllPackages(&fakePackages{policy: dependencies.Policy{Allow: []string{"polars", "jq"}}}))
	all := string(s.get("/v1/tools?notation=anthropic").body)
	require.Contains(t, all, "Packages can be installed: name them in dependencies.")
	told := func(language string) string {
		return fmt.Sprint(s.callTool(`{"call":{"code":"","about":true,"language":"` + language + `"}}`).Message)
	}
	require.Contains(t, told("python"), "numpy, pandas.\n- More can be installed, of these packages alone: polars, jq. Name them in dependencies, as pip does.")
	require.Contains(t, told("r"), "R here:\n- Nothing more can be installed.")
	require.Contains(t, all, "the code itself can download nothing")
	require.Contains(t, all, `"dependencies":{`)
	for _, query := range []string{"session=true", "language=r"} {
		one := string(s.get("/v1/tools?notation=anthropic&" + query).body)
		require.Contains(t, one, "nothing can be downloaded or installed")
		require.NotContains(t, one, "dependencies")
	}
}

// TestHintsOfEachWay has code want a package that is not there.
func TestHintsOfEachWay(t *testing.T) {
	const (
		name    = "The module polars is not installed: name the package that has it in dependencies, as pip does, or use what is there"
		session = "The module polars is not installed, and the packages of a session are chosen when it is opened: use what is there"
		nothing = "The module polars is not installed, and without a network nothing can be: use what is there"
	)
	f := newSessions(t)
	f.On("import polars", func(k *runnertest.Kernel) { k.Raise("ModuleNotFoundError", "No module named 'polars'") })
	install := &fakePackages{}
	model := agenttest.Dialogue{Turns: []agenttest.Turn{{Calls: call("import polars")}, {Text: "{{tool:Hint: (.*)}}"}}}
	s := askService(t, func(c *Config) { withPackages(install)(c); c.Sessions = f }, model)
	missing := func(_ context.Context, spec runner.Spec, _ runner.Sink) (*runner.Outcome, error) {
		return executed(spec, runner.StatusError, raised("ModuleNotFoundError", "No module named 'polars'")), nil
	}
	s.run = missing
	id := s.open(`{}`).ID
	client := s.mcpClient("", nil)
	for _, c := range []struct {
		desc, want string
		hint       func() string
	}{
		{"a request", name, func() string { return s.replied(s.postJSON(`{"code":"import polars"}`)).Hint }},
		{"a request in a session", session, func() string { return s.replied(s.inSession(id, `"code":"import polars"`)).Hint }},
		{"a tool call", name, func() string { return fmt.Sprint(s.callTool(`{"call":{"code":"import polars"}}`).Message) }},
		{"a tool call in a session", session, func() string {
			return fmt.Sprint(s.callTool(`{"call":{"code":"import polars"},"session":"` + id + `"}`).Message)
		}},
		{"MCP", name, func() string {
			return mcpText(t, callMCP(t, client, "run_python", map[string]any{"code": "import polars"}))
		}},
		{"MCP in a session", session, func() string {
			return mcpText(t, callMCP(t, client, "run_python", map[string]any{"code": "import polars", "session": id}))
		}},
		{"an agent", name, func() string { return string(s.post("/run", "application/json", `{"input":"x"}`).body) }},
		{"the Dify tool", nothing, func() string {
			return string(s.post("/run_code", "application/json", `{"sandbox_id":"`+id+`","code":"import polars"}`).body)
		}},
	} {
		t.Run(c.desc, func(t *testing.T) {
			s.t = t
			require.Contains(t, c.hint(), c.want)
		})
	}
	off := newService(t)
	off.run = missing
	require.Contains(t, off.replied(off.postJSON(`{"code":"import polars"}`)).Hint, nothing)
}

// TestToolCallsInASession: they name no packages, and need no image of what lives.
func TestToolCallsInASession(t *testing.T) {
	f := calculating(t)
	var gone atomic.Bool
	install := &fakePackages{}
	s := withSessions(t, f, withAllPackages(install), func(c *Config) { c.Available = func(string) bool { return !gone.Load() } })
	id := s.open(`{}`).ID
	a := s.callTool(`{"session":"` + id + `","call":{"code":"x = 1","dependencies":["six"]}}`)
	require.False(t, a.Ran)
	require.Contains(t, fmt.Sprint(a.Message), "the call is in a session, whose packages are chosen when it is opened. Nothing was run.")
	require.Empty(t, install.asked)
	gone.Store(true)
	s.requireRefused(s.get("/v1/tools?language=py"), 503, "is not installed")
	for fields, want := range map[string]string{
		`"call":{"code":"x = 1"}`:                                         "python",
		`"call":{"code":"x = 1","language":"py"}`:                         "python",
		`"call":{"code":"x = 1"},"language":"python"`:                     "python",
		`"call":{"code":"echo hi","language":"bash"}`:                     "bash",
		`"call":{"code":"echo hi"},"language":"sh"`:                       "bash",
		`"call":{"code":"x = 1","language":"python"},"language":"bash"`:   "python",
		`"call":{"code":"echo hi","language":"sh"},"language":"python"`:   "bash",
		`"call":{"name":"python","arguments":{"code":["x = 1"]}}`:         "python",
		`"call":{"code":"x = 1","dependencies":null},"language":"python"`: "python",
	} {
		a := s.callTool(`{"session":"` + id + `",` + fields + `}`)
		require.Equal(t, want, a.Language, fields)
	}
}

func TestMCPWithPackages(t *testing.T) {
	f, sessions := &fakePackages{}, newSessions(t)
	s := withSessions(t, sessions, withPackages(f))
	client := s.mcpClient("", nil)
	list, err := client.ListTools(t.Context(), nil)
	require.NoError(t, err)
	takes := map[string]bool{}
	for _, tool := range list.Tools {
		raw, err := json.Marshal(tool.InputSchema)
		require.NoError(t, err)
		takes[tool.Name] = strings.Contains(string(raw), `"dependencies":{`)
		require.Equal(t, tool.Name == "run_python", strings.Contains(tool.Description, "Packages can be installed: name them in dependencies."), tool.Name)
	}
	require.Equal(t, map[string]bool{"run_python": true, "run_r": false, "about": false, "create_session": true,
		"close_session": false, "list_files": false, "read_file": false, "write_file": false}, takes)

	r := callMCP(t, client, "run_python", map[string]any{"code": "x", "dependencies": "polars six"})
	require.False(t, r.IsError, "%v", r.Content)
	require.Equal(t, []string{"polars", "six"}, f.asked[0].Set.Entries)
	r = callMCP(t, client, "create_session", map[string]any{"dependencies": []string{"polars"}})
	require.False(t, r.IsError, "%v", r.Content)
	require.Equal(t, []string{"polars"}, f.asked[1].Set.Entries)
	raw, err := json.Marshal(r.StructuredContent)
	require.NoError(t, err)
	var opened struct{ ID string }
	require.NoError(t, json.Unmarshal(raw, &opened))
	for _, c := range []struct {
		name, want string
		arguments  map[string]any
	}{
		{"run_python", "give them when the session is opened", map[string]any{"code": "x", "session": opened.ID, "dependencies": []string{"six"}}},
		{"run_python", "dependencies[0]: is not a package's name", map[string]any{"code": "x", "dependencies": []string{"-r x"}}},
		{"run_r", "dependencies: are not supported for r", map[string]any{"code": "x", "dependencies": []string{"six"}}},
		{"run_r", "its dependencies are no list of strings", map[string]any{"code": "x", "dependencies": 7}},
		{"create_session", "its dependencies are no list of strings", map[string]any{"dependencies": 7}},
	} {
		r := callMCP(t, client, c.name, c.arguments)
		require.True(t, r.IsError)
		require.Contains(t, mcpText(t, r), c.want)
		require.NotContains(t, mcpText(t, r), "execute_python")
	}
	require.Len(t, f.asked, 2)
	f.fail = &dependencies.Failure{Name: dependencies.Unresolvable, Message: "No matching distribution"}
	r = callMCP(t, client, "run_python", map[string]any{"code": "x", "dependencies": []string{"six"}})
	require.True(t, r.IsError)
	require.Contains(t, mcpText(t, r), "its packages could not be installed")
}

// TestMCPTellsOfInstalling: a client that waits hears of it.
func TestMCPTellsOfInstalling(t *testing.T) {
	s := newService(t, withPackages(&fakePackages{say: []string{"Collecting polars\n"}, hold: true}))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var heard atomic.Bool
	client := s.mcpClient("", &sdk.ClientOptions{ProgressNotificationHandler: func(_ context.Context, n *sdk.ProgressNotificationClientRequest) {
		if strings.Contains(n.Params.Message, "Collecting polars") {
			heard.Store(true)
			cancel()
		}
	}})
	params := &sdk.CallToolParams{Name: "run_python", Arguments: map[string]any{"code": "x", "dependencies": []string{"polars"}}}
	params.SetProgressToken("p")
	_, err := client.CallTool(ctx, params)
	require.ErrorIs(t, err, context.Canceled)
	require.True(t, heard.Load())
	waiting, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	require.NoError(t, s.server.Wait(waiting), "an installation that nobody waits for ends")
}

// TestAgentsNamePackages: those that cannot be had do not end a question.
func TestAgentsNamePackages(t *testing.T) {
	with := func(packages string) []agenttest.Call {
		return []agenttest.Call{{Name: "execute_python", Arguments: agenttest.Arguments(`{"code":"x","dependencies":` + packages + `}`)}}
	}
	f := &fakePackages{}
	s := askService(t, withPackages(f), agenttest.Dialogue{Turns: []agenttest.Turn{
		{Calls: with(`["-r x"]`)},
		{Calls: with(`["polars"]`), Expect: []string{"The packages of the call cannot be installed: dependencies[0]: is not a package's name"}},
		{Text: "Done.", Expect: []string{"120"}},
	}})
	a := s.post("/run", "application/json", `{"input":"x"}`)
	s.asDescribed("POST", "/run", a)
	require.Equal(t, http.StatusOK, a.StatusCode, "%s", a.body)
	var out ask.Answer
	require.NoError(t, json.Unmarshal(a.body, &out))
	require.Len(t, out.Steps, 2)
	require.Equal(t, "refused", out.Steps[0].Status)
	require.Equal(t, "ok", out.Steps[1].Status)
	require.Equal(t, []string{"polars"}, out.Steps[1].Dependencies)
	require.Equal(t, []string{"polars"}, f.asked[0].Set.Entries)

	f.fail = &runner.Error{Code: runner.CodeUnavailable, Message: "dependencies: the package registry cannot be reached", RetryAfter: 5 * time.Second}
	s = askService(t, withPackages(f), agenttest.Dialogue{Turns: []agenttest.Turn{
		{Calls: with(`["polars"]`)}, {Calls: call("print(120)"), Expect: []string{"the package registry cannot be reached"}}, {Text: "Done.", Expect: []string{"120"}},
	}})
	a = s.post("/run", "application/json", `{"input":"x"}`)
	require.Equal(t, http.StatusOK, a.StatusCode, "%s", a.body)
}
