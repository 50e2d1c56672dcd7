package tool_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/agent/tool"
)

// calls are one call in each notation, as its provider documents it.
var calls = map[tool.Notation]string{
	tool.ChatCompletions: `{"id":"call_1","type":"function","function":{"name":"execute_python","arguments":"{\"code\":\"print(1)\"}"}}`,
	tool.Responses:       `{"type":"function_call","id":"fc_1","call_id":"call_1","name":"execute_python","arguments":"{\"code\":\"print(1)\"}","status":"completed"}`,
	tool.Anthropic:       `{"type":"tool_use","id":"call_1","name":"execute_python","input":{"code":"print(1)"}}`,
	tool.Gemini:          `{"functionCall":{"id":"call_1","name":"execute_python","args":{"code":"print(1)"}}}`,
}

func TestParseKnowsEachNotation(t *testing.T) {
	for n, raw := range calls {
		c, err := tool.Parse([]byte(raw), "")
		require.NoError(t, err, n)
		require.Equal(t, n, c.Notation)
		require.Equal(t, "call_1", c.ID, n)
		require.Equal(t, "print(1)", c.Code, n)
	}
}

func TestParse(t *testing.T) {
	for _, c := range []struct {
		desc, raw string
		notation  tool.Notation
		id        string
	}{
		{"bare", `{"name":"python","arguments":"print(1)"}`, tool.ChatCompletions, ""},
		{"bare, an object", `{"name":"executePythonInNotebook","arguments":{"code":"print(1)"}}`, tool.ChatCompletions, ""},
		{"no name", `{"arguments":{"code":"print(1)"}}`, tool.ChatCompletions, ""},
		{"arguments alone", `{"code":"print(1)"}`, tool.ChatCompletions, ""},
		{"a string", `"{\"code\":\"print(1)\"}"`, tool.ChatCompletions, ""},
		{"a name with its namespace", `{"id":"a","type":"function","function":{"name":"functions.execute_python","arguments":"print(1)"}}`, tool.ChatCompletions, "a"},
		{"parameters for arguments", `{"name":"execute_python_code","parameters":{"code":"print(1)"}}`, tool.ChatCompletions, ""},
		{"a list of one", `[` + calls[tool.Anthropic] + `]`, tool.Anthropic, "call_1"},
		{"a whole message", `{"role":"assistant","content":null,"tool_calls":[` + calls[tool.ChatCompletions] + `]}`, tool.ChatCompletions, "call_1"},
		{"a choice", `{"index":0,"message":{"role":"assistant","tool_calls":[` + calls[tool.ChatCompletions] + `]}}`, tool.ChatCompletions, "call_1"},
		{"a message with text", `{"role":"assistant","content":[{"type":"text","text":"I compute."},` + calls[tool.Anthropic] + `]}`, tool.Anthropic, "call_1"},
		{"a free tool", `{"type":"custom_tool_call","call_id":"a","name":"python","input":"print(1)"}`, tool.Responses, "a"},
		{"a free tool of Chat Completions", `{"id":"a","type":"custom","custom":{"name":"python","input":"print(1)"}}`, tool.ChatCompletions, "a"},
		{"the old form", `{"function_call":{"name":"python","arguments":"print(1)"}}`, tool.ChatCompletions, ""},
		{"Gemini's object", `{"name":"execute_python","args":{"code":"print(1)"}}`, tool.Gemini, ""},
	} {
		t.Run(c.desc, func(t *testing.T) {
			got, err := tool.Parse([]byte(c.raw), "")
			require.NoError(t, err)
			require.Equal(t, c.notation, got.Notation)
			require.Equal(t, c.id, got.ID)
			require.Equal(t, "print(1)", got.Code)
		})
	}
	for _, c := range []struct{ desc, raw, reason string }{
		{"another tool", `{"id":"call_1","type":"function","function":{"name":"search","arguments":"{\"code\":\"x\"}"}}`, "no tool"},
		{"another tool, with arguments of its own", `{"id":"call_1","type":"function","function":{"name":"search","arguments":"{\"query\":\"x\"}"}}`, "no tool"},
		{"no arguments", `{"id":"call_1","type":"function","function":{"name":"execute_python"}}`, "no arguments"},
		{"two calls", `[` + calls[tool.Anthropic] + `,` + calls[tool.Anthropic] + `]`, "one is read"},
		{"a number", `7`, "no object"},
		{"no JSON", `{"a" "b"`, "JSON"},
	} {
		t.Run(c.desc, func(t *testing.T) {
			got, err := tool.Parse([]byte(c.raw), "")
			var invalid *tool.CallError
			require.ErrorAs(t, err, &invalid)
			require.Contains(t, invalid.Reason, c.reason)
			require.Empty(t, got.Code)
			require.NotNil(t, tool.Refusal(got, err))
		})
	}
}

// asJSON is what a provider gets.
func asJSON(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	require.NoError(t, err)
	return string(raw)
}

func parsed(t *testing.T, n tool.Notation) tool.Call {
	t.Helper()
	c, err := tool.Parse([]byte(calls[n]), "")
	require.NoError(t, err)
	return c
}

func TestMessages(t *testing.T) {
	plot := tool.Image{Name: "image_0.png", MediaType: "image/png", URL: "http://x/image_0.png", Data: []byte("PNG")}
	r := tool.Result{Status: "ok", Text: "1\n[image image_0.png: http://x/image_0.png]\n", Images: []tool.Image{plot}}
	const text = `1\n[image image_0.png: http://x/image_0.png]`
	for n, want := range map[tool.Notation][2]string{
		tool.ChatCompletions: {
			`{"role":"tool","tool_call_id":"call_1","content":"` + text + `"}`,
			`{"role":"tool","tool_call_id":"call_1","content":"` + text + `"}`,
		},
		tool.Responses: {
			`{"type":"function_call_output","call_id":"call_1","output":"` + text + `"}`,
			`{"type":"function_call_output","call_id":"call_1","output":[{"type":"input_text","text":"` + text + `"},
				{"type":"input_image","detail":"auto","image_url":"data:image/png;base64,UE5H"}]}`,
		},
		tool.Anthropic: {
			`{"type":"tool_result","tool_use_id":"call_1","content":[{"type":"text","text":"` + text + `"}]}`,
			`{"type":"tool_result","tool_use_id":"call_1","content":[{"type":"text","text":"` + text + `"},
				{"type":"image","source":{"type":"base64","media_type":"image/png","data":"UE5H"}}]}`,
		},
		tool.Gemini: {
			`{"functionResponse":{"id":"call_1","name":"execute_python","response":{"output":"` + text + `"}}}`,
			`{"functionResponse":{"id":"call_1","name":"execute_python","response":{"output":"` + text + `"},
				"parts":[{"inlineData":{"mimeType":"image/png","data":"UE5H"}}]}}`,
		},
	} {
		c := parsed(t, n)
		require.JSONEq(t, want[0], asJSON(t, tool.Message(c, r, tool.Options{})), n)
		require.JSONEq(t, want[1], asJSON(t, tool.Message(c, r, tool.Options{ImageParts: true})), n)
	}
}

func TestMessagesOfFailures(t *testing.T) {
	r := tool.Result{Status: "error", Text: "Traceback: ValueError: x\n", Hint: "Correct it."}
	for n, want := range map[tool.Notation]string{
		tool.Anthropic: `"is_error":true`, tool.Gemini: `"error":"[The run did not succeed`, tool.Responses: `Hint: Correct it.`, tool.ChatCompletions: `Hint: Correct it.`,
	} {
		require.Contains(t, asJSON(t, tool.Message(parsed(t, n), r, tool.Options{})), want, n)
	}
	free, err := tool.Parse([]byte(`{"type":"custom_tool_call","call_id":"a","name":"python","input":""}`), "")
	require.Error(t, err)
	require.Contains(t, asJSON(t, tool.Refusal(free, err)), "custom_tool_call_output")
}

func TestTextIsCutAndCounted(t *testing.T) {
	var all strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&all, "row %d\n", i)
	}
	r := tool.Result{Status: "ok", Text: all.String() + "[file out.csv: http://x/out.csv]\n",
		Images: []tool.Image{{Name: "image_0.png", URL: "http://x/image_0.png"}},
		Files:  []tool.File{{Path: "/mnt/data/out.csv", URL: "http://x/out.csv"}, {Path: "/mnt/data/b", Error: "the store failed"}}}
	text := tool.Text(r, tool.Options{Budget: 500})
	require.LessOrEqual(t, tool.Tokens(text), 600)
	require.True(t, strings.HasPrefix(text, "row 0\nrow 1\n"))
	require.Regexp(t, `\n\[… \d\d,\d\d\d characters left out …\]\nrow \d+\n`, text)
	require.Contains(t, text, "row 4999\n")
	require.Contains(t, text, "[image image_0.png: http://x/image_0.png]")
	require.Equal(t, 1, strings.Count(text, "http://x/out.csv"))
	require.Contains(t, text, "[file b was not kept: the store failed]")

	left := 0
	before, after, _ := strings.Cut(tool.Cut(all.String(), 500), "[… ")
	_, err := fmt.Sscanf(strings.Replace(after, ",", "", 1), "%d", &left)
	require.NoError(t, err)
	_, tail, _ := strings.Cut(after, "…]\n")
	require.Equal(t, all.Len(), len(before)+left+len(tail), "what is left out is counted")
}

func TestTextOfNothing(t *testing.T) {
	require.Contains(t, tool.Text(tool.Result{Status: "ok"}, tool.Options{}), "put out nothing")
	require.Contains(t, tool.Text(tool.Result{Status: "timeout"}, tool.Options{}), "time limit")
	lost := tool.Result{Status: "error", Error: &tool.Raised{}}
	for _, name := range []string{"TooLarge", "TooSlow", "TooNoisy", "Crashed", "Unusable", "Unresolvable"} {
		lost.Error.Name = name
		require.Contains(t, tool.Text(lost, tool.Options{}), "its packages could not be installed, and no code was run")
	}
	lost.Error.Traceback = "Unresolvable"
	require.Contains(t, tool.Text(lost, tool.Options{}), "raised an exception")
}

func TestEssence(t *testing.T) {
	lines := []string{"-----", "ValueError   Traceback (most recent call last)", "Cell In[1], line 3", "      2 import pandas", "----> 3 f()", ""}
	for i := range 10 {
		lines = append(lines, fmt.Sprintf("File /usr/lib/python3/pandas/core/%d.py:%d, in g(x)", i, i), "     1 a", "---> 2 b", "     3 c", "")
	}
	lines = append(lines, "ValueError: no such column")
	short := tool.Essence(strings.Join(lines, "\n"))
	require.Contains(t, short, "----> 3 f()")
	require.Contains(t, short, "[… 9 frames of libraries left out …]")
	require.Contains(t, short, "core/9.py:9")
	require.NotContains(t, short, "core/8.py")
	require.True(t, strings.HasSuffix(short, "ValueError: no such column"))
	require.Equal(t, "short", tool.Essence("short"))

	full := strings.Join(lines, "\n")
	text := tool.Text(tool.Result{Status: "error", Text: "before\n" + full + "\n", Error: &tool.Raised{Traceback: full}}, tool.Options{})
	require.Contains(t, text, "before\n-----")
	require.Contains(t, text, "9 frames")
}

func TestDefinitions(t *testing.T) {
	about := tool.About{Packages: []string{"numpy", "pandas"}, Notes: []string{"No corpora."}, Timeout: 30 * time.Second, MaxTimeout: 300 * time.Second}
	description := about.Description()
	for _, part := range []string{"numpy, pandas", "/mnt/data", "no network", "Nothing is kept", "about: true"} {
		require.Contains(t, description, part)
	}
	for _, part := range []string{"numpy, pandas", "No corpora.", "30 seconds", "up to 300", "Nothing is kept"} {
		require.Contains(t, about.Tell(""), part)
	}
	about.Session = true
	require.NotContains(t, about.Description(), "Nothing is kept")
	for n, path := range map[tool.Notation][]string{
		tool.ChatCompletions: {"function", "parameters"}, tool.Responses: {"parameters"}, tool.Anthropic: {"input_schema"},
	} {
		var v map[string]any
		require.NoError(t, json.Unmarshal([]byte(asJSON(t, tool.Definition(n, about))), &v))
		for _, name := range path {
			v, _ = v[name].(map[string]any)
		}
		require.Equal(t, []any{"code"}, v["required"], n)
	}
	require.Contains(t, asJSON(t, tool.Definition(tool.Gemini, about)), `{"functionDeclarations":[{`)
	require.NotContains(t, asJSON(t, tool.Definition(tool.Gemini, about)), "additionalProperties")
}
