package notebook_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"notebox/notebook"
)

const spec = `"kernelspec":{"display_name":"Python 3","language":"python","name":"python3"}`

func TestAdopt(t *testing.T) {
	for _, test := range []struct {
		desc, raw, want string
	}{
		{
			desc: "outputs are cleared, the kernelspec is replaced, all else stays as it is written",
			raw: `{"x":1.50, "cells":[{"cell_type":"code","source":["a\n","b"],"execution_count":7,"id":"own",` +
				`"outputs":[{"output_type":"stream"}],"metadata":{"tags":["t"],"n":1e400},"y":[ 1, {"z":1,"z":2} ]}],` +
				`"metadata":{"kernelspec":{"name":"ir"},"title":"\u00e9"},"nbformat":4,"nbformat_minor":5}`,
			want: `{"x":1.50,"cells":[{"cell_type":"code","source":["a\n","b"],"execution_count":null,"id":"own",` +
				`"outputs":[],"metadata":{"tags":["t"],"n":1e400},"y":[ 1, {"z":1,"z":2} ]}],` +
				`"metadata":{` + spec + `,"title":"\u00e9"},"nbformat":4,"nbformat_minor":5}`,
		},
		{
			desc: "what nbformat requires is added",
			raw:  `{"nbformat":4,"cells":[{"cell_type":"code","source":""}]}`,
			want: `{"nbformat":4,"cells":[{"cell_type":"code","source":"","metadata":{},"execution_count":null,"outputs":[],"id":"cell-0"}],` +
				`"metadata":{` + spec + `},"nbformat_minor":5}`,
		},
		{
			desc: "no ids before nbformat 4.5; markdown and raw cells are left alone",
			raw: `{"nbformat":4,"nbformat_minor":4,"metadata":{},"cells":[` +
				`{"cell_type":"markdown","source":"# t","metadata":{},"attachments":{"a.png":{"image/png":"AA=="}}},` +
				`{"cell_type":"raw","source":[],"metadata":{}},` +
				`{"cell_type":"code","source":"1","metadata":{},"outputs":[],"execution_count":null}]}`,
			want: `{"nbformat":4,"nbformat_minor":4,"metadata":{` + spec + `},"cells":[` +
				`{"cell_type":"markdown","source":"# t","metadata":{},"attachments":{"a.png":{"image/png":"AA=="}}},` +
				`{"cell_type":"raw","source":[],"metadata":{}},` +
				`{"cell_type":"code","source":"1","metadata":{},"outputs":[],"execution_count":null}]}`,
		},
		{
			desc: "an added id is a free one",
			raw: `{"nbformat":4,"nbformat_minor":5,"metadata":{},"cells":[` +
				`{"cell_type":"raw","source":"","metadata":{}},` +
				`{"cell_type":"raw","source":"","metadata":{},"id":"cell-0-0"},` +
				`{"cell_type":"code","source":"","metadata":{},"id":"cell-0","outputs":[],"execution_count":null}]}`,
			want: `{"nbformat":4,"nbformat_minor":5,"metadata":{` + spec + `},"cells":[` +
				`{"cell_type":"raw","source":"","metadata":{},"id":"cell-0-1"},` +
				`{"cell_type":"raw","source":"","metadata":{},"id":"cell-0-0"},` +
				`{"cell_type":"code","source":"","metadata":{},"id":"cell-0","outputs":[],"execution_count":null}]}`,
		},
	} {
		t.Run(test.desc, func(t *testing.T) {
			got, err := notebook.Adopt([]byte(test.raw), python)
			require.NoError(t, err)
			require.Equal(t, test.want, string(got))

			again, err := notebook.Adopt(got, python)
			require.NoError(t, err)
			require.Equal(t, string(got), string(again), "adopting is idempotent")
		})
	}
}

func TestAdoptRefuses(t *testing.T) {
	withCell := func(cell string) string {
		return `{"nbformat":4,"nbformat_minor":5,"metadata":{},"cells":[{"cell_type":"code","source":""},` + cell + `]}`
	}
	for _, test := range []struct {
		desc, raw, want string
	}{
		{"nothing", ``, "the notebook is empty"},
		{"no object", `[]`, "the notebook is a list, want an object"},
		{"cut off", `{"nbformat":4,"cells":[`, "the notebook is not valid JSON: unexpected EOF at byte 23"},
		{"data after the end", `{"nbformat":4} {}`, "the notebook has data after its end"},
		{"NaN", withCell(`{"cell_type":"code","source":"","metadata":{"a":NaN}}`), "the notebook is not valid JSON: invalid character 'N' at start of value at byte 137"},
		{"broken UTF-8", withCell(`{"cell_type":"code","source":"` + "\xff" + `"}`), "the notebook is not valid JSON: invalid UTF-8 at byte 119"},
		{"a lone surrogate", withCell(`{"cell_type":"code","source":"\ud800"}`), "the notebook is not valid JSON: invalid surrogate pair `\\ud800\"}]}` in string at byte 119"},
		{"no nbformat", `{"cells":[]}`, "the notebook has no field nbformat"},
		{"nbformat 2", `{"nbformat":2,"worksheets":[]}`, "nbformat is 2, want 4 or 3"},
		{"nbformat 3 without code", `{"nbformat":3,"worksheets":[]}`, "cells holds no code cell"},
		{"nbformat 3 without worksheets", `{"nbformat":3,"cells":[]}`, "the notebook has no field worksheets"},
		{"nbformat 3 with too many worksheets", `{"nbformat":3,"worksheets":[` + strings.Repeat(`{"cells":[]},`, notebook.MaxCells) + `{"cells":[]}]}`, "the notebook has more than 10000 worksheets"},
		{"nbformat 3 with too many cells", `{"nbformat":3,"worksheets":[` + strings.Repeat(`{"cells":[{}]},`, notebook.MaxCells) + `{"cells":[{}]}]}`, "the notebook has more than 10000 worksheets"},
		{"nbformat 3 with too many cells in one worksheet", `{"nbformat":3,"worksheets":[{"cells":[` + strings.Repeat(`{},`, notebook.MaxCells) + `{}]}]}`, "the notebook has more than 10000 cells"},
		{"nbformat 3 with a worksheet that is none", `{"nbformat":3,"worksheets":[1]}`, "worksheets[0] has no field cells"},
		{"nbformat 3 with cells that are none", `{"nbformat":3,"worksheets":[{"cells":{}}]}`, "worksheets[0].cells is an object, want a list"},
		{"nbformat 3 with a cell that is none", `{"nbformat":3,"worksheets":[{"cells":[1]}]}`, "worksheets[0].cells[0] is a number, want an object"},
		{"nbformat 3 with an input that is none", `{"nbformat":3,"worksheets":[{"cells":[{"cell_type":"code","input":1}]}]}`, "worksheets[0].cells[0].input must be a string or a list of strings"},
		{"nbformat as a string", `{"nbformat":"4"}`, `nbformat is "4", want 4 or 3`},
		{"nbformat_minor", `{"nbformat":4,"nbformat_minor":1.5}`, "nbformat_minor is 1.5, want a whole number"},
		{"no cells", `{"nbformat":4}`, "the notebook has no field cells"},
		{"cells is null", `{"nbformat":4,"cells":null}`, "cells is null, want a list"},
		{"cells is an object", `{"nbformat":4,"cells":{}}`, "cells is an object, want a list"},
		{"cells twice", `{"nbformat":4,"cells":[],"cells":[]}`, `the notebook has the field "cells" twice`},
		{"no code", `{"nbformat":4,"cells":[{"cell_type":"raw","source":""}]}`, "cells holds no code cell"},
		{"metadata", `{"nbformat":4,"metadata":1,"cells":[]}`, "metadata is a number, want an object"},
		{"a cell that is none", withCell(`"x"`), "cells[1] is a string, want an object"},
		{"a type that is none", withCell(`{"cell_type":"heading","source":""}`), "cells[1].cell_type must be code, markdown or raw"},
		{"no source", withCell(`{"cell_type":"code"}`), "cells[1].source must be a string or a list of strings"},
		{"a source of numbers", withCell(`{"cell_type":"code","source":["a",1]}`), "cells[1].source must be a string or a list of strings"},
		{"source twice", withCell(`{"cell_type":"code","source":"a","source":"b"}`), `cells[1] has the field "source" twice`},
		{"a cell's metadata", withCell(`{"cell_type":"code","source":"","metadata":[]}`), "cells[1].metadata is a list, want an object"},
		{"an id", withCell(`{"cell_type":"code","source":"","id":"ä"}`), "cells[1].id must be 1 to 64 letters, digits, - and _"},
		{"too deep", withCell(`{"cell_type":"code","source":"","metadata":{"a":` + nested(254) + `}}`), "the notebook nests deeper than 256 levels"},
		{"a million brackets", strings.Repeat("[", 1_000_000), "the notebook nests deeper than 256 levels"},
		{"too many cells", `{"nbformat":4,"cells":[` + strings.Repeat(`{"cell_type":"raw","source":""},`, notebook.MaxCells) + `{}]}`, "cells holds more than 10000 cells"},
		{"too many fields", `{"nbformat":4` + manyFields(1001) + `}`, "the notebook has more than 1000 fields"},
	} {
		t.Run(test.desc, func(t *testing.T) {
			_, err := notebook.Adopt([]byte(test.raw), python)
			require.EqualError(t, err, test.want)
			require.ErrorAs(t, err, new(*notebook.InvalidError))
		})
	}
}

func TestLanguage(t *testing.T) {
	for _, test := range []struct {
		desc, raw, want string
	}{
		{"of the kernelspec", `{"metadata":{"kernelspec":{"language":"R"},"language_info":{"name":"x"}}}`, "R"},
		{"of language_info", `{"metadata":{"kernelspec":{"name":"python3"},"language_info":{"name":"julia"}}}`, "julia"},
		{"of nbformat 3", `{"nbformat":3,"metadata":{},"worksheets":[{"cells":[{"cell_type":"markdown"},{"cell_type":"code"},{"cell_type":"code","language":"julia"}]}]}`, "julia"},
		{"behind more cells than there may be", `{"nbformat":3,"metadata":{},"worksheets":[{"cells":[` + strings.Repeat(`{},`, notebook.MaxCells) + `{"cell_type":"code","language":"julia"}]}]}`, ""},
		{"unsaid in nbformat 3", `{"nbformat":3,"metadata":{},"worksheets":[{"cells":[]}]}`, ""},
		{"unsaid", `{"metadata":{}}`, ""},
		{"of another type", `{"metadata":{"kernelspec":{"language":1}}}`, ""},
		{"no notebook", `[`, ""},
	} {
		t.Run(test.desc, func(t *testing.T) {
			require.Equal(t, test.want, notebook.Language([]byte(test.raw)))
		})
	}
}

func nested(depth int) string {
	return strings.Repeat("[", depth) + strings.Repeat("]", depth)
}

func manyFields(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `,"x%d":0`, i)
	}
	return b.String()
}

// TestAdoptRefusesWhatNbformatWould: what would fail only in the sandbox.
func TestAdoptRefusesWhatNbformatWould(t *testing.T) {
	for _, c := range []struct{ field, cell string }{
		{"cells[0].metadata.tags", `"metadata": {"tags": null}`},
		{"cells[0].metadata.tags", `"metadata": {"tags": "a"}`},
		{"cells[0].metadata.tags", `"metadata": {"tags": [1]}`},
		{"cells[0].attachments", `"metadata": {}, "attachments": 5`},
		{"cells[0].attachments", `"metadata": {}, "attachments": {"a.png": 5}`},
	} {
		raw := `{"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [{"cell_type": "code", "source": "1", ` + c.cell + `}]}`
		_, err := notebook.Adopt([]byte(raw), notebook.Kernel{Name: "python3"})
		var invalid *notebook.InvalidError
		require.ErrorAs(t, err, &invalid, raw)
		require.Equal(t, c.field, invalid.Field, raw)
	}
}

// TestAdoptVersion3: what is made of nbformat 3 is what nbformat itself makes of it; see
// testdata/version3.py.
func TestAdoptVersion3(t *testing.T) {
	got, err := notebook.Adopt(sample(t, "version3"), python)
	require.NoError(t, err)
	plain := func(raw []byte) (book map[string]any) {
		require.NoError(t, json.Unmarshal(raw, &book))
		for _, cell := range book["cells"].([]any) {
			cell := cell.(map[string]any)
			if lines, ok := cell["source"].([]any); ok { // lines are as good as one string
				text := ""
				for _, line := range lines {
					text += line.(string)
				}
				cell["source"] = text
			}
		}
		return book
	}
	require.Equal(t, plain(sample(t, "version3.golden")), plain(got))
	again, err := notebook.Adopt(got, python)
	require.NoError(t, err)
	require.Equal(t, string(got), string(again))
}
