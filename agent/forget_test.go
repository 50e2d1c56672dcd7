package agent_test

import (
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"notebox/agent"
	"notebox/agent/agenttest"
)

// TestForgetting: the oldest questions and files go, the newest stay in any case, and
// the model hears of files that went.
func TestForgetting(t *testing.T) {
	s := &sandbox{}
	a, model := begin(t, s, agent.Config{Limits: agent.Limits{Questions: 2, Files: 10}},
		agenttest.Dialogue{Question: "first", Turns: []agenttest.Turn{{Calls: run("1")}, {Text: "One."}}},
		agenttest.Dialogue{Question: "second", Turns: []agenttest.Turn{{Text: "Two.", Expect: []string{"the first"}}}},
		agenttest.Dialogue{Question: "third", Turns: []agenttest.Turn{{Calls: run("3"), Expect: []string{"not there any more: /mnt/data/a.csv"}}, {Text: "Three."}}},
		agenttest.Dialogue{Question: "fourth", Turns: []agenttest.Turn{{Text: "Four.", Expect: []string{"the second"}, Absent: []string{"the first"}}}},
	)
	file := func(name string, bytes int) agent.File {
		return agent.File{Name: name, Size: int64(bytes), Open: func() (io.ReadCloser, error) {
			return io.NopCloser(strings.NewReader(strings.Repeat("x", bytes))), nil
		}}
	}
	talk := a.Converse()
	defer talk.Close()
	for _, q := range []agent.Question{
		{Text: "the first", Files: []agent.File{file("a.csv", 6)}},
		{Text: "the second"},
		{Text: "the third", Files: []agent.File{file("b.csv", 20)}},
		{Text: "the fourth"},
	} {
		_, err := talk.Ask(within(t), q, nil)
		require.NoError(t, err)
	}
	require.Len(t, s.runs[0].Files, 1)
	require.Equal(t, "a.csv", s.runs[0].Files[0].Name)
	require.Len(t, s.runs[1].Files, 1)
	require.Equal(t, "b.csv", s.runs[1].Files[0].Name)
	require.Empty(t, model.Failures())
	require.Equal(t, 2, a.Limits().Questions)
}
