package notebook_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"notebox/notebook"
)

func TestLimits(t *testing.T) {
	image := display("image/png", base64JSON(pngOf(1, 1)))
	text := strings.Repeat("é", 100) // 200 bytes
	for _, test := range []struct {
		desc    string
		limits  notebook.Limits
		outputs []string
		reason  string
		check   func(t *testing.T, r *notebook.Result)
	}{
		{
			"outputs", notebook.Limits{MaxOutputs: 2},
			[]string{image, image, image, image, `{"output_type":"error","ename":"E","evalue":"late"}`},
			"3 more outputs follow, the limit is 2",
			func(t *testing.T, r *notebook.Result) {
				require.Len(t, r.Outputs, 2)
				require.Equal(t, "late", r.Error.Message, "the error is found all the same")
			},
		},
		{
			"outputs that are looked at", notebook.Limits{MaxOutputs: 1},
			[]string{stream("stdout", strings.Repeat("a", 3)) + strings.Repeat(","+stream("stdout", "a"), 200)},
			"only the first 100 outputs were read",
			func(t *testing.T, r *notebook.Result) { require.Len(t, r.Outputs[0].Text, 102) },
		},
		{
			"text of a stream is cut in the middle and between runes", notebook.Limits{MaxTextBytes: 41},
			[]string{stream("stdout", text)},
			"the text of stdout has 200 bytes, the limit is 41",
			func(t *testing.T, r *notebook.Result) {
				require.Equal(t, strings.Repeat("é", 15)+"\n[160 bytes left out]\n"+strings.Repeat("é", 5), r.Outputs[0].Text)
			},
		},
		{
			"text/plain is cut", notebook.Limits{MaxTextBytes: 40},
			[]string{display("text/plain", quoted(text))},
			"the text has 200 bytes, the limit is 40",
			func(t *testing.T, r *notebook.Result) {
				require.Contains(t, *r.Outputs[0].Data["text/plain"].Text, "[160 bytes left out]")
			},
		},
		{
			"half an HTML page is none", notebook.Limits{MaxTextBytes: 40},
			[]string{display("text/html", quoted(text))},
			"the text has 200 bytes, the limit is 40",
			func(t *testing.T, r *notebook.Result) { require.Empty(t, r.Outputs) },
		},
		{
			"nor is half of a JSON value", notebook.Limits{MaxTextBytes: 40},
			[]string{display("application/json", quoted(text))},
			"the JSON has 202 bytes, the limit is 40",
			func(t *testing.T, r *notebook.Result) { require.Empty(t, r.Outputs) },
		},
		{
			"an exception's message", notebook.Limits{MaxErrorBytes: 40},
			[]string{`{"output_type":"error","ename":"E","evalue":` + quoted(text) + `,"traceback":["T"]}`},
			"the exception's message has 200 bytes, the limit is 40",
			func(t *testing.T, r *notebook.Result) {
				require.Contains(t, r.Outputs[0].Message, "[160 bytes left out]")
				require.Equal(t, r.Outputs[0].Message, r.Error.Message)
			},
		},
		{
			"a traceback keeps its last line", notebook.Limits{MaxErrorBytes: 40},
			[]string{`{"output_type":"error","ename":"E","evalue":"m","traceback":[` + quoted(text) + `,"E: m"]}`},
			"the traceback has 205 bytes, the limit is 40",
			func(t *testing.T, r *notebook.Result) {
				require.True(t, strings.HasSuffix(r.Error.Traceback, "\nE: m"), r.Error.Traceback)
			},
		},
		{
			"blobs", notebook.Limits{MaxBlobs: 1}, []string{image, image},
			"the run has more than 1 images and binary outputs",
			func(t *testing.T, r *notebook.Result) { require.Len(t, r.Outputs, 1) },
		},
		{
			"bytes of a blob", notebook.Limits{MaxBlobBytes: 20}, []string{image},
			"the data is larger than the limit of 20 bytes",
			func(t *testing.T, r *notebook.Result) { require.Empty(t, r.Outputs) },
		},
		{
			"bytes of an svg", notebook.Limits{MaxBlobBytes: 5}, []string{display("image/svg+xml", `"<svg/>"`)},
			"the data has 6 bytes, the limit is 5",
			func(t *testing.T, r *notebook.Result) { require.Empty(t, r.Outputs) },
		},
		{
			"media types of one output", notebook.Limits{}, []string{`{"output_type":"display_data","data":{` + manyTypes(40) + `}}`},
			"the output has more than 32 media types",
			func(t *testing.T, r *notebook.Result) { require.Len(t, r.Outputs[0].Data, 32) },
		},
	} {
		t.Run(test.desc, func(t *testing.T) {
			result, err := notebook.Decode(executed(strings.Join(test.outputs, ",")), test.limits)
			require.NoError(t, err)
			require.True(t, result.Truncated)
			require.Len(t, result.Dropped, 1)
			require.Equal(t, test.reason, result.Dropped[0].Reason)
			test.check(t, result)
		})
	}
}

func TestLimitOfTheNotebook(t *testing.T) {
	_, err := notebook.Decode(executed(), notebook.Limits{MaxBytes: 10})
	require.EqualError(t, err, "the notebook has 58 bytes, the limit is 10")
}

func TestLimitOfCells(t *testing.T) {
	cells := strings.Repeat(`{"cell_type":"raw"},`, notebook.MaxCells) + `{"cell_type":"raw"}`
	result := decode(t, []byte(`{"nbformat":4,"cells":[`+cells+`]}`))
	require.Equal(t, []notebook.Dropped{{Cell: notebook.MaxCells, Reason: "the notebook has more than 10000 cells"}}, result.Dropped)
	require.True(t, result.Truncated)
}

// 10,000 images are capped, and so is the list of what was dropped.
func TestLimitOfDropped(t *testing.T) {
	image := display("image/png", base64JSON(pngOf(1, 1)))
	result := decode(t, executed(image+strings.Repeat(","+image, 9_999)))
	require.Len(t, result.Outputs, notebook.DefaultMaxBlobs)
	require.Len(t, result.Dropped, 101)
	require.Equal(t, "9700 more were dropped", result.Dropped[100].Reason)
}

func manyTypes(n int) string {
	return strings.ReplaceAll(strings.ReplaceAll(manyFields(n), `"x`, `"text/x`), ":0", `:""`)[1:]
}
