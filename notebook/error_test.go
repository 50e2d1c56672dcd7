package notebook_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"notebox/notebook"
)

// Each cell of the samples says in its metadata at which line its error is.
func TestLineInRealTracebacks(t *testing.T) {
	for _, name := range []string{"errors-ipython8", "errors-ipython9"} {
		var doc struct {
			Cells []json.RawMessage `json:"cells"`
		}
		require.NoError(t, json.Unmarshal(sample(t, name), &doc))
		for i, raw := range doc.Cells {
			var cell struct {
				Source   any
				Metadata struct{ Line int }
			}
			require.NoError(t, json.Unmarshal(raw, &cell))
			t.Run(fmt.Sprintf("%s/%d", name, i), func(t *testing.T) {
				result := decode(t, []byte(`{"nbformat":4,"cells":[`+string(raw)+`]}`))
				require.NotNil(t, result.Error)
				require.Equal(t, cell.Metadata.Line, result.Error.Line, "%v\n%s", cell.Source, result.Error.Traceback)
			})
		}
	}
}

func TestError(t *testing.T) {
	raised := func(name, traceback string) string {
		return fmt.Sprintf(`{"output_type":"error","ename":%q,"evalue":"m","traceback":[%s]}`, name, quoted(traceback))
	}
	group := `  + Exception Group Traceback (most recent call last):
  |   File "/x/IPython/core/interactiveshell.py", line 3823, in run_code
  |     exec(code_obj, self.user_global_ns, self.user_ns)
  |   File "/tmp/ipykernel_1/2.py", line 5, in <module>
  |     f()
  |   File "/tmp/ipykernel_1/2.py", line 3, in f
  |     g()
  |   File "/lib/other.py", line 99, in g
  | ExceptionGroup: many (1 sub-exception)
  +-+---------------- 1 ----------------
    |   File "/tmp/ipykernel_1/2.py", line 1, in <module>
    | ValueError: 1
    +------------------------------------
`
	for _, test := range []struct {
		desc string
		cell string
		want *notebook.Exception
	}{
		{"nothing raised", `"outputs":[` + stream("stderr", "Traceback (most recent call last):\nValueError: x") + `]`, nil},
		{
			"IPython 8.0 to 8.4", `"execution_count":12,"outputs":[` + raised("E", "Input In [12], in <cell line: 3>()\n") + `]`,
			&notebook.Exception{Name: "E", Message: "m", Traceback: "Input In [12], in <cell line: 3>()\n", Line: 3},
		},
		{
			"IPython 8.5", `"execution_count":12,"outputs":[` + raised("E", "Cell In [12], line 4\n") + `]`,
			&notebook.Exception{Name: "E", Message: "m", Traceback: "Cell In [12], line 4\n", Line: 4},
		},
		{
			"another kernel", `"execution_count":1,"outputs":[` + raised("E", "Error in f(): x") + `]`,
			&notebook.Exception{Name: "E", Message: "m", Traceback: "Error in f(): x"},
		},
		{
			"another kernel, which counts all lines", `"execution_count":1,"source":"\n\nstop('x')","outputs":[` + raised("E", "Cell In[1], line 3\nError: m") + `]`,
			&notebook.Exception{Name: "E", Message: "m", Traceback: "Cell In[1], line 3\nError: m", Line: 3},
		},
		{
			"no execution count", `"outputs":[` + raised("E", "Cell In[1], line 4") + `]`,
			&notebook.Exception{Name: "E", Message: "m", Traceback: "Cell In[1], line 4"},
		},
		{
			"a line that no cell has", `"execution_count":1,"outputs":[` + raised("E", "Cell In[1], line 99999999999999999999") + `]`,
			&notebook.Exception{Name: "E", Message: "m", Traceback: "Cell In[1], line 99999999999999999999"},
		},
		{
			"of two in a cell, the last ended it", `"outputs":[` + raised("Shown", "") + "," + raised("Raised", "") + "," + stream("stdout", "flushed") + `]`,
			&notebook.Exception{Name: "Raised", Message: "m"},
		},
		{"expected by its tag", `"metadata":{"tags":["x","raises-exception"]},"outputs":[` + raised("E", "") + `]`, nil},
		{
			"an exception group, which IPython prints", `"source":"\n\nf()","outputs":[` + stream("stderr", "warning\n"+group+"\nmore") + `]`,
			&notebook.Exception{Name: "ExceptionGroup", Message: "many (1 sub-exception)", Traceback: strings.TrimSuffix(group, "\n"), Line: 5},
		},
		{"an exception group, expected", `"metadata":{"tags":["raises-exception"]},"outputs":[` + stream("stderr", group) + `]`, nil},
		{"an exception group that the code prints", `"outputs":[` + stream("stderr", strings.Replace(group, "IPython", "x", 1)) + `]`, nil},
		{"an exception group on stdout", `"outputs":[` + stream("stdout", group) + `]`, nil},
	} {
		t.Run(test.desc, func(t *testing.T) {
			result := decode(t, []byte(`{"nbformat":4,"cells":[{"cell_type":"code",`+test.cell+`}]}`))
			require.Equal(t, test.want, result.Error)
		})
	}
}

func TestErrorIsOfTheFirstCell(t *testing.T) {
	result := decode(t, executed("", `{"output_type":"error","ename":"A"}`, `{"output_type":"error","ename":"B"}`))
	require.Equal(t, &notebook.Exception{Name: "A", Cell: 1}, result.Error)
	require.Len(t, result.Outputs, 2)
}

func TestTracebackOfARecursion(t *testing.T) {
	frames := `"head","a"` + strings.Repeat(`,"f"`, 1000) + `,"\u001b[31mE: m"`
	result := decode(t, executed(`{"output_type":"error","ename":"E","evalue":"m","traceback":[`+frames+`]}`))
	require.Equal(t, "head\na\nf\nf\nf\n[previous frame repeated 997 more times]\n\nE: m", result.Outputs[0].Traceback)
}

func TestTracebackOfOddTypes(t *testing.T) {
	for raw, want := range map[string]string{
		`"text"`: "text", `["a",1,null,"b"]`: "a\nb", `7`: "", `{}`: "", `["a","a","a","a"]`: "a\na\na\n[previous frame repeated 1 more times]",
	} {
		result := decode(t, executed(`{"output_type":"error","ename":7,"evalue":["x","y"],"traceback":`+raw+`}`))
		require.Equal(t, want, strings.TrimRight(result.Outputs[0].Traceback, "\n"))
		require.Equal(t, "xy", result.Outputs[0].Message)
		require.Empty(t, result.Outputs[0].Name)
	}
}
