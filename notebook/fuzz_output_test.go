package notebook_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"notebox/notebook"
)

// FuzzBundle has a display of any media type with any value: JSON if it is some, else
// a string of these bytes.
func FuzzBundle(f *testing.F) {
	f.Add("text/plain", []byte("a\r\x1b[31mb"))
	f.Add("text/html", []byte(`["<b>a","</b>"]`))
	f.Add("application/vnd.x+json; v=1", []byte(`{"a":[NaN,1e999,"\ud800"],"a":2}`))
	f.Add("image/svg+xml", []byte(`<?xml version="1.0" encoding="x"?><svg viewBox="0,0 1e9 2"/>`))
	f.Add("IMAGE/PNG", []byte("iVBORw0K\nGgo="))
	f.Add("a/b/c", []byte(`null`))
	f.Fuzz(func(t *testing.T, mediaType string, value []byte) {
		if !json.Valid(value) {
			value = []byte(quoted(string(value)))
		}
		raw := []byte(`{"output_type":"display_data","metadata":{},"data":{"text/plain":"<x>",` + quoted(mediaType) + `:` + string(value) + `}}`)
		result, err := notebook.Decode(executed(string(raw)), fuzzLimits)
		require.NoError(t, err)
		checkResult(t, result)
		if out, ok := notebook.NewDecoder(fuzzLimits).Update(0, raw); ok {
			checkResult(t, &notebook.Result{Outputs: []notebook.Output{out}})
		}
	})
}

// FuzzImage holds that an image comes out as it went in, or not at all.
func FuzzImage(f *testing.F) {
	types := []string{"image/png", "image/jpeg", "image/gif", "image/webp", "application/pdf", "image/svg+xml", "image/bmp"}
	f.Add(uint8(0), pngOf(2, 3))
	f.Add(uint8(1), jpegOf(2, 3))
	f.Add(uint8(2), gifOf(2, 3))
	f.Add(uint8(3), webpOf(2, 3))
	f.Add(uint8(4), []byte("%PDF-1.7"))
	f.Add(uint8(5), []byte(`<!DOCTYPE svg [<!ENTITY a "b">]><svg width="10e9cm" height="-1" viewBox="0 0 3 4"/>`))
	f.Add(uint8(6), []byte("BM"))
	f.Fuzz(func(t *testing.T, kind uint8, data []byte) {
		mediaType := types[int(kind)%len(types)]
		value := quoted(base64.StdEncoding.EncodeToString(data))
		if mediaType == "image/svg+xml" {
			data = bytes.ToValidUTF8(data, nil)
			value = quoted(string(data))
		}
		result, err := notebook.Decode(executed(display(mediaType, value)), fuzzLimits)
		require.NoError(t, err)
		checkResult(t, result)
		for _, out := range result.Outputs {
			if blob := out.Data[mediaType].Blob; blob != nil {
				require.Equal(t, data, blob.Bytes)
			}
		}
		require.Equal(t, 1, len(result.Outputs)+len(result.Dropped))
	})
}

// FuzzHTML has a page where only its text is of use.
func FuzzHTML(f *testing.F) {
	f.Add(`<table><tr><th>a<td>b</table><script>x</script><pre> c</pre>&lt;&NotEqualTilde;`)
	f.Add("<svg><title>x</svg>\x00<!-- <p> --><![CDATA[y]]>")
	f.Add("<textarea><plaintext><style>")
	f.Fuzz(func(t *testing.T, source string) {
		source = strings.ToValidUTF8(source, "\ufffd")
		text := notebook.Text(&notebook.Result{Outputs: []notebook.Output{{
			Type: notebook.TypeDisplay, Data: map[string]notebook.Datum{"text/html": {Text: &source}},
		}}}, nil)
		requireText(t, text)
		require.LessOrEqual(t, len(text), 3*len(source)+100)
	})
}

// FuzzError has a traceback of any text, for a cell of any source.
func FuzzError(f *testing.F) {
	f.Add("ValueError", "m", "Cell In[1], line 2\nx\nValueError: m", "\n\nx", 1)
	f.Add("E", "m\x1b[0m (a, line 3)", "  Cell In[1], line 99999999999999999999", "%%time\nx", 1)
	f.Add("", "", "File <timed exec>:9223372036854775807", "%%time", 0)
	f.Add("ExceptionGroup", "g", "  + Exception Group Traceback (most recent call last):\n  |   File \"<ipython-input-1>\", line 1\n  +-+---", "", -1)
	f.Fuzz(func(t *testing.T, name, message, traceback, source string, count int) {
		frames, err := json.Marshal(strings.SplitAfter(traceback, "\n\n"))
		require.NoError(t, err)
		number, err := json.Marshal(count)
		require.NoError(t, err)
		raw := `{"nbformat":4,"cells":[{"cell_type":"code","execution_count":` + string(number) + `,"source":` + quoted(source) +
			`,"outputs":[{"output_type":"error","ename":` + quoted(name) + `,"evalue":` + quoted(message) + `,"traceback":` + string(frames) + `}]}]}`
		result, err := notebook.Decode([]byte(raw), fuzzLimits)
		require.NoError(t, err)
		checkResult(t, result)
		require.NotNil(t, result.Error)
	})
}

// maxFollowed is how long a text may be of which FuzzLive wants that it ends as Plain has
// it, in bytes: below what a Decoder holds of a sequence that has not ended.
const maxFollowed = 250

// FuzzLive has a text come in pieces, whose lengths are those in cuts.
func FuzzLive(f *testing.F) {
	f.Add("50%\r100%\n\x1b[31mred\x1b[0m\b\b\x1b[2K\x1b[Ax", []byte{1, 2, 3})
	f.Add("a\nb\n\x1b[2Ac\x1b]0;title\ad\u009b1me", []byte{5, 1})
	f.Add(strings.Repeat("ü", 5000)+"\rx\n\x1b[9A", []byte{255, 0, 9})
	f.Fuzz(func(t *testing.T, text string, cuts []byte) {
		text = strings.ToValidUTF8(text, "\ufffd")
		d, shown := notebook.NewDecoder(notebook.Limits{}), ""
		rest := []rune(text)
		for i := 0; len(rest) > 0; i++ {
			n := len(rest)
			if i < len(cuts) {
				n = min(n, int(cuts[i]))
			}
			out, ok := d.Output(0, []byte(stream("stdout", string(rest[:n]))))
			rest = rest[n:]
			if !ok {
				continue
			}
			requireText(t, out.Text)
			require.LessOrEqual(t, out.Replaced, strings.Count(shown, "\n")+1)
			shown = show(shown, out)
		}
		if len(text) <= maxFollowed {
			require.Equal(t, notebook.Plain(text), shown)
		}
	})
}

// FuzzNew holds that code is taken exactly.
func FuzzNew(f *testing.F) {
	f.Add("print('\u2028</script>')", "")
	f.Add("\x00\"]}", "%%bash\r\n\ufeff")
	f.Add("\xed\xa0\x80", "\xff")
	f.Fuzz(func(t *testing.T, a, b string) {
		raw, err := notebook.New([]string{a, b}, python)
		require.Equal(t, utf8.ValidString(a+"\n"+b), err == nil)
		if err != nil {
			require.ErrorAs(t, err, new(*notebook.InvalidError))
			return
		}
		require.True(t, utf8.Valid(raw))
		require.Equal(t, []string{a, b}, sources(t, raw))
	})
}
