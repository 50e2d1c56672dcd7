package notebook_test

import (
	"encoding/json"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"

	"notebox/notebook"
)

// fuzzLimits are small enough that the fuzzer reaches each of them.
var fuzzLimits = notebook.Limits{
	MaxBytes: 1 << 20, MaxOutputs: 5, MaxTextBytes: 200, MaxErrorBytes: 100, MaxBlobs: 3, MaxBlobBytes: 5_000,
}

func FuzzDecode(f *testing.F) {
	f.Add(executed(`{"output_type":"error","ename":"E","evalue":"m","traceback":["Cell In[1], line 2","f","f","f","f","E: m"]}`))
	f.Add(executed(stream("stdout", "a\rb\x1b[2K"), display("image/png", base64JSON(pngOf(2, 3)))))
	f.Add(executed(display("image/svg+xml", `"<svg width='1in' height='2'/>"`), display("image/webp", base64JSON(webpOf(2, 3)))))
	f.Add(executed(display("image/jpeg", base64JSON(jpegOf(2, 3))), display("image/gif", base64JSON(gifOf(2, 3)))))
	f.Add(executed(display("application/json", `{"a":[NaN,-Infinity,"\ud800"]}`), display("text/html", `["<p>a","</p>"]`)))
	f.Add([]byte(`{"nbformat":4,"cells":[{"cell_type":"code","metadata":{"tags":["raises-exception"]},"outputs":[{"output_type":"error"}]}]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		result, err := notebook.Decode(raw, fuzzLimits)
		if err != nil {
			require.ErrorAs(t, err, new(*notebook.InvalidError))
			requireText(t, err.Error())
			return
		}
		checkResult(t, result)

		d := notebook.NewDecoder(fuzzLimits)
		for _, output := range outputs(raw) {
			if out, ok := d.Output(0, output); ok {
				checkResult(t, &notebook.Result{Outputs: []notebook.Output{out}})
			}
		}
		streamed, err := d.Decode(raw)
		require.NoError(t, err)
		checkResult(t, streamed)
	})
}

// outputs returns the outputs of a notebook as another program reads them.
func outputs(raw []byte) []json.RawMessage {
	var doc struct {
		Cells []struct{ Outputs []json.RawMessage }
	}
	if json.Unmarshal(raw, &doc) != nil {
		return nil
	}
	var all []json.RawMessage
	for _, cell := range doc.Cells {
		all = append(all, cell.Outputs...)
	}
	return all
}

// checkResult checks what holds for every result.
func checkResult(t *testing.T, r *notebook.Result) {
	t.Helper()
	names := map[string]bool{}
	require.LessOrEqual(t, len(r.Outputs), fuzzLimits.MaxOutputs)
	for _, out := range r.Outputs {
		requireText(t, out.Name+out.Text+out.Message+out.Traceback)
		for mediaType, datum := range out.Data {
			requireText(t, mediaType)
			set := 0
			if datum.Text != nil {
				set++
				require.True(t, utf8.ValidString(*datum.Text))
			}
			if datum.JSON != nil {
				set++
				require.True(t, jsontext.Value(datum.JSON).IsValid(), "%s", datum.JSON)
			}
			if datum.Blob != nil {
				set++
				require.False(t, names[datum.Blob.Name], datum.Blob.Name)
				names[datum.Blob.Name] = true
				require.LessOrEqual(t, int64(len(datum.Blob.Bytes)), fuzzLimits.MaxBlobBytes)
				require.GreaterOrEqual(t, datum.Blob.Width, 0)
				require.GreaterOrEqual(t, datum.Blob.Height, 0)
			}
			require.Equal(t, 1, set)
		}
	}
	require.LessOrEqual(t, len(names), fuzzLimits.MaxBlobs)
	require.LessOrEqual(t, len(r.Dropped), 101)
	for _, dropped := range r.Dropped {
		requireText(t, dropped.MediaType+dropped.Reason)
	}
	if e := r.Error; e != nil {
		requireText(t, e.Name+e.Message+e.Traceback)
		require.GreaterOrEqual(t, e.Line, 0)
	}
	requireText(t, notebook.Text(r, exampleURL))
	_, err := json.Marshal(r)
	require.NoError(t, err)
}

func requireText(t *testing.T, text string) {
	t.Helper()
	require.Equal(t, text, notebook.Plain(text))
}

func FuzzAdopt(f *testing.F) {
	f.Add(sample(f, "version3"))
	f.Add([]byte(`{"nbformat":4,"cells":[{"cell_type":"code","source":["a","\u00e9"],"x":{"y":1e5}},{"cell_type":"raw","source":"","id":"cell-0"}]}`))
	f.Add([]byte(`{"nbformat":4,"nbformat_minor":2,"metadata":{"kernelspec":{"language":"R"}},"cells":[{"cell_type":"code","source":""}]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		notebook.Language(raw)
		adopted, err := notebook.Adopt(raw, python)
		if err != nil {
			require.ErrorAs(t, err, new(*notebook.InvalidError))
			require.True(t, utf8.ValidString(err.Error()))
			return
		}
		var head map[string]any
		if require.NoError(t, json.Unmarshal(raw, &head)); head["nbformat"] != 3.0 {
			require.Equal(t, sources(t, raw), sources(t, adopted))
		}
		require.Equal(t, "python", notebook.Language(adopted))

		again, err := notebook.Adopt(adopted, python)
		require.NoError(t, err)
		require.Equal(t, string(adopted), string(again))

		result, err := notebook.Decode(adopted, notebook.Limits{})
		require.NoError(t, err)
		require.Empty(t, result.Outputs)
		require.Empty(t, result.Dropped)
	})
}

func FuzzPlain(f *testing.F) {
	f.Add("50%\r100%\n\x1b[31mred\x1b[0m\b\b\x1b[2K\x1b[A\x1b]8;;u\x1b\\link\x1b]8;;\a\u009b1m\xff")
	f.Add("a\nb\x1b[2F\x1b[J\x1b[999C\x1b(B\x1bPq\x1b\\\x00\x7f")
	f.Fuzz(checkPlain)
}
