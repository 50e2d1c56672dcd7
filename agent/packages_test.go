package agent_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"notebox/agent"
	"notebox/agent/agenttest"
	"notebox/agent/tool"
)

var pip = tool.Language{Name: "python", Title: "Python 3", Dependencies: "pip"}

func withPackages(code, packages string) []agenttest.Call {
	return []agenttest.Call{{Name: tool.Name, Arguments: agenttest.Arguments(`{"code":"` + code + `","packages":` + packages + `}`)}}
}

func TestPackages(t *testing.T) {
	s := &sandbox{}
	a, model := begin(t, s, agent.Config{About: tool.About{Languages: []tool.Language{pip}}}, agenttest.Dialogue{Turns: []agenttest.Turn{
		{Calls: withPackages("1", `"polars six"`)}, {Text: "Done.", Expect: []string{"ran 1"}},
	}})
	answer, err := a.Ask(within(t), agent.Question{Text: "x"}, nil)
	require.NoError(t, err)
	require.Equal(t, []string{"polars", "six"}, s.runs[0].Dependencies)
	require.Equal(t, []string{"polars", "six"}, answer.Steps[0].Dependencies)
	require.Contains(t, string(model.Requests()[0].Body), "Packages can be installed: name them in dependencies.")
	require.Contains(t, string(model.Requests()[1].Body), `\"dependencies\":[\"polars\",\"six\"]`, "the model is reminded of them as it should have written them")
}

// TestPackagesOfSessions are not the model's.
func TestPackagesOfSessions(t *testing.T) {
	s := &sandbox{}
	a, model := begin(t, s, agent.Config{Sessions: true, About: tool.About{Languages: []tool.Language{pip}}}, agenttest.Dialogue{Turns: []agenttest.Turn{
		{Calls: withPackages("1", `["six"]`)}, {Calls: withPackages("2", `[]`), Expect: []string{"whose packages are chosen when it is opened"}}, {Text: "Done.", Expect: []string{"ran 2"}},
	}})
	c := a.Converse()
	defer c.Close()
	answer, err := c.Ask(within(t), agent.Question{Text: "x"}, nil)
	require.NoError(t, err)
	require.Equal(t, "refused", answer.Steps[0].Status)
	require.Len(t, s.runs, 1)
	require.NotContains(t, string(model.Requests()[0].Body), "dependencies")
}

func TestPromptsNameTheLanguage(t *testing.T) {
	r := tool.Language{Name: "r", Title: "R"}
	for _, c := range []struct {
		desc      string
		languages []tool.Language
		sessions  bool
		want, not string
	}{
		{"none is named", nil, false, "running Python code with", "R code"},
		{"Python", []tool.Language{pip}, false, "running Python code with", "R code"},
		{"a key for R alone", []tool.Language{r}, false, "running R code with", "plt.show"},
		{"a session of R", []tool.Language{r, pip}, true, "running R code with", "Python"},
		{"Python first", []tool.Language{pip, r}, false, "running code, in Python where nothing speaks for another language, with", "Python code"},
		{"R first", []tool.Language{r, {Name: "bash"}}, false, "running code, in R where nothing speaks for another language, with", "Python"},
		{"without a title", []tool.Language{{Name: "bash"}}, false, "running bash code with", "Python"},
	} {
		t.Run(c.desc, func(t *testing.T) {
			a, model := begin(t, &sandbox{}, agent.Config{Sessions: c.sessions, About: tool.About{Languages: c.languages}},
				agenttest.Dialogue{Turns: []agenttest.Turn{{Text: "Hello."}}})
			_, err := a.Ask(within(t), agent.Question{Text: "x"}, nil)
			require.NoError(t, err)
			instructions := string(model.Requests()[0].Body)
			require.Contains(t, instructions, c.want)
			require.NotContains(t, instructions, c.not)
		})
	}
}
