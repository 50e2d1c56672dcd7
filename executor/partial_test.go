package executor

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"notebox/notebook"
	"notebox/runner"
)

func TestEventsAreBounded(t *testing.T) {
	p := newPartial(runner.Spec{Notebook: []byte(`{}`), Limits: runner.Limits{Output: 1000}})
	for range 200_000 {
		p.add(runner.Event{Kind: runner.EventUpdate, Output: []byte(`{"output_type":"display_data","metadata":{},"data":{"text/plain":"` + strings.Repeat("x", 100) + `"},"transient":{"display_id":"x"}}`)})
	}
	require.True(t, p.cut)
	require.Len(t, p.cells[0].outputs, 1)
}

// FuzzPartial has a sandbox die after any events, one a line.
func FuzzPartial(f *testing.F) {
	f.Add("O{\"output_type\":\"display_data\",\"data\":{},\"transient\":{\"display_id\":\"a\"}}\nU{\"output_type\":\"display_data\",\"data\":{\"a/b\":1},\"transient\":{\"display_id\":\"a\"}}\nC")
	f.Add("O{\"transient\":[]}\nO{\"transient\":{\"display_id\":1}}\nO[\nO\"\\ud800\"\nO{\"a\":1,\"a\":2}")
	book, err := notebook.New([]string{"x", "y"}, notebook.Kernel{Name: "python3", Language: "python"})
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, events string) {
		p := newPartial(runner.Spec{Notebook: book, Limits: runner.Limits{Output: 100}})
		for i, line := range strings.Split(events, "\n") {
			e := runner.Event{Kind: runner.EventOutput, Cell: i % 3}
			if line != "" {
				e.Output = json.RawMessage(line[1:])
				switch line[0] {
				case 'U':
					e.Kind = runner.EventUpdate
				case 'C':
					e.Kind = runner.EventClear
				}
			}
			p.add(e)
		}
		executed := p.executed()
		if executed == nil {
			return
		}
		require.True(t, json.Valid(executed))
		_, err := notebook.Decode(executed, notebook.Limits{})
		require.NoError(t, err)
	})
}
