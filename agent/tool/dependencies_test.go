package tool_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"notebox/agent/tool"
)

func TestDependencies(t *testing.T) {
	for _, c := range []struct {
		desc, arguments string
		want            []string
	}{
		{"a list", `{"code":"x","dependencies":["polars==1.*"," six "]}`, []string{"polars==1.*", "six"}},
		{"none", `{"code":"x","dependencies":[]}`, nil},
		{"what the program is to do", `{"code":"x","requirements":"Print the number one"}`, nil},
		{"requirements on one line", `{"code":"x","requirements":"numpy>=2 pandas six"}`, []string{"numpy>=2", "pandas", "six"}},
		{"null", `{"code":"x","dependencies":null}`, nil},
		{"None", `{"code":"x","dependencies":None}`, nil},
		{"false", `{"code":"x","dependencies":false}`, nil},
		{"blanks", `{"code":"x","dependencies":["", " "]}`, nil},
		{"an empty string", `{"code":"x","dependencies":" "}`, nil},
		{"a string", `{"code":"x","dependencies":"polars"}`, []string{"polars"}},
		{"blanks between", `{"code":"x","dependencies":"polars six"}`, []string{"polars", "six"}},
		{"commas between", `{"code":"x","dependencies":"polars[a, b] >= 1, < 2,six, lodash@^4 @std/csv jq=1.7"}`,
			[]string{"polars[a, b] >= 1, < 2", "six", "lodash@^4", "@std/csv", "jq=1.7"}},
		{"lines", `{"code":"x","dependencies":"# mine\npolars==1.*  # the newest\r\n\nsix\n"}`, []string{"polars==1.*", "six"}},
		{"a list in a string", `{"code":"x","dependencies":"[\"polars\", 'six']"}`, []string{"polars", "six"}},
		{"a command", `{"code":"x","dependencies":"pip install polars six"}`, []string{"polars", "six"}},
		{"packages", `{"code":"x","packages":["six"]}`, []string{"six"}},
		{"Requirements", `{"code":"x","Requirements":"six"}`, []string{"six"}},
		{"two names", `{"code":"x","packages":["six"],"dependencies":["polars"]}`, []string{"six", "polars"}},
		{"beside a call", `{"dependencies":["six"],"arguments":{"code":"x"}}`, []string{"six"}},
		{"in a call", `{"name":"execute_python","arguments":{"code":"x","dependencies":["six"]}}`, []string{"six"}},
		{"in the code", `{"code":"{\"code\": \"x\", \"dependencies\": [\"six\"]}"}`, []string{"six"}},
		{"call syntax", `execute_python(code="x", dependencies=["six"])`, []string{"six"}},
		{"names without quotes", `{dependencies: ["six"], code: "x"}`, []string{"six"}},
		{"quotes not escaped before", `{"code":"x", "dependencies": ["six", "polars"], "timeout": 5}`, []string{"six", "polars"}},
	} {
		t.Run(c.desc, func(t *testing.T) {
			a, err := tool.ParseArguments(c.arguments)
			require.NoError(t, err)
			require.Equal(t, "x", a.Code)
			require.Equal(t, c.want, a.Dependencies)
		})
	}
}

// TestDependenciesAfterBrokenCode has a program whose quotes are not escaped.
func TestDependenciesAfterBrokenCode(t *testing.T) {
	for _, arguments := range []string{
		`{"code": "print("a", "b")", "dependencies": ["six"]}`,
		`{"code": "print("a", "b")", "dependencies": ["six"], "timeout": 5}`,
		`{"dependencies": ["six"], "code": "print("a", "b")"}`,
		`{"dependencies": "six", "code": "print("a", "b")"}`,
	} {
		a, err := tool.ParseArguments(arguments)
		require.NoError(t, err, arguments)
		require.Equal(t, `print("a", "b")`, a.Code)
		require.Equal(t, []string{"six"}, a.Dependencies)
	}
}

func TestDependenciesThatAreNone(t *testing.T) {
	for _, c := range []struct{ desc, value, reason string }{
		{"a number", `7`, "no list of strings"},
		{"a truth value", `true`, "no list of strings"},
		{"an object", `{"six": "*"}`, "no list of strings"},
		{"a list of objects", `[{"name": "six"}]`, "something else than strings"},
		{"brackets", `"six [] ]"`, "cannot be told apart"},
		{"too many", `["a"` + strings.Repeat(`,"a"`, tool.MaxDependencies) + `]`, "more than 64"},
		{"too many in a string", `"` + strings.Repeat("a ", tool.MaxDependencies+1) + `"`, "more than 64"},
		{"too long", `["` + strings.Repeat("a", 300) + `"]`, "no name of a package"},
	} {
		t.Run(c.desc, func(t *testing.T) {
			_, err := tool.ParseArguments(`{"code": "x", "dependencies": ` + c.value + `}`)
			var invalid *tool.CallError
			require.ErrorAs(t, err, &invalid)
			require.Contains(t, invalid.Reason, c.reason)
			require.Less(t, len(err.Error()), 1000)
			_, alone := tool.ParseDependencies([]byte(c.value))
			require.Equal(t, err, alone)
		})
	}
	_, err := tool.ParseDependencies([]byte(`[` + "\xff"))
	require.Error(t, err)
	some, err := tool.ParseDependencies(nil)
	require.NoError(t, err)
	require.Empty(t, some)
	require.Contains(t, tool.PackagesError("six is %s", "away").Error(), "cannot be installed: six is away. Nothing was run. Call execute_python again without dependencies, or with others that can be.")
}

func TestDefinitionsSayWhatCanBeInstalled(t *testing.T) {
	python := tool.Language{Name: "python", Title: "Python 3", Packages: []string{"numpy"}, Dependencies: "pip"}
	r := tool.Language{Name: "r", Title: "R", Dependencies: "apt"}
	golang := tool.Language{Name: "go", Title: "Go"}
	few := python
	few.Allowed = []string{"polars", "six"}
	for _, c := range []struct {
		desc      string
		about     tool.About
		parts     []string
		not, such string // such: "" where calls may name none
	}{
		{"nothing", tool.About{Languages: []tool.Language{golang}}, []string{"nothing can be downloaded or installed"}, "in dependencies", ""},
		{"all of pip", tool.About{Languages: []tool.Language{python}},
			[]string{"numpy.\n- More can be installed: name it in dependencies, as pip does.", "no network: the code itself can download nothing"}, "Nothing more", `such as "polars==1.*".`},
		{"some of pip", tool.About{Languages: []tool.Language{few}},
			[]string{"numpy.\n- More can be installed, of these packages alone: polars, six. Name them in dependencies, as pip does."}, "Nothing more", `if need be.`},
		{"several languages", tool.About{Languages: []tool.Language{python, r, golang}},
			[]string{"numpy.\n- More can be installed: ", "- More can be installed: name it in dependencies, as apt does.", "- Nothing more can be installed."},
			"nothing can be downloaded", `such as "polars==1.*".`},
		{"a session", tool.About{Languages: []tool.Language{python}, Session: true}, []string{"Nothing more can be installed.", "nothing can be downloaded or installed"}, "dependencies", ""},
		{"a network", tool.About{Languages: []tool.Language{python, {Name: "x", Title: "X", Packages: []string{"y"}}}, Network: true},
			[]string{"More can be installed: name it", "Nothing more can be installed but from hosts that are allowed.", "Packages can be installed: "}, "itself", `such as "polars==1.*".`},
	} {
		t.Run(c.desc, func(t *testing.T) {
			description := c.about.Description()
			for _, l := range c.about.Languages {
				description += "\n" + c.about.Tell(l.Name)
			}
			for _, part := range c.parts {
				require.Contains(t, description, part)
			}
			require.NotContains(t, description, c.not)
			for _, n := range tool.Notations() {
				raw, err := json.Marshal(tool.Definition(n, c.about))
				require.NoError(t, err)
				require.Equal(t, c.such != "", strings.Contains(string(raw), `"dependencies":{"description":"Packages to be`), n)
				if want, _ := json.Marshal(c.such); c.such != "" {
					require.Contains(t, string(raw), strings.Trim(string(want), `"`))
				}
			}
		})
	}
}
