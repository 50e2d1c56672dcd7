package server

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"notebox/runner"
	"notebox/runner/runnertest"
)

// follower is a client that does what the README says of events.
type follower struct {
	outputs []map[string]any
}

func (f *follower) take(t *testing.T, e sentEvent) {
	t.Helper()
	var data map[string]any
	require.NoError(t, json.Unmarshal([]byte(e.data), &data))
	if e.name == "clear" {
		var left []map[string]any
		for _, o := range f.outputs {
			if o["cell"] != data["cell"] {
				left = append(left, o)
			}
		}
		f.outputs = left
		return
	}
	if data["update"] == true {
		for _, o := range f.outputs {
			if o["display_id"] == data["display_id"] {
				o["data"] = data["data"]
			}
		}
		return
	}
	if last := len(f.outputs) - 1; data["type"] == "stream" && last >= 0 {
		if o := f.outputs[last]; o["type"] == "stream" && o["cell"] == data["cell"] && o["name"] == data["name"] {
			replaced, _ := data["replaced_lines"].(float64)
			lines := strings.SplitAfter(o["text"].(string), "\n")
			o["text"] = strings.Join(lines[:len(lines)-int(replaced)], "") + data["text"].(string)
			return
		}
	}
	f.outputs = append(f.outputs, data)
}

// TestWhoFollowsEventsEndsAtTheReply runs the fake engine's documents.
func TestWhoFollowsEventsEndsAtTheReply(t *testing.T) {
	// display is as a kernel's message, and so in the fake's document; id may be "".
	display := func(id, text string) map[string]any {
		output := map[string]any{"output_type": "display_data", "metadata": map[string]any{}, "data": map[string]any{"text/plain": text}}
		if id != "" {
			output["transient"] = map[string]any{"display_id": id}
		}
		return output
	}
	image := map[string]any{"output_type": "display_data", "metadata": map[string]any{}, "data": map[string]any{"image/png": onePixel}}
	stderr := map[string]any{"output_type": "stream", "name": "stderr", "text": "oops\n"}
	for _, c := range []struct {
		desc string
		cell runnertest.Cell
		text string // of the reply
	}{
		{"pieces of a stream", func(k *runnertest.Kernel) { k.Print("a"); k.Print("b\n"); k.Print("c\n") }, "ab\nc\n"},
		{"two streams", func(k *runnertest.Kernel) { k.Print("a\n"); k.Output(stderr); k.Print("b\n") }, "a\noops\nb\n"},
		{"a progress bar", func(k *runnertest.Kernel) {
			for i := range 11 {
				k.Print(fmt.Sprintf("\r%3d%%|%-10s|", i*10, strings.Repeat("#", i)))
			}
			k.Print("\ndone\n")
		}, "100%|##########|\ndone\n"},
		{"one that is blanked", func(k *runnertest.Kernel) { k.Print("before\n50%"); k.Print("\r   \r"); k.Print("after\n") }, "before\nafter\n"},
		{"cleared", func(k *runnertest.Kernel) { k.Print("a\n"); k.Output(image); k.Clear(); k.Print("b\n") }, "b\n"},
		{"cleared, and nothing more", func(k *runnertest.Kernel) { k.Print("a\n"); k.Clear() }, ""},
		{"updated", func(k *runnertest.Kernel) {
			k.Print("a\n")
			k.Output(display("x", "1%"))
			k.Update(display("x", "99%"))
			k.Update(display("x", "100%"))
			k.Print("b\n")
		}, "a\n100%\nb\n"},
		{"the suite's", func(k *runnertest.Kernel) { k.Output(display("", "1")); k.Raise("ValueError", "boom") }, "1\nValueError: boom\n"},
	} {
		t.Run(c.desc, func(t *testing.T) {
			host := runnertest.NewFake()
			t.Cleanup(host.Close)
			host.On("x", c.cell)
			s := newService(t, func(cfg *Config) {
				cfg.Runner = runnertest.Single(t, host.Engine("test"), slog.New(slog.DiscardHandler))
			})
			r := s.stream(context.Background(), `{"code":"x"}`)
			r.want("started", nil)
			var screen follower
			for {
				e, ok := r.next()
				require.True(t, ok)
				if e.name != "done" {
					screen.take(t, e)
					continue
				}
				var done replyJSON
				require.NoError(t, json.Unmarshal([]byte(e.data), &done))
				require.Equal(t, c.text, done.Text)
				for _, o := range screen.outputs {
					delete(o, "display_id")
				}
				require.Len(t, screen.outputs, len(done.Outputs))
				for i := range done.Outputs {
					require.Equal(t, done.Outputs[i], screen.outputs[i])
				}
				return
			}
		})
	}
}

// TestDisplayOfAKnownIDUpdates all others of it, as in an executed notebook.
func TestDisplayOfAKnownIDUpdates(t *testing.T) {
	s := newService(t)
	run := s.stepwise(func(spec runner.Spec) *runner.Outcome { return executed(spec, runner.StatusOK) })
	r := s.stream(context.Background(), `{"code":"x"}`)
	r.want("started", nil)
	run.do(runner.EventOutput, 0, displayed("d", "1"))
	run.do(runner.EventOutput, 1, displayed("d", "2"))
	run.do(runner.EventUpdate, 1, `{"output_type":"display_data","data":{"text/plain":"no id"}}`)
	run.end()
	for _, want := range []string{
		`{"cell":0,"type":"display","data":{"text/plain":"1"},"display_id":"d"}`,
		`{"cell":1,"type":"display","data":{"text/plain":"2"},"display_id":"d","update":true}`,
		`{"cell":1,"type":"display","data":{"text/plain":"2"},"display_id":"d"}`,
	} {
		require.JSONEq(t, want, r.want("output", nil))
	}
	r.want("done", nil)
}
