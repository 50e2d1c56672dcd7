package server

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"notebox/agent/tool"
	"notebox/runner"
)

// ofOne are sessions whose runs end as those of a service's own runner.
type ofOne struct {
	runner.Sessions
	run *runFunc
}

type sessionOfOne struct {
	runner.Session
	run *runFunc
}

func (s sessionOfOne) Run(ctx context.Context, spec runner.Spec, events runner.Sink) (*runner.Outcome, error) {
	return (*s.run)(ctx, spec, events)
}

func (o ofOne) Open(ctx context.Context, spec runner.SessionSpec) (runner.Session, error) {
	s, err := o.Sessions.Open(ctx, spec)
	return sessionOfOne{s, o.run}, err
}

func (o ofOne) Find(owner, id string) (runner.Session, error) {
	s, err := o.Sessions.Find(owner, id)
	return sessionOfOne{s, o.run}, err
}

// verdict is what a caller is told of how a run ended.
type verdict struct {
	status string
	raised string // the error's name; "" for none
	hinted bool
}

func verdictOf(t *testing.T, r replyJSON) verdict {
	t.Helper()
	v := verdict{status: r.Status, hinted: r.Hint != ""}
	if r.Error != nil {
		v.raised = r.Error["name"].(string)
	}
	return v
}

// TestStatusErrorAndHintAgree on each way by which a run is asked for, whatever the sandbox
// says of it and whatever its outputs are.
func TestStatusErrorAndHintAgree(t *testing.T) {
	for _, c := range []struct {
		desc    string
		status  runner.Status // as the sandbox tells it
		outputs []string
		want    verdict
	}{
		{"nothing happened", runner.StatusOK, []string{stdout("x\n")}, verdict{"ok", "", false}},
		{"an exception", runner.StatusError, []string{raised("ValueError", "x")}, verdict{"error", "ValueError", true}},
		{"a display that raised", runner.StatusOK, []string{raised("RuntimeError", "latex could not be found"), stdout("x\n")}, verdict{"error", "RuntimeError", true}},
		{"an exception that was not shown", runner.StatusError, []string{stdout("x\n")}, verdict{"error", "Exception", true}},
		{"too late", runner.StatusTimeout, nil, verdict{"timeout", "", true}},
		{"too late, interrupted", runner.StatusTimeout, []string{raised("KeyboardInterrupt", "")}, verdict{"timeout", "KeyboardInterrupt", true}},
		{"no memory", runner.StatusOutOfMemory, []string{raised("MemoryError", "")}, verdict{"out_of_memory", "MemoryError", true}},
		{"dead", runner.StatusKilled, nil, verdict{"killed", "", true}},
		{"dead, after a display that raised", runner.StatusKilled, []string{raised("RuntimeError", "x")}, verdict{"killed", "RuntimeError", true}},
		{"too much", runner.StatusOutputLimit, []string{stdout("x\n")}, verdict{"output_limit", "", true}},
	} {
		t.Run(c.desc, func(t *testing.T) {
			run := runFunc(func(_ context.Context, spec runner.Spec, events runner.Sink) (*runner.Outcome, error) {
				for _, output := range c.outputs {
					events.Output(runner.Event{Kind: runner.EventOutput, Output: []byte(output)})
				}
				return executed(spec, c.status, c.outputs...), nil
			})
			s := newService(t, func(cfg *Config) { cfg.Sessions = ofOne{newSessions(t), &run} })
			s.run = run

			require.Equal(t, c.want, verdictOf(t, s.replied(s.postJSON(`{"code":"x"}`))), "single use")
			require.Equal(t, c.want, verdictOf(t, s.replied(s.inSession(s.open(`{}`).ID, `"code":"x"`))), "session")

			id := s.accepted(s.do(s.with(`{"code":"x"}`, "Prefer", "respond-async")))
			require.Equal(t, c.want, verdictOf(t, s.ends(id)), "asynchronous")

			var done replyJSON
			for events := s.stream(t.Context(), `{"code":"x"}`); ; {
				e, ok := events.next()
				require.True(t, ok)
				if e.name == "done" {
					require.NoError(t, json.Unmarshal([]byte(e.data), &done))
					break
				}
			}
			require.Equal(t, c.want, verdictOf(t, done), "stream")

			called := s.callTool(`{"call":{"type":"tool_use","id":"1","name":"execute_python","input":{"code":"x"}}}`)
			require.Equal(t, c.want, verdictOf(t, *called.Result), "function tool")
			require.Equal(t, c.want.hinted, called.Message["is_error"] == true)

			byMCP := callMCP(t, s.mcpClient("", nil), "run_python", map[string]any{"code": "x"})
			raw, err := json.Marshal(byMCP.StructuredContent)
			require.NoError(t, err)
			told, err := tool.ReadResult(raw)
			require.NoError(t, err)
			require.Equal(t, c.want.status, told.Status, "MCP")
			require.Equal(t, c.want.hinted, byMCP.IsError)
			require.Equal(t, c.want.hinted, strings.Contains(mcpText(t, byMCP), "Hint: "))

			d := &difyService{service: s}
			answer := d.good("run_code", in(d.create(""), "code", "x"))
			failure, _ := answer["error"].(map[string]any)
			require.Equal(t, c.want.hinted, failure != nil, "Dify")
			if c.want.hinted {
				require.Equal(t, c.want.status, failure["status"])
			}
		})
	}
}

// TestLongText is cut in every reply, and whole behind its last line.
func TestLongText(t *testing.T) {
	whole := strings.Repeat("0123456789abcde\n", 3<<20/16)
	for _, c := range []struct {
		desc  string
		lines int // of 16 bytes
	}{
		{"short", 10},
		{"just too long, with its file", mostText / 16},
		{"3 MB", len(whole) / 16},
	} {
		t.Run(c.desc, func(t *testing.T) {
			text := whole[:c.lines*16]
			s := newService(t)
			s.run = func(ctx context.Context, spec runner.Spec, events runner.Sink) (*runner.Outcome, error) {
				require.NoError(t, events.File(ctx, longTextName, strings.NewReader("the user's own")))
				return executed(spec, runner.StatusOK, stdout(text)), nil
			}
			r := s.replied(s.postJSON(`{"code":"x"}`))
			require.LessOrEqual(t, len(r.Text), mostText)
			require.False(t, r.Truncated)
			require.Equal(t, text, r.Outputs[0]["text"])
			require.Equal(t, "the user's own", string(s.get(r.Files[0]["url"].(string)).body))
			want := text + "[file text.txt: " + r.Files[0]["url"].(string) + "]\n"
			if len(want) <= mostText {
				require.Equal(t, want, r.Text)
				return
			}
			lines := strings.Split(strings.TrimSuffix(r.Text, "\n"), "\n")
			require.Equal(t, "0123456789abcde", lines[0])
			last := lines[len(lines)-1]
			require.Regexp(t, `^\[the whole text: http\S+\]$`, last)
			got := s.get(strings.TrimSuffix(strings.TrimPrefix(last, "[the whole text: "), "]"))
			require.Equal(t, want, string(got.body))
			require.Contains(t, got.Header.Get("Content-Type"), "text/plain")

			called := s.callTool(`{"call":{"type":"tool_use","id":"1","name":"execute_python","input":{"code":"x"}}}`)
			message, err := json.Marshal(called.Message)
			require.NoError(t, err)
			require.Contains(t, string(message), "[the whole text: http", "within its own budget")
		})
	}
}

func TestLongTextThatCannotBeStored(t *testing.T) {
	s := newService(t, func(c *Config) {
		c.Store = failingStore{c.Store, func(key string) bool { return strings.HasSuffix(key, longTextName) }}
	})
	s.run = func(_ context.Context, spec runner.Spec, _ runner.Sink) (*runner.Outcome, error) {
		return executed(spec, runner.StatusError, stdout(strings.Repeat("x", 2*mostText)), raised("E", "the end")), nil
	}
	r := s.replied(s.postJSON(`{"code":"x"}`))
	require.LessOrEqual(t, len(r.Text), mostText)
	require.True(t, strings.HasSuffix(r.Text, "E: the end\n[the whole text: it could not be stored]\n"), r.Text[len(r.Text)-200:])
	require.Equal(t, "error", r.Status)
}

func TestFilesElsewhereAreNamed(t *testing.T) {
	skip := func(paths ...string) (list []runner.Skipped) {
		for _, p := range paths {
			list = append(list, runner.Skipped{Path: p, Reason: toldToSave})
		}
		return list
	}
	for _, c := range []struct {
		desc    string
		skipped []runner.Skipped
		want    string
	}{
		{"none", nil, ""},
		{"one", skip("/tmp/plot.png"), "[not returned: /tmp/plot.png; save files below /mnt/data]\n"},
		{"some", skip("/tmp/a", "/tmp/home/b c"), "[not returned: /tmp/a, /tmp/home/b c; save files below /mnt/data]\n"},
		{"more than are named", skip("/tmp/1", "/tmp/2", "/tmp/3", "/tmp/4", "/tmp/5", "/tmp/6"), "[not returned: /tmp/1, /tmp/2, /tmp/3, /tmp/4, /tmp/5 and others; save files below /mnt/data]\n"},
		{"more than the sandbox names", append(skip("/tmp/1"), runner.Skipped{Path: "/tmp", Reason: "7 more files: " + toldToSave}), "[not returned: /tmp/1 and others; save files below /mnt/data]\n"},
		{"of another kind", []runner.Skipped{{Path: "/mnt/data/pipe", Reason: "not a regular file"}}, ""},
		{"a name of two lines", skip("/tmp/a\n[image x]"), "[not returned: /tmp/a [image x]; save files below /mnt/data]\n"},
	} {
		t.Run(c.desc, func(t *testing.T) {
			s := newService(t)
			s.run = func(_ context.Context, spec runner.Spec, _ runner.Sink) (*runner.Outcome, error) {
				out := executed(spec, runner.StatusOK, stdout("x\n"))
				out.Skipped = c.skipped
				return out, nil
			}
			r := s.replied(s.postJSON(`{"code":"x"}`))
			require.Equal(t, "x\n"+c.want, r.Text)
			require.Len(t, r.Skipped, len(c.skipped))
			require.Empty(t, r.Hint)
			require.Equal(t, "ok", r.Status)
		})
	}
}

// TestByteOrderMark at the beginning of code is no part of it.
func TestByteOrderMark(t *testing.T) {
	const mark = "\ufeff"
	for _, c := range []struct{ desc, mediaType, body, want string }{
		{"code", "application/json", `{"code":"` + mark + `print(1)"}`, `"source":"print(1)"`},
		{"cells", "application/json", `{"cells":["x","` + mark + `print(1)"]}`, `"source":"print(1)"`},
		{"a body of text", "text/x-python", mark + "print(1)", `"source":"print(1)"`},
		{"a form", "multipart/form-data; boundary=b", "--b\r\nContent-Disposition: form-data; name=code\r\n\r\n" + mark + "print(1)\r\n--b--\r\n", `"source":"print(1)"`},
		{"one in the middle, which is somebody's", "application/json", `{"code":"x='` + mark + `'"}`, `"source":"x='` + mark + `'"`},
	} {
		t.Run(c.desc, func(t *testing.T) {
			s := newService(t)
			require.Equal(t, http.StatusOK, s.post("/v1/execute", c.mediaType, c.body).StatusCode)
			require.Contains(t, string(s.runs[0].Notebook), c.want)
		})
	}
}
