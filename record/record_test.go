package record_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"notebox/record"
)

const book = `{"nbformat":4,"metadata":{"kernelspec":{"language":"python"},"widgets":{"application/vnd.jupyter.widget-state+json":{"state":{}}}},"cells":[
	{"cell_type":"markdown","source":"intro\n## The *title*"},
	{"cell_type":"raw","source":"not shown"},
	{"cell_type":"code","source":"print(1)"},
	{"cell_type":"code","source":"1/0"}]}`

const answer = `{"status":"error","hint":"h","usage":{"wall_ms":1},"language":"",
	"outputs":[
		{"cell":2,"type":"stream","name":"stdout","text":"one\ntwo\n"},
		{"cell":2,"type":"display","data":{"text/plain":"<Figure>","image/png":{"name":"image_0.png","url":"https://store/secret"}}},
		{"cell":2,"type":"display","data":{"application/json":{"name":"a","url":"b"}}},
		{"cell":3,"type":"error","name":"E","message":"m","traceback":"t"},
		{"cell":1,"type":"stream","name":"stdout","text":"of no cell"},{"cell":9,"type":"stream"},7],
	"images":[{"name":"image_0.png","media_type":"image/png","bytes":3,"url":"https://store/secret"},{"name":"image_1.png","media_type":"image/png","bytes":4,"error":"lost"}],
	"files":[{"path":"/mnt/data/a.csv","name":"a.csv","bytes":1,"url":"https://store/secret"}],
	"error":{"name":"E","message":"m","cell":3,"line":1},"notebook":{"url":"https://store/secret"},"text":"https://store/secret","session":{"id":"ses_secret"}}`

func TestNew(t *testing.T) {
	run, err := record.New([]byte(book), []byte(answer), func(name string) ([]byte, error) { return []byte(name[6:7] + "xy"), nil }, record.Bounds{})
	require.NoError(t, err)
	require.Equal(t, "The *title*", run.Title)
	require.Equal(t, "one two E: m", run.Summary())
	require.Equal(t, "python", run.Language)
	require.Len(t, run.Cells, 3, "what is neither code nor text has no place")
	require.Equal(t, "intro\n## The *title*", run.Cells[0].Text)
	require.Len(t, run.Cells[1].Outputs, 3)
	require.JSONEq(t, `{"cell":2,"type":"display","data":{"text/plain":"<Figure>","image/png":{"name":"image_0.png","url":""}}}`, string(run.Cells[1].Outputs[1]))
	require.JSONEq(t, `{"cell":2,"type":"display","data":{"application/json":{"name":"a","url":"b"}}}`, string(run.Cells[1].Outputs[2]))
	require.Equal(t, 1, run.Error.Cell, "cells with code are counted")
	require.Equal(t, "0xy", string(run.Images[0].Data))
	require.Nil(t, run.Images[1].Data)
	require.Equal(t, "image_0.png", run.Picture().Name)
	require.JSONEq(t, `{"state":{}}`, string(run.Widgets))
	require.Equal(t, []string{"Outputs that are left out, as this page may not be larger: 3."}, run.Notes)
	require.True(t, run.Has("application/json"))
	require.False(t, run.Has("text/html"))
	raw, err := json.Marshal(run)
	require.NoError(t, err)
	require.NotContains(t, string(raw), "secret", "no address, and no session")
	require.NotContains(t, string(raw), "null")
}

func TestBounds(t *testing.T) {
	long := strings.Repeat("x", 5000)
	withLong := strings.Replace(answer, `one\ntwo\n`, long, 1)
	for _, c := range []struct {
		desc   string
		bounds record.Bounds
		note   string
		check  func(*testing.T, *record.Run)
	}{
		{"text of a stream", record.Bounds{Text: 3000}, "Text is cut", func(t *testing.T, r *record.Run) {
			require.Contains(t, string(r.Cells[1].Outputs[0]), "bytes left out")
			require.Less(t, len(r.Cells[1].Outputs[0]), 3200)
			require.Len(t, r.Cells[1].Outputs, 1)
		}},
		{"all outputs", record.Bounds{Text: 100}, "Outputs that are left out", func(t *testing.T, r *record.Run) {
			require.Equal(t, "print(1)", r.Cells[1].Text)
		}},
		{"all but why it failed", record.Bounds{Text: 100}, "Outputs that are left out", func(t *testing.T, r *record.Run) {
			require.Len(t, r.Cells[2].Outputs, 1)
			require.Contains(t, string(r.Cells[2].Outputs[0]), `"traceback":"t"`)
			require.Equal(t, []any{"h", "/mnt/data/a.csv"}, []any{r.Hint, r.Files[0].Path})
		}},
		{"widgets", record.Bounds{Text: 100}, "The state of its widgets", func(t *testing.T, r *record.Run) { require.Nil(t, r.Widgets) }},
		{"code", record.Bounds{Text: 4}, "The code is longer", func(t *testing.T, r *record.Run) { require.Contains(t, r.Cells[0].Text, "left out") }},
		{"images", record.Bounds{Images: 2}, "Images that are not shown, as they are larger than this page may be: 1.", func(t *testing.T, r *record.Run) {
			require.Nil(t, r.Images[0].Data)
			require.Equal(t, "image_0.png", r.Images[0].Name)
		}},
	} {
		t.Run(c.desc, func(t *testing.T) {
			b := c.bounds
			run, err := record.New([]byte(book), []byte(withLong), func(string) ([]byte, error) { return []byte("abc"), nil }, b)
			require.NoError(t, err)
			require.Contains(t, strings.Join(run.Notes, "\n"), c.note)
			c.check(t, run)
		})
	}
}

// TestLongTracebacks are cut: their beginning and their end say what happened.
func TestLongTracebacks(t *testing.T) {
	long := "first " + strings.Repeat("x", 1<<20) + " last"
	run, err := record.New([]byte(book), []byte(strings.ReplaceAll(answer, `"traceback":"t"`, `"traceback":"`+long+`"`)), nil, record.Bounds{Text: 100 << 10})
	require.NoError(t, err)
	require.Len(t, run.Cells[2].Outputs, 1)
	raw := string(run.Cells[2].Outputs[0])
	require.Less(t, len(raw), 70<<10)
	require.Contains(t, raw, "first ")
	require.Contains(t, raw, " last")
	require.Contains(t, raw, "left out")

	// A long message without a traceback: a reader expects all fields.
	run, err = record.New([]byte(book), []byte(strings.ReplaceAll(answer, `"name":"E","message":"m","traceback":"t"`, `"name":"","message":"`+long+`","traceback":""`)), nil, record.Bounds{})
	require.NoError(t, err)
	require.Contains(t, string(run.Cells[2].Outputs[0]), `"name":""`)
	require.Contains(t, string(run.Cells[2].Outputs[0]), `"traceback":""`)
}

// TestManyTracebacks: the code has room before them, and the last one before the others.
func TestManyTracebacks(t *testing.T) {
	const first = `{"cell":3,"type":"error","name":"E","message":"m","traceback":"t"},`
	many := strings.Replace(answer, first, strings.Repeat(strings.Replace(first, `"t"`, `"early"`, 1), 100)+first, 1)
	run, err := record.New([]byte(book), []byte(many), nil, record.Bounds{Text: 200})
	require.NoError(t, err)
	require.Equal(t, "print(1)", run.Cells[1].Text)
	outputs := run.Cells[2].Outputs
	require.NotEmpty(t, outputs)
	require.Contains(t, string(outputs[len(outputs)-1]), `"traceback":"t"`)
}

func TestTitle(t *testing.T) {
	for _, c := range []struct{ desc, kind, text, title string }{
		{"a comment", "code", "\n## The sum\nx", "The sum"},
		{"a comment of TypeScript", "code", "// The sum\nx", "The sum"},
		{"code", "code", "x = 1", "x = 1"},
		{"an interpreter", "code", "#!/bin/bash\necho", "echo"},
		{"a heading after a text", "markdown", "a text\n# The sum", "The sum"},
		{"nothing", "code", "\n#\n", "A run"},
		{"a long line", "code", strings.Repeat("x", 100), strings.Repeat("x", 79) + "…"},
		{"what turns the direction", "code", "# a\u202eb\u0000c", "a b c"},
	} {
		t.Run(c.desc, func(t *testing.T) {
			raw, err := json.Marshal(map[string]any{"nbformat": 4, "cells": []any{map[string]any{"cell_type": c.kind, "source": c.text}}})
			require.NoError(t, err)
			run, err := record.New(raw, []byte(`{}`), nil, record.Bounds{})
			require.NoError(t, err)
			require.Equal(t, c.title, run.Title)
		})
	}
}

func TestNewFails(t *testing.T) {
	for _, c := range []struct{ desc, book, answer, said string }{
		{"no notebook", "x", answer, "the notebook"},
		{"no reply", book, "[", "the reply"},
		{"the store", book, answer, "away"},
	} {
		t.Run(c.desc, func(t *testing.T) {
			_, err := record.New([]byte(c.book), []byte(c.answer), func(string) ([]byte, error) { return nil, errors.New("away") }, record.Bounds{})
			require.ErrorContains(t, err, c.said)
		})
	}
}

// FuzzNew: what is in a store, whoever put it there, makes a record that can be written, within
// its bounds, or an error.
func FuzzNew(f *testing.F) {
	f.Add([]byte(book), []byte(answer))
	f.Add([]byte(`{"nbformat":4,"cells":[]}`), []byte(`{"outputs":[{"cell":0,"data":{"image/png":{"name":null,"url":7}}}],"error":{"cell":-1}}`))
	f.Fuzz(func(t *testing.T, book, answer []byte) {
		run, err := record.New(book, answer, nil, record.Bounds{Text: 4096, Images: 100})
		if err != nil {
			return
		}
		raw, err := json.Marshal(run)
		require.NoError(t, err)
		require.True(t, json.Valid(raw))
		require.LessOrEqual(t, len([]rune(run.Title)), 80)
		require.LessOrEqual(t, len([]rune(run.Summary())), 300)
		require.NotContains(t, run.Title+run.Summary(), "\n")
	})
}

func ExampleNew() {
	run, _ := record.New(
		[]byte(`{"nbformat":4,"cells":[{"cell_type":"code","source":"# Six times seven\n6*7"}]}`),
		[]byte(`{"status":"ok","outputs":[{"cell":0,"type":"result","data":{"text/plain":"42"}}]}`), nil, record.Bounds{})
	fmt.Println(run.Title, "is", run.Summary())
	// Output: Six times seven is 42
}
