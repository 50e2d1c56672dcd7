package notebook_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"notebox/notebook"
)

func TestSources(t *testing.T) {
	for _, c := range []struct {
		desc, book string
		cells      []notebook.Source
		widgets    string
	}{
		{
			"code, text and what is neither", `{"nbformat":4,"metadata":{},"cells":[{"cell_type":"markdown","source":["# a\n","b"]},{"cell_type":"code","source":"x\n<y>"},{"cell_type":"raw","source":"z"},7]}`,
			[]notebook.Source{{Kind: "markdown", Text: "# a\nb"}, {Kind: "code", Text: "x\n<y>"}, {Kind: "raw", Text: "z"}, {}}, "",
		},
		{
			"with widgets", `{"nbformat":4,"metadata":{"widgets":{"application/vnd.jupyter.widget-state+json":{"state":{"a":NaN,"b":1}}}},"cells":[]}`,
			nil, `{"state":{"a":null,"b":1}}`,
		},
		{"widgets that are none", `{"nbformat":4,"metadata":{"widgets":[]},"cells":[]}`, nil, ""},
		{"no metadata", `{"nbformat":4,"cells":[{"cell_type":"code"}]}`, []notebook.Source{{Kind: "code"}}, ""},
	} {
		t.Run(c.desc, func(t *testing.T) {
			cells, widgets, err := notebook.Sources([]byte(c.book), notebook.Limits{})
			require.NoError(t, err)
			require.Equal(t, c.cells, cells)
			if c.widgets == "" {
				require.Nil(t, widgets)
			} else {
				require.JSONEq(t, c.widgets, string(widgets))
			}
		})
	}
	for _, book := range []string{"", "[]", `{"nbformat":3,"cells":[]}`, `{"nbformat":4,"cells":{}}`, `{"nbformat":4,"cells":[`} {
		_, _, err := notebook.Sources([]byte(book), notebook.Limits{})
		require.ErrorAs(t, err, new(*notebook.InvalidError), book)
	}
}

func FuzzSources(f *testing.F) {
	f.Add([]byte(`{"nbformat":4,"metadata":{"widgets":{"application/vnd.jupyter.widget-state+json":{}}},"cells":[{"cell_type":"code","source":["a",1]}]}`))
	f.Fuzz(func(t *testing.T, book []byte) {
		cells, _, err := notebook.Sources(book, notebook.Limits{})
		if err != nil {
			require.ErrorAs(t, err, new(*notebook.InvalidError))
			return
		}
		require.LessOrEqual(t, len(cells), notebook.MaxCells)
	})
}
