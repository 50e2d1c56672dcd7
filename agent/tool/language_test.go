package tool_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"notebox/agent/tool"
)

var languages = []tool.Language{
	{Name: "python", Title: "Python 3", Packages: []string{"numpy"}, Notes: []string{"No corpora."}},
	{Name: "javascript", Aliases: []string{"js"}, Title: "JavaScript (Deno)", Notes: []string{"Cells cannot be interrupted."}},
	{Name: "bash", Aliases: []string{"sh"}, Title: "Bash"},
}

func TestLanguagesOfCalls(t *testing.T) {
	for _, c := range []struct{ desc, arguments, language, code string }{
		{"none", `{"code":"1"}`, "", "1"},
		{"its name", `{"code":"1","language":"javascript"}`, "javascript", "1"},
		{"an alias", `{"code":"1","language":"JS"}`, "javascript", "1"},
		{"Python by a name of models", `{"code":"1","language":"ipython"}`, "python", "1"},
		{"blank", `{"code":"1","language":" "}`, "", "1"},
		{"after the code", `{"language":"sh","code":"echo \"a\""}`, "bash", `echo "a"`},
		{"in a call", `{"name":"execute_python","arguments":{"code":"1","language":"js"}}`, "javascript", "1"},
		{"beside a call", `{"language":"js","arguments":{"code":"1"}}`, "javascript", "1"},
		{"fenced", "{\"code\":\"```js\\n1\\n```\",\"language\":\"js\"}", "javascript", "1"},
		{"escapes of bash stay", `{"code":"printf a\\n\\tb","language":"bash"}`, "bash", `printf a\n\tb`},
		{"those of Python are mended", `{"code":"x = 1\\nprint(x)"}`, "", "x = 1\nprint(x)"},
	} {
		t.Run(c.desc, func(t *testing.T) {
			a, err := tool.ParseArguments(c.arguments, languages...)
			require.NoError(t, err)
			require.Equal(t, c.language, a.Language)
			require.Equal(t, c.code, a.Code)
		})
	}
	_, err := tool.ParseArguments(`{"code":"1","language":"ruby"}`, languages...)
	require.ErrorContains(t, err, `its language is "ruby", and this tool runs python, javascript, bash`)
	_, err = tool.ParseArguments(`{"code":"1","language":"js"}`)
	require.ErrorContains(t, err, "this tool runs Python")
	a, err := tool.ParseArguments(`printf a\n`, languages[2])
	require.NoError(t, err)
	require.Equal(t, `printf a\n`, a.Code, "the first language is that of bare code")
}

func TestDefinitionOfLanguages(t *testing.T) {
	about := tool.About{Languages: languages}
	description := about.Description()
	for _, part := range []string{
		"Runs Python 3, JavaScript (Deno) or Bash code", "Installed for Python 3: numpy.", "(plt.show())",
	} {
		require.Contains(t, description, part)
	}
	require.Contains(t, about.Tell("js"), "JavaScript (Deno) here:\n- Nothing more can be installed.\n- Cells cannot be interrupted.\n")
	require.Contains(t, about.Tell("js"), "Other languages, about which language asks: python, bash.")
	for _, n := range tool.Notations() {
		raw, err := json.Marshal(tool.Definition(n, about))
		require.NoError(t, err)
		require.Contains(t, string(raw), `"enum":["python","javascript","bash"]`, n)
		raw, err = json.Marshal(tool.Definition(n, tool.About{Languages: languages[1:2]}))
		require.NoError(t, err)
		require.NotContains(t, string(raw), "enum")
		require.NotContains(t, string(raw), "Python")
		require.NotContains(t, string(raw), "plt.show")
	}
	require.Equal(t, tool.About{Packages: []string{"numpy"}, Notes: []string{"No corpora."}}.Description(), tool.About{Languages: languages[:1]}.Description(),
		"Python alone is as it was")
}
