package tool_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"notebox/agent/tool"
)

func FuzzParseArguments(f *testing.F) {
	for _, seed := range []string{
		`{"code": "print(1)"}`, "```python\nprint(1)\n```", `{'code': 'print("a")',}`, `"{\"code\": \"x\"}"`, `{"code": "print("a", "b")"}`,
		`{"code": "print("a")", "dependencies": ["six"]}`, `{"packages": "polars[a,b] >= 1, <2 six", "code": "x"}`, `{"code":"x","requirements":{"six":"*"}}`,
		`execute_python(code="x")`, "code: |\n  x", `<tool_call>{"code": ["a", "b"]}</tool_call>`, `print(\"a\")\nx`, `{"input": {"code": """x"""`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		a, err := tool.ParseArguments(text)
		if err != nil {
			require.ErrorAs(t, err, new(*tool.CallError))
			require.True(t, utf8.ValidString(err.Error()))
			return
		}
		require.NotEmpty(t, strings.TrimSpace(a.Code))
		require.True(t, utf8.ValidString(a.Code))
		require.NotContains(t, a.Code, "\x00")
		require.GreaterOrEqual(t, a.Timeout, tool.Arguments{}.Timeout)
		require.LessOrEqual(t, len(a.Dependencies), tool.MaxDependencies)
		for _, d := range a.Dependencies {
			require.Equal(t, strings.TrimSpace(d), d)
			require.NotEmpty(t, d)
			require.True(t, utf8.ValidString(d))
		}

		// What is well-formed is taken as it is, whatever the program looks like.
		if !strings.ContainsAny(a.Code, "\\`~{") {
			raw, err := json.Marshal(map[string]any{"code": a.Code, "dependencies": a.Dependencies})
			require.NoError(t, err)
			again, err := tool.ParseArguments(string(raw))
			require.NoError(t, err)
			require.Equal(t, a.Code, again.Code)
			require.Equal(t, a.Dependencies, again.Dependencies)
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		`{"id":"call_1","type":"function","function":{"name":"execute_python","arguments":"{\"code\":\"print(1)\"}"}}`,
		`{"type":"function_call","call_id":"call_1","name":"execute_python","arguments":"print(1)"}`,
		`{"type":"custom_tool_call","call_id":"call_1","name":"python","input":"print(1)"}`,
		`{"type":"tool_use","id":"toolu_1","name":"execute_python","input":{"code":"print(1)"}}`,
		`{"functionCall":{"name":"execute_python","args":{"code":"print(1)"}}}`, `[{"name":"python","arguments":{"code":["a"]}}]`, `"x"`,
	} {
		for _, n := range append(tool.Notations(), "") {
			f.Add([]byte(seed), string(n), 100)
		}
	}
	f.Fuzz(func(t *testing.T, raw []byte, notation string, budget int) {
		c, err := tool.Parse(raw, tool.Notation(notation))
		require.True(t, c.Notation.Known())
		message := tool.Message(c, tool.Result{Status: "error", Text: c.Code, Hint: c.Name}, tool.Options{Budget: budget, ImageParts: true})
		if err != nil {
			require.ErrorAs(t, err, new(*tool.CallError))
			message = tool.Refusal(c, err)
		}
		text, err := json.Marshal(message)
		require.NoError(t, err)
		require.NotEmpty(t, text)
	})
}

func FuzzCut(f *testing.F) {
	f.Add("a\nb", 1)
	f.Add(strings.Repeat("line\n", 1000), 200)
	f.Fuzz(func(t *testing.T, text string, tokens int) {
		tokens %= 1000
		cut := tool.Cut(text, tokens)
		if utf8.ValidString(text) {
			require.True(t, utf8.ValidString(cut))
			require.LessOrEqual(t, tool.Tokens(cut), max(tokens, tool.MinBudget))
		}
	})
}
