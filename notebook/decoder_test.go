package notebook_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image"
	"image/color/palette"
	"image/gif"
	"image/jpeg"
	"image/png"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"notebox/notebook"
)

// executed makes an executed notebook of code cells, each of which is the JSON
// of its outputs.
func executed(cells ...string) []byte {
	for i, outputs := range cells {
		cells[i] = fmt.Sprintf(`{"cell_type":"code","execution_count":%d,"source":"","metadata":{},"outputs":[%s]}`, i+1, outputs)
	}
	return []byte(`{"cells":[` + strings.Join(cells, ",") + `],"metadata":{},"nbformat":4,"nbformat_minor":5}`)
}

func decode(t testing.TB, raw []byte) *notebook.Result {
	t.Helper()
	result, err := notebook.Decode(raw, notebook.Limits{})
	require.NoError(t, err)
	return result
}

func stream(name, text string) string {
	return fmt.Sprintf(`{"output_type":"stream","name":%q,"text":%s}`, name, quoted(text))
}

func display(mediaType, value string) string {
	return fmt.Sprintf(`{"output_type":"display_data","metadata":{},"data":{%q:%s}}`, mediaType, value)
}

func quoted(s string) string {
	raw, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(raw)
}

func base64JSON(data []byte) string { return quoted(base64.StdEncoding.EncodeToString(data)) }

func pngOf(width, height int) []byte {
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, width, height))); err != nil {
		panic(err)
	}
	return b.Bytes()
}

func jpegOf(width, height int) []byte {
	var b bytes.Buffer
	if err := jpeg.Encode(&b, image.NewGray(image.Rect(0, 0, width, height)), nil); err != nil {
		panic(err)
	}
	return b.Bytes()
}

func gifOf(width, height int) []byte {
	var b bytes.Buffer
	if err := gif.Encode(&b, image.NewPaletted(image.Rect(0, 0, width, height), palette.Plan9), nil); err != nil {
		panic(err)
	}
	return b.Bytes()
}

// webpOf is a lossless WebP's header: 14 bits of width-1 and of height-1.
func webpOf(width, height int) []byte {
	bits := uint32(width-1) | uint32(height-1)<<14
	vp8l := []byte{0x2f, byte(bits), byte(bits >> 8), byte(bits >> 16), byte(bits >> 24), 0}
	return []byte("RIFF\x12\x00\x00\x00WEBPVP8L\x06\x00\x00\x00" + string(vp8l))
}

func TestDecodeStreams(t *testing.T) {
	for _, test := range []struct {
		desc  string
		cells []string
		want  []notebook.Output
	}{
		{
			"adjacent ones of a name and cell are one, normalised as a whole",
			[]string{stream("stdout", "10%\r") + "," + stream("stdout", "100%\n") + "," + stream("stderr", "e") + "," + stream("stdout", "x")},
			[]notebook.Output{
				{Type: notebook.TypeStream, Name: "stdout", Text: "100%\n"},
				{Type: notebook.TypeStream, Name: "stderr", Text: "e"},
				{Type: notebook.TypeStream, Name: "stdout", Text: "x"},
			},
		},
		{
			"two cells are two",
			[]string{stream("stdout", "a"), stream("stdout", "b")},
			[]notebook.Output{
				{Cell: 0, Type: notebook.TypeStream, Name: "stdout", Text: "a"},
				{Cell: 1, Type: notebook.TypeStream, Name: "stdout", Text: "b"},
			},
		},
		{
			"text may be a list",
			[]string{`{"output_type":"stream","name":"stdout","text":["a\n","b"]}`},
			[]notebook.Output{{Type: notebook.TypeStream, Name: "stdout", Text: "a\nb"}},
		},
		{
			"what shows nothing is no output",
			[]string{stream("stdout", "") + "," + stream("stderr", "\x1b[0m\x00") + `,{"output_type":"display_data","data":{}}`},
			nil,
		},
		{
			"lone surrogates and broken UTF-8 are replaced",
			[]string{`{"output_type":"stream","name":"stdout","text":"a\ud800b` + "\xff" + `"}`},
			[]notebook.Output{{Type: notebook.TypeStream, Name: "stdout", Text: "a\ufffdb\ufffd"}},
		},
	} {
		t.Run(test.desc, func(t *testing.T) {
			result := decode(t, executed(test.cells...))
			require.Equal(t, test.want, result.Outputs)
			require.Empty(t, result.Dropped)
		})
	}
}

func TestDecodeBlobs(t *testing.T) {
	svg := `<?xml version="1.0" encoding="latin-1"?><!DOCTYPE svg><!-- c --><svg viewBox="0 0 30.4 20" width="100%"></svg>`
	for _, test := range []struct {
		desc          string
		output        string
		name          string
		bytes         []byte
		width, height int
	}{
		{"png", display("image/png", base64JSON(pngOf(6, 4))), "image_0.png", pngOf(6, 4), 6, 4},
		{"jpeg", display("image/jpeg", base64JSON(jpegOf(6, 4))), "image_0.jpg", jpegOf(6, 4), 6, 4},
		{"gif", display("image/gif", base64JSON(gifOf(6, 4))), "image_0.gif", gifOf(6, 4), 6, 4},
		{"webp", display("image/webp", base64JSON(webpOf(6, 4))), "image_0.webp", webpOf(6, 4), 6, 4},
		{"a png whose header is broken has no size", display("image/png", base64JSON(pngOf(6, 4)[:12])), "image_0.png", pngOf(6, 4)[:12], 0, 0},
		{"an upper-case type", display("IMAGE/PNG", base64JSON(pngOf(1, 1))), "image_0.png", pngOf(1, 1), 1, 1},
		{"base64 with newlines", display("image/gif", `"R0lG\nODlh\r\n"`), "image_0.gif", []byte("GIF89a"), 0, 0},
		{"base64 as a list", display("image/gif", `["R0lG\n","ODlh\n"]`), "image_0.gif", []byte("GIF89a"), 0, 0},
		{"an image type without a check", display("image/x-icon", `"AAEC"`), "image_0.bin", []byte{0, 1, 2}, 0, 0},
		{"pdf", display("application/pdf", base64JSON([]byte("%PDF-1.7"))), "output_0.pdf", []byte("%PDF-1.7"), 0, 0},
		{"audio", display("audio/wav", `"AAEC"`), "output_0.wav", []byte{0, 1, 2}, 0, 0},
		{"unknown audio", display("audio/x-y", `"AAEC"`), "output_0.bin", []byte{0, 1, 2}, 0, 0},
		{"octets", display("application/octet-stream", `"AAEC"`), "output_0.bin", []byte{0, 1, 2}, 0, 0},
		{"svg is text; relative sizes are the viewBox's", display("image/svg+xml", quoted(svg)), "image_0.svg", []byte(svg), 30, 20},
		{"svg in a list, sizes with units", display("image/svg+xml", `["<svg width='72pt' ","height='1in'/>"]`), "image_0.svg", []byte(`<svg width='72pt' height='1in'/>`), 96, 96},
		{"svg without sizes", display("image/svg+xml", `"<svg width='1e99' height='-1'/>"`), "image_0.svg", []byte(`<svg width='1e99' height='-1'/>`), 0, 0},
	} {
		t.Run(test.desc, func(t *testing.T) {
			result := decode(t, executed(test.output))
			require.Empty(t, result.Dropped)
			require.Len(t, result.Outputs, 1)
			for mediaType, datum := range result.Outputs[0].Data {
				require.Equal(t, &notebook.Blob{
					Name: test.name, MediaType: mediaType, Bytes: test.bytes, Width: test.width, Height: test.height,
				}, datum.Blob)
			}
		})
	}
}

func TestDecodeTextAndJSON(t *testing.T) {
	for _, test := range []struct {
		desc, mediaType, value string
		text, json             string // which of them
	}{
		{"text/plain is normalised", "text/plain", `"\u001b[31mred\u001b[0m\r\n"`, "red\n", ""},
		{"other text is not", "text/html", `["<p>\r\n","\u001b</p>"]`, "<p>\r\n\x1b</p>", ""},
		{"an unknown application type is text", "application/x-y", `"AAEC"`, "AAEC", ""},
		{"parameters are cut off", "text/x-y; charset=utf-8", `"a"`, "a", ""},
		{"JSON of any type", "application/json", `[1, "a", null]`, "", `[1,"a",null]`},
		{"a JSON string", "application/vnd.x.v1+json", `"text"`, "", `"text"`},
		{"big numbers stay", "application/json", `{"a": 12345678901234567890.10}`, "", `{"a":12345678901234567890.10}`},
		{"NaN is null, also where JSON has strings with the word", "application/json", `{"NaN":[NaN,-Infinity,Infinity],"b":"-NaN \" Infinity"}`, "", `{"NaN":[null,null,null],"b":"-NaN \" Infinity"}`},
		{"JSON is made valid UTF-8", "application/json", `"\ud800` + "\xff" + `"`, "", `"` + "\ufffd\ufffd" + `"`},
	} {
		t.Run(test.desc, func(t *testing.T) {
			result := decode(t, executed(display(test.mediaType, test.value)))
			require.Empty(t, result.Dropped)
			require.Len(t, result.Outputs, 1)
			mediaType, _, _ := strings.Cut(test.mediaType, ";")
			datum := result.Outputs[0].Data[mediaType]
			if test.json != "" {
				require.Nil(t, datum.Text)
				require.Equal(t, test.json, string(datum.JSON))
				return
			}
			require.Nil(t, datum.JSON)
			require.Equal(t, test.text, *datum.Text)
		})
	}
}

func TestDecodeDrops(t *testing.T) {
	for _, test := range []struct {
		desc, outputs, mediaType, reason string
	}{
		{"an output that is none", `1`, "", "the output is no object"},
		{"an unknown type", `{"output_type":"pyout\u001b[0m"}`, "", `the output is of the unknown type "pyout\x1b[0m"`},
		{"no type", `{}`, "", `the output is of the unknown type ""`},
		{"an unknown stream", stream("stdin", "x"), "", `the stream is named "stdin", neither stdout nor stderr`},
		{"a stream's text", `{"output_type":"stream","name":"stdout","text":[1]}`, "", "the text of stdout is no string"},
		{"no data", `{"output_type":"display_data"}`, "", "the data of the output is empty"},
		{"data of a wrong type", `{"output_type":"execute_result","data":[]}`, "", "the data of the output is a list, want an object"},
		{"a key that is no type", display("foo", `"x"`), "", `the output has data under "foo", which is no media type`},
		{"a key that splits a header", display("text/x\r\na", `"x"`), "", `the output has data under "text/x\r\na", which is no media type`},
		{"a key of 1 MB", display(strings.Repeat("a", 1<<20), `"x"`), "", `the output has data under "` + strings.Repeat("a", 128) + `…", which is no media type`},
		{"the same type twice", `{"output_type":"display_data","data":{"text/plain":"x","TEXT/plain":"y"}}`, "text/plain", "the media type is given twice"},
		{"a value that is no string", display("image/png", `17`), "image/png", "the value is no string and no list of strings"},
		{"text that is no string", display("text/plain", `{"a":1}`), "text/plain", "the value is no string and no list of strings"},
		{"a list with another thing in it", display("image/png", `["aaaa", null]`), "image/png", "the value is no string and no list of strings"},
		{"no base64", display("image/png", `"ÿ"`), "image/png", "the data is not base64"},
		{"base64 that is cut off", display("audio/wav", `"AAE"`), "audio/wav", "the data is not base64"},
		{"no data in it", display("audio/wav", `""`), "audio/wav", "the data is empty"},
		{"a png that is none", display("image/png", `"AAEC"`), "image/png", "the data is not of this type"},
		{"a jpeg that is a png", display("image/jpeg", base64JSON(pngOf(1, 1))), "image/jpeg", "the data is not of this type"},
		{"a webp that is a wave file", display("image/webp", base64JSON([]byte("RIFF0000WAVE"))), "image/webp", "the data is not of this type"},
		{"a pdf that is HTML", display("application/pdf", base64JSON([]byte("<html>"))), "application/pdf", "the data is not of this type"},
		{"an svg that is HTML", display("image/svg+xml", `"<html><svg/></html>"`), "image/svg+xml", "the data is not of this type"},
		{"an svg that is no XML", display("image/svg+xml", `"<<<"`), "image/svg+xml", "the data is not of this type"},
		{"JSON with a name twice", display("application/json", `{"a":1,"\u0061":2}`), "application/json", "the JSON has a name twice in one object"},
		{"JSON that is too deep", display("application/json", nested(257)), "application/json", "the JSON nests deeper than 256 levels"},
	} {
		t.Run(test.desc, func(t *testing.T) {
			result := decode(t, executed(stream("stdout", "before"), test.outputs, stream("stdout", "after")))
			require.Equal(t, []notebook.Dropped{{Cell: 1, MediaType: test.mediaType, Reason: test.reason}}, result.Dropped)
			require.Equal(t, "before", result.Outputs[0].Text)
			require.Equal(t, "after", result.Outputs[len(result.Outputs)-1].Text)
		})
	}
}

func TestDecodeOddCells(t *testing.T) {
	result := decode(t, []byte(`{"nbformat":4,"cells":[7,`+
		`{"cell_type":"markdown","outputs":[{"output_type":"stream","name":"stdout","text":"no code"}]},`+
		`{"cell_type":"code","outputs":{}},`+
		`{"cell_type":"code"},`+
		`{"cell_type":"code","metadata":{"tags":7},"source":7,"execution_count":"x","outputs":[`+stream("stdout", "a")+`]}]}`))
	require.Equal(t, []notebook.Output{{Cell: 4, Type: notebook.TypeStream, Name: "stdout", Text: "a"}}, result.Outputs)
	require.Equal(t, []notebook.Dropped{
		{Cell: 0, Reason: "the cell is a number, want an object"},
		{Cell: 2, Reason: "the list of outputs is an object, want a list"},
	}, result.Dropped)
}

func TestDecodeRefusesWhatIsNoNotebook(t *testing.T) {
	for _, test := range []struct {
		desc, raw, want string
	}{
		{"nothing", "", "the notebook is empty"},
		{"cut off", `{"nbformat":4,"cells":[`, "the notebook is not valid JSON: unexpected EOF at byte 23"},
		{"a list", `[]`, "the notebook is a list, want an object"},
		{"nbformat 3", `{"nbformat":3,"cells":[]}`, `nbformat is "3", want 4`},
		{"no nbformat", `{"cells":[]}`, `nbformat is "", want 4`},
		{"no cells", `{"nbformat":4}`, "cells is not a list"},
		{"a million brackets", strings.Repeat("[", 1_000_000), "the notebook is a list, want an object"},
		{"a million brackets inside", `{"cells":` + strings.Repeat("[", 1_000_000), "the notebook is not valid JSON: exceeded max depth at byte 10008"},
	} {
		t.Run(test.desc, func(t *testing.T) {
			_, err := notebook.Decode([]byte(test.raw), notebook.Limits{})
			require.EqualError(t, err, test.want)
			require.ErrorAs(t, err, new(*notebook.InvalidError))
		})
	}
}
