package notebook_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"notebox/notebook"
)

var python = notebook.Kernel{Name: "python3", DisplayName: "Python 3", Language: "python"}

// hard are sources that JSON, HTML or a careless decoder could change.
var hard = map[string]string{
	"empty":              "",
	"quotes and braces":  `print("\"]}', '''", {"a": [1]})`,
	"NUL and controls":   "a\x00b\x01\x1f\x7f\u0080",
	"emoji":              "print('👩‍👩‍👧‍👦 🇳🇴')",
	"line separators":    "a\u2028b\u2029c\u0085d",
	"HTML":               "<script>&amp;</script>",
	"CR LF and CR":       "a = 1\r\nb = 2\rc = 3\n\n",
	"cell magics":        "%%bash\necho '# %%'\n",
	"replacement, BOM":   "\ufeff\ufffd\uffff",
	"surrogate escapes":  `'\ud800' "\\ud800"`,
	"one line of 1 MB":   "x = '" + strings.Repeat("é\"\\", 250_000) + "'",
	"100,000 short ones": strings.Repeat("x\n", 100_000),
}

func TestNewKeepsSourcesExactly(t *testing.T) {
	for desc, source := range hard {
		t.Run(desc, func(t *testing.T) {
			raw, err := notebook.New([]string{"first", source}, python)
			require.NoError(t, err)
			require.Equal(t, []string{"first", source}, sources(t, raw))

			adopted, err := notebook.Adopt(raw, python)
			require.NoError(t, err)
			require.Equal(t, []string{"first", source}, sources(t, adopted))
		})
	}
}

func TestNewIsNbformat45(t *testing.T) {
	raw, err := notebook.New([]string{"a", "b"}, python)
	require.NoError(t, err)
	require.Equal(t, `{"cells":[`+
		`{"cell_type":"code","execution_count":null,"id":"cell-0","metadata":{},"outputs":[],"source":"a"},`+
		`{"cell_type":"code","execution_count":null,"id":"cell-1","metadata":{},"outputs":[],"source":"b"}],`+
		`"metadata":{"kernelspec":{"display_name":"Python 3","language":"python","name":"python3"}},`+
		`"nbformat":4,"nbformat_minor":5}`, string(raw))
}

func TestNewRefuses(t *testing.T) {
	for _, test := range []struct {
		desc  string
		cells []string
		want  string
	}{
		{"no cells", nil, "cells must hold at least one cell"},
		{"broken UTF-8", []string{"ok", "a\xffb"}, "cells[1] is not valid UTF-8"},
		{"a surrogate as bytes", []string{"\xed\xa0\x80"}, "cells[0] is not valid UTF-8"},
		{"too many cells", make([]string, notebook.MaxCells+1), "cells holds 10001 cells, the limit is 10000"},
	} {
		t.Run(test.desc, func(t *testing.T) {
			_, err := notebook.New(test.cells, python)
			require.EqualError(t, err, test.want)
			require.ErrorAs(t, err, new(*notebook.InvalidError))
		})
	}
}

// sources reads a notebook as another program would.
func sources(t *testing.T, raw []byte) []string {
	t.Helper()
	var doc struct {
		Cells []struct{ Source any }
	}
	require.NoError(t, json.Unmarshal(raw, &doc))
	var all []string
	for _, cell := range doc.Cells {
		switch source := cell.Source.(type) {
		case string:
			all = append(all, source)
		case []any:
			all = append(all, strings.TrimSuffix(fmt.Sprintln(source...), "\n"))
		}
	}
	return all
}
