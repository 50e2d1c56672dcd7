package server

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/executor"
	"notebox/runner"
	"notebox/storage"
)

// onePixel is a PNG of 1 by 1.
const onePixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="

// failingStore fails at what a test wants it to.
type failingStore struct {
	Store
	fail func(key string) bool
}

func (f failingStore) Put(ctx context.Context, key string, content io.Reader, name string) (storage.Object, error) {
	if f.fail(key) {
		return storage.Object{}, errors.New("s3://internal-bucket: access denied")
	}
	return f.Store.Put(ctx, key, content, name)
}

func TestReplyHoldsAllOfTheContract(t *testing.T) {
	s := newService(t)
	s.run = func(ctx context.Context, spec runner.Spec, events runner.Sink) (*runner.Outcome, error) {
		err := events.File(ctx, "sub dir/out.csv", strings.NewReader("a,b\n1,2\n"))
		require.NoError(t, err)
		out := executed(spec, runner.StatusError,
			stdout("hello\n"),
			`{"output_type":"display_data","metadata":{},"data":{"text/plain":"<Figure>","image/png":"`+onePixel+`"}}`,
			`{"output_type":"execute_result","execution_count":1,"metadata":{},"data":{"text/plain":"7","application/json":{"a":[1]}}}`,
			raised("ZeroDivisionError", "division by zero"))
		out.Skipped = []runner.Skipped{{Path: "/mnt/data/pipe", Reason: "not a regular file"}}
		return out, nil
	}
	before := time.Now()
	a := s.postJSON(`{"code":"print('hello')"}`)
	r := s.replied(a)

	require.Regexp(t, `^run_[0-9A-HJKMNP-TV-Z]{26}$`, r.ID)
	require.Equal(t, "error", r.Status)
	require.Len(t, r.Outputs, 4)
	require.Equal(t, map[string]any{"cell": 0.0, "type": "stream", "name": "stdout", "text": "hello\n"}, r.Outputs[0])
	require.Equal(t, "display", r.Outputs[1]["type"])
	link := r.Outputs[1]["data"].(map[string]any)["image/png"].(map[string]any)
	require.Equal(t, "image_0.png", link["name"])
	require.Equal(t, map[string]any{"cell": 0.0, "type": "result", "data": map[string]any{
		"text/plain": "7", "application/json": map[string]any{"a": []any{1.0}},
	}}, r.Outputs[2])
	require.Equal(t, map[string]any{"cell": 0.0, "type": "error", "name": "ZeroDivisionError",
		"message": "division by zero", "traceback": "ZeroDivisionError: division by zero"}, r.Outputs[3])

	png, _ := base64.StdEncoding.DecodeString(onePixel)
	require.Equal(t, []map[string]any{{"name": "image_0.png", "media_type": "image/png", "bytes": float64(len(png)),
		"width": 1.0, "height": 1.0, "url": link["url"], "data": onePixel}}, r.Images)
	require.Equal(t, png, s.get(link["url"].(string)).body)

	require.Len(t, r.Files, 1)
	f := r.Files[0]
	require.Equal(t, "/mnt/data/sub dir/out.csv", f["path"])
	require.Equal(t, "out.csv", f["name"])
	require.Equal(t, "text/csv", f["media_type"])
	require.Equal(t, 8.0, f["bytes"])
	require.Equal(t, fmt.Sprintf("%x", sha256.Sum256([]byte("a,b\n1,2\n"))), f["sha256"])
	require.Equal(t, "a,b\n1,2\n", string(s.get(f["url"].(string)).body))
	expires, err := time.Parse(time.RFC3339, f["expires_at"].(string))
	require.NoError(t, err)
	require.WithinDuration(t, before.Add(storage.DefaultTTL), expires, time.Minute)

	require.Equal(t, []executor.Skipped{{Path: "/mnt/data/pipe", Reason: "not a regular file"}}, r.Skipped)
	require.Equal(t, "ZeroDivisionError", r.Error["name"])
	require.Contains(t, r.Hint, "ZeroDivisionError")
	require.False(t, r.Truncated)
	require.Equal(t, map[string]int64{"queue_ms": 1, "wall_ms": 12, "cpu_ms": 9, "peak_memory_bytes": 81e6}, r.Usage)
	require.Contains(t, r.Text, "hello\n")
	require.Contains(t, r.Text, "[image image_0.png: "+link["url"].(string)+"]")
	require.True(t, strings.HasSuffix(r.Text, "[file sub dir/out.csv: "+f["url"].(string)+"]\n"), r.Text)

	book := s.get(r.Notebook.URL)
	require.Equal(t, http.StatusOK, book.StatusCode)
	require.Contains(t, string(book.body), "ZeroDivisionError")
	require.Contains(t, book.Header.Get("Content-Disposition"), `attachment; filename="notebook.ipynb"`)
	s.requireNoFiles()
}

func TestReplyOfNothingHasListsAndNoNulls(t *testing.T) {
	s := newService(t)
	a := s.postJSON(`{"code":"pass"}`)
	s.replied(a)
	var raw map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(a.body, &raw))
	for _, list := range []string{"outputs", "images", "files", "skipped"} {
		require.Equal(t, "[]", string(raw[list]), list)
	}
	require.Equal(t, "null", string(raw["error"]))
	require.Equal(t, `""`, string(raw["hint"]))
	require.Equal(t, "no-store", a.Header.Get("Cache-Control"))
}

func TestImagesByURLOnly(t *testing.T) {
	s := newService(t)
	s.run = func(_ context.Context, spec runner.Spec, _ runner.Sink) (*runner.Outcome, error) {
		return executed(spec, runner.StatusOK,
			`{"output_type":"display_data","metadata":{},"data":{"image/png":"`+onePixel+`"}}`), nil
	}
	r := s.replied(s.post("/v1/execute?images=url", "text/plain", "plot()"))
	require.Len(t, r.Images, 1)
	require.NotContains(t, r.Images[0], "data")
	require.NotEmpty(t, r.Images[0]["url"])
}

func TestImagesAreInTheOrderOfTheirNames(t *testing.T) {
	s := newService(t)
	s.run = func(_ context.Context, spec runner.Spec, _ runner.Sink) (*runner.Outcome, error) {
		var outputs []string
		for range 12 {
			outputs = append(outputs, `{"output_type":"display_data","metadata":{},"data":{"image/svg+xml":"<svg xmlns='http://www.w3.org/2000/svg'/>","image/png":"`+onePixel+`"}}`)
		}
		return executed(spec, runner.StatusOK, outputs...), nil
	}
	r := s.replied(s.postJSON(`{"code":"x"}`))
	require.Len(t, r.Images, 24)
	for i, image := range r.Images {
		require.Regexp(t, fmt.Sprintf(`^image_%d\.`, i), image["name"])
	}
}

func TestStatusesAreResults(t *testing.T) {
	for _, status := range []runner.Status{
		runner.StatusOK, runner.StatusError, runner.StatusTimeout, runner.StatusOutOfMemory,
		runner.StatusKilled, runner.StatusOutputLimit, runner.StatusCancelled,
	} {
		t.Run(string(status), func(t *testing.T) {
			s := newService(t)
			s.run = func(_ context.Context, spec runner.Spec, _ runner.Sink) (*runner.Outcome, error) {
				return executed(spec, status, stdout("so far")), nil
			}
			r := s.replied(s.postJSON(`{"code":"x"}`))
			require.Equal(t, string(status), r.Status)
			require.Equal(t, status == runner.StatusOK, r.Hint == "")
			require.Equal(t, status == runner.StatusOutputLimit, r.Truncated)
			require.Len(t, r.Outputs, 1)
		})
	}
}

func TestSandboxThatDiedKeepsWhatCameOut(t *testing.T) {
	for _, c := range []struct {
		desc string
		book []byte
	}{
		{"no notebook", nil},
		{"forged notebook", []byte(`{"nbformat":4,`)},
		{"a million brackets", []byte(strings.Repeat("[", 1_000_000))},
	} {
		t.Run(c.desc, func(t *testing.T) {
			s := newService(t)
			s.run = func(_ context.Context, spec runner.Spec, events runner.Sink) (*runner.Outcome, error) {
				out := func(kind runner.EventKind, cell int, output string) {
					events.Output(runner.Event{Kind: kind, Cell: cell, Output: []byte(output)})
				}
				out(runner.EventOutput, 0, stdout("a\n"))
				out(runner.EventOutput, 0, stdout("b\n"))
				out(runner.EventOutput, 0, `{"not json`)
				out(runner.EventOutput, 1, stdout("cleared"))
				out(runner.EventClear, 1, "")
				out(runner.EventUpdate, 1, `{"output_type":"display_data","metadata":{},"data":{"text/plain":"1%"},"transient":{"display_id":"x"}}`)
				out(runner.EventUpdate, 1, `{"output_type":"display_data","metadata":{},"data":{"text/plain":"99%"},"transient":{"display_id":"x"}}`)
				out(runner.EventOutput, 7, stdout("no such cell"))
				return &runner.Outcome{Status: runner.StatusKilled, Notebook: c.book}, nil
			}
			r := s.replied(s.postJSON(`{"cells":["x","y"]}`))
			require.Equal(t, "killed", r.Status)
			require.Equal(t, "a\nb\n99%\n", r.Text)
			require.True(t, r.Truncated, "an output could not be kept")
			require.Contains(t, string(s.get(r.Notebook.URL).body), "99%")
		})
	}
}

// displayed is an output with a display's id, as a sandbox sends it.
func displayed(id, text string) string {
	return fmt.Sprintf(`{"output_type":"display_data","metadata":{},"data":{"text/plain":%q},"transient":{"display_id":%q}}`, text, id)
}

func TestDroppedOutputsAreNamed(t *testing.T) {
	s := newService(t)
	s.run = func(_ context.Context, spec runner.Spec, _ runner.Sink) (*runner.Outcome, error) {
		return executed(spec, runner.StatusOK,
			`{"output_type":"display_data","metadata":{},"data":{"text/plain":"x","image/png":"not base64!"}}`), nil
	}
	r := s.replied(s.postJSON(`{"code":"x"}`))
	require.Len(t, r.Skipped, 1)
	require.Equal(t, "cell 0: image/png", r.Skipped[0].Path)
	require.NotEmpty(t, r.Skipped[0].Reason)
	require.Equal(t, "x\n", r.Text)
}

func TestStorageThatFailsDoesNotFailTheRun(t *testing.T) {
	s := newService(t, func(c *Config) {
		c.Store = failingStore{c.Store, func(key string) bool { return !strings.HasSuffix(key, "good.txt") }}
	})
	s.run = func(ctx context.Context, spec runner.Spec, events runner.Sink) (*runner.Outcome, error) {
		out := executed(spec, runner.StatusOK, stdout("x\n"),
			`{"output_type":"display_data","metadata":{},"data":{"image/png":"`+onePixel+`"}}`)
		for _, name := range []string{"good.txt", "bad.txt"} {
			if err := events.File(ctx, name, strings.NewReader("1")); err != nil {
				out.Skipped = append(out.Skipped, runner.Skipped{Path: "/mnt/data/" + name, Reason: err.Error()})
			}
		}
		err := events.File(ctx, "good.txt", iotest.ErrReader(errors.New("frame 7 of the stream")))
		out.Skipped = append(out.Skipped, runner.Skipped{Path: "/mnt/data/cut", Reason: err.Error()})
		return out, nil
	}
	a := s.postJSON(`{"code":"x"}`)
	r := s.replied(a)
	require.Equal(t, "ok", r.Status)
	require.Len(t, r.Files, 2)
	require.Equal(t, "good.txt", r.Files[0]["name"])
	require.NotContains(t, r.Files[0], "error")
	require.Equal(t, map[string]any{
		"path": "/mnt/data/bad.txt", "name": "bad.txt", "bytes": 1.0, "error": "it could not be stored",
		"media_type": "", "sha256": "", "url": "", "expires_at": nil,
	}, r.Files[1])
	require.Contains(t, r.Text, "[file bad.txt: it could not be stored]\n")
	require.Equal(t, "it could not be stored", r.Images[0]["error"])
	require.Equal(t, []executor.Skipped{
		{Path: "/mnt/data/bad.txt", Reason: "it could not be stored"},
		{Path: "/mnt/data/cut", Reason: "it did not come out of the sandbox in full"},
		{Path: "image_0.png", Reason: "it could not be stored"},
		{Path: "notebook.ipynb", Reason: "it could not be stored"},
	}, r.Skipped)
	require.Equal(t, onePixel, r.Images[0]["data"])
	require.Equal(t, "", r.Images[0]["url"])
	require.NotContains(t, string(a.body), "internal-bucket")
	require.Contains(t, s.logged.String(), "internal-bucket")
}

// TestUpdatesOfASandboxThatDied are as in a notebook that nbclient executed.
func TestUpdatesOfASandboxThatDied(t *testing.T) {
	event := func(kind runner.EventKind, cell int, output string) runner.Event {
		return runner.Event{Kind: kind, Cell: cell, Output: []byte(output)}
	}
	for _, c := range []struct {
		desc   string
		events []runner.Event
		text   string
	}{
		{"every display of the id, in any cell", []runner.Event{
			event(runner.EventOutput, 0, displayed("a", "1")), event(runner.EventOutput, 0, displayed("b", "other")),
			event(runner.EventOutput, 1, displayed("a", "1")), event(runner.EventUpdate, 1, displayed("a", "2")),
		}, "2\nother\n2\n"},
		{"a new display of the id", []runner.Event{
			event(runner.EventOutput, 0, displayed("a", "1")), event(runner.EventOutput, 1, displayed("a", "2")),
		}, "2\n2\n"},
		{"not what was cleared", []runner.Event{
			event(runner.EventOutput, 0, displayed("a", "1")), event(runner.EventOutput, 1, displayed("a", "1")),
			event(runner.EventClear, 0, ""), event(runner.EventOutput, 0, stdout("new\n")), event(runner.EventUpdate, 1, displayed("a", "2")),
		}, "new\n2\n"},
		{"without an id nothing", []runner.Event{
			event(runner.EventOutput, 0, displayed("", "1")), event(runner.EventUpdate, 0, displayed("", "2")),
		}, "1\n"},
	} {
		t.Run(c.desc, func(t *testing.T) {
			s := newService(t)
			s.run = func(_ context.Context, _ runner.Spec, events runner.Sink) (*runner.Outcome, error) {
				for _, e := range c.events {
					events.Output(e)
				}
				return &runner.Outcome{Status: runner.StatusKilled}, nil
			}
			r := s.replied(s.postJSON(`{"cells":["x","y"]}`))
			require.Equal(t, c.text, r.Text)
			require.NotContains(t, string(s.get(r.Notebook.URL).body), "transient", "nbformat has no such field")
		})
	}
}
