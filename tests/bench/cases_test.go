package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCompareFile(t *testing.T) {
	f := &expectedFile{name: "f", bytes: 12, block: []byte("abcd")}
	for _, c := range []struct {
		desc, content, wrong string
	}{
		{"the file", "abcdabcdabcd", ""},
		{"short by a block", "abcdabcd", "has 8 bytes"},
		{"short by a byte", "abcdabcdabc", "has 11 bytes"},
		{"long", "abcdabcdabcda", "has 13 bytes"},
		{"another byte", "abcdabxdabcd", "from byte 4"},
		{"another last byte", "abcdabcdabcx", "from byte 8"},
		{"empty", "", "has 0 bytes"},
	} {
		t.Run(c.desc, func(t *testing.T) {
			err := f.compare(strings.NewReader(c.content))
			if c.wrong == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.wrong)
		})
	}
}

var png = append(bytes.Clone(pngSignature), "the rest"...)

// TestCheckReply: a wrong reply is seen, whatever is wrong with it.
func TestCheckReply(t *testing.T) {
	c := benchCase{name: "c", text: []string{"42"}, image: true, file: &expectedFile{name: "f", bytes: 3, sha256: "abc"}}
	good := func() map[string]any {
		return map[string]any{
			"status": "ok", "text": "it is 42",
			"images": []any{map[string]any{"bytes": len(png), "width": 640, "data": png}},
			"files":  []any{map[string]any{"name": "f", "bytes": 3, "sha256": "abc"}},
		}
	}
	image := func(r map[string]any) map[string]any { return r["images"].([]any)[0].(map[string]any) }
	file := func(r map[string]any) map[string]any { return r["files"].([]any)[0].(map[string]any) }
	for _, w := range []struct {
		desc   string
		change func(map[string]any)
		wrong  string
	}{
		{"right", func(map[string]any) {}, ""},
		{"a status", func(r map[string]any) { r["status"] = "timeout" }, `status "timeout"`},
		{"a text", func(r map[string]any) { r["text"] = "it is 41" }, `"42" is not in the text`},
		{"no image", func(r map[string]any) { r["images"] = nil }, "0 images"},
		{"an image that is none", func(r map[string]any) { image(r)["data"] = []byte("JFIF") }, "no PNG"},
		{"a cut image", func(r map[string]any) { image(r)["bytes"] = 1000 }, "no PNG"},
		{"no file", func(r map[string]any) { r["files"] = nil }, "0 files"},
		{"a file's size", func(r map[string]any) { file(r)["bytes"] = 2 }, "2 bytes"},
		{"a file's hash", func(r map[string]any) { file(r)["sha256"] = "abd" }, "sha256 abd"},
	} {
		t.Run(w.desc, func(t *testing.T) {
			r := good()
			w.change(r)
			raw, err := json.Marshal(r)
			require.NoError(t, err)
			err = c.checkReply(raw)
			if w.wrong == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, w.wrong)
		})
	}
	require.Error(t, c.checkReply([]byte("<html>")))
}

func TestCheckNotebook(t *testing.T) {
	notebook := func(outputs string) []byte { return []byte(`{"cells": [{"outputs": [` + outputs + `]}]}`) }
	text := `{"output_type": "stream", "name": "stdout", "text": ["it ", "is 42\n"]}`
	plot := `{"output_type": "display_data", "data": {"image/png": "` + base64.StdEncoding.EncodeToString(png) + `\n", "text/plain": "<Figure>"}}`
	c := benchCase{name: "c", text: []string{"it is 42"}, image: true}
	require.NoError(t, c.checkNotebook(notebook(text+","+plot)))
	require.NoError(t, c.checkNotebook(notebook(`{"output_type": "stream", "text": "it is 42"},`+plot)), "text may be one string")
	require.ErrorContains(t, c.checkNotebook(notebook(text)), "0 images")
	require.ErrorContains(t, c.checkNotebook(notebook(plot)), "is not in the text")
	require.ErrorContains(t, c.checkNotebook(notebook(text+`,{"output_type": "error", "ename": "E"}`)), "failed")
	require.Error(t, c.checkNotebook([]byte("no notebook")))
}
