package console

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/require"

	"notebox/agent"
	"notebox/agent/agenttest"
	"notebox/agent/provider"
	"notebox/agent/tool"
	"notebox/terminal"
	"notebox/terminal/terminaltest"
)

// sandbox is an agent.Executor that says what the code and the files are.
type sandbox struct {
	picture string // its URL; "": none
}

func (s sandbox) Execute(_ context.Context, r agent.Run) (*tool.Result, error) {
	if strings.Contains(r.Code, "raise") {
		return &tool.Result{Status: "error", Text: "\x1b[2JValueError: no\n"}, nil
	}
	out := &tool.Result{Status: "ok", Text: "ran " + r.Code + "\n\x1b]0;owned\a\x1b[2J\n"}
	for _, f := range r.Files {
		content, err := f.Open()
		if err != nil {
			return nil, err
		}
		raw, err := io.ReadAll(content)
		if err != nil {
			return nil, err
		}
		content.Close()
		out.Text += fmt.Sprintf("%s has %s\n", f.Name, raw)
	}
	if s.picture != "" {
		out.Images = []tool.Image{{Name: "plot.png\x1b[2J", MediaType: "image/png", URL: s.picture}}
		out.Files = []tool.File{{Path: "/mnt/data/out.csv", Bytes: 12, URL: s.picture + "/out.csv"}}
	}
	return out, nil
}

var dialogues = []agenttest.Dialogue{
	{Question: "six times seven", Turns: []agenttest.Turn{
		{Text: "I compute.", Calls: []agenttest.Call{agenttest.Code("execute_python", "6*7")}},
		{Text: "It is **42**, by {{tool:(ran .*)}}. Not \x1b[2J[here](https://elsewhere.example/x), but [there](/mnt/data/out.csv)."},
	}},
	{Question: "wait for it", Turns: []agenttest.Turn{{Text: "never", Faults: []agenttest.Fault{{Hang: true}, {Hang: true}, {Hang: true}}}}},
	{Question: "the file", Turns: []agenttest.Turn{
		{Calls: []agenttest.Call{agenttest.Code("execute_python", "open('a.txt')")}, Expect: []string{"/mnt/data/a.txt"}},
		{Text: "{{tool:(a.txt has .*)}}"},
	}},
	{
		Question: "the impossible", Repeat: true,
		Turns:        []agenttest.Turn{{Calls: []agenttest.Call{agenttest.Code("execute_python", "raise")}}},
		WithoutTools: &agenttest.Turn{Text: "I could not."},
	},
	{Question: "again", Turns: []agenttest.Turn{{Text: "Again."}}},
}

func newAgent(t *testing.T, baseURL string, e agent.Executor) *agent.Agent {
	t.Helper()
	p, err := provider.Open(provider.Settings{API: provider.Chat, Model: "scripted", BaseURL: baseURL, Key: "key"})
	require.NoError(t, err)
	a, err := agent.New(agent.Config{Code: agent.Mind{Provider: p}, Executor: e})
	require.NoError(t, err)
	return a
}

// typed are Lines that are known beforehand.
type typed []string

func (l *typed) Line(context.Context, string) (string, error) {
	if len(*l) == 0 {
		return "", io.EOF
	}
	next := (*l)[0]
	*l = (*l)[1:]
	if next == "^C" {
		return "", ErrInterrupted
	}
	return next, nil
}

func columns() int { return 80 }

// gallery serves an image.
func gallery(t *testing.T) string {
	ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			t.Error("a key is sent with a link")
		}
		_, _ = w.Write(terminaltest.Dots(t, 4, 3))
	}))
	t.Cleanup(ts.Close)
	return ts.URL
}

func TestInteract(t *testing.T) {
	model := agenttest.New(t, dialogues...)
	file := filepath.Join(t.TempDir(), "a.txt")
	require.NoError(t, os.WriteFile(file, []byte("content"), 0o600))
	url := gallery(t)
	for _, c := range []struct {
		desc  string
		lines typed
		want  []string
		not   []string
	}{
		{"a question", typed{"", "What is six times seven?"}, []string{"I compute.", "6", "✓ ok", "ran 6*7", "42", "image plot.png", "file /mnt/data/out.csv", "\x1b]8;;" + url + "\x1b\\", "\x1b_Ga=T,f=100"}, []string{"\x1b[2J", "owned", "\x1b]8;;https://elsewhere"}},
		{"exit ends", typed{"exit", "What is six times seven?"}, nil, []string{"42"}},
		{"quit ends", typed{" quit ", "What is six times seven?"}, nil, []string{"42"}},
		{"Ctrl-C at the prompt does not", typed{"^C", "again"}, []string{"Again."}, nil},
		{"help", typed{"/help"}, []string{"/file PATH"}, nil},
		{"an unknown command", typed{"/fiel x\x1b[2J"}, []string{"no command /fiel"}, []string{"\x1b[2J"}},
		{"a file", typed{"/file " + file, "What is in the file?"}, []string{"+ /mnt/data/a.txt", "a.txt has content"}, nil},
		{"no file", typed{"/file", "/file " + file + "x", "/file " + filepath.Dir(file)}, []string{"needs the path", "no such file", "is not a file"}, nil},
		{"a new conversation has no files", typed{"/file " + file, "/new", "What is six times seven?"}, []string{"A new conversation"}, []string{"a.txt has"}},
		{"a bound", typed{"Do the impossible", "again"}, []string{"✗ error", "I could not.", "its limit of corrections", "Again."}, []string{"\x1b[2J"}},
		{"an error of the model", typed{"nothing of the kind", "again"}, nil, nil},
	} {
		t.Run(c.desc, func(t *testing.T) {
			models := model
			if c.desc == "an error of the model" {
				var err error
				models, err = agenttest.Start("127.0.0.1:0", agenttest.Script{Dialogues: dialogues})
				require.NoError(t, err)
				t.Cleanup(func() { models.Close() })
				c.want = []string{"answered with status 400", "Again."}
			}
			var out bytes.Buffer
			talk := New(Options{Agent: newAgent(t, models.URL(), sandbox{url}), Out: &out, Columns: columns, Pictures: terminal.PicturesKitty})
			require.NoError(t, talk.Interact(context.Background(), &c.lines))
			require.NoError(t, talk.Close())
			for _, want := range c.want {
				require.True(t, strings.Contains(out.String(), want) || strings.Contains(ansi.Strip(out.String()), want), "%q is not in %q", want, out.String())
			}
			for _, not := range c.not {
				require.NotContains(t, out.String(), not)
			}
		})
	}
}

func TestPlain(t *testing.T) {
	model := agenttest.New(t, dialogues...)
	var out bytes.Buffer
	talk := New(Options{Agent: newAgent(t, model.URL(), sandbox{gallery(t)}), Out: &out, Columns: columns, Pictures: terminal.PicturesKitty, Plain: true})
	defer talk.Close()
	require.NoError(t, talk.Interact(context.Background(), &typed{"six times seven"}))
	require.Contains(t, out.String(), "ran 6*7")
	require.Contains(t, out.String(), "file /mnt/data/out.csv 12 bytes")
	terminaltest.RequireHarmless(t, out.String())
}

func TestOnceForPrograms(t *testing.T) {
	model := agenttest.New(t, dialogues...)
	url := gallery(t)
	var out bytes.Buffer
	talk := New(Options{Agent: newAgent(t, model.URL(), sandbox{url}), Out: &out, Columns: columns})
	defer talk.Close()
	require.NoError(t, talk.Once(context.Background(), "six times seven", false))
	terminaltest.RequireHarmless(t, out.String())
	require.Equal(t, "It is **42**, by ran 6*7. Not here (`https://elsewhere.example/x`), but [there]("+url+"/out.csv).\n", strings.ReplaceAll(out.String(), "image: plot.png "+url+"\n", ""))

	out.Reset()
	var stopped *StoppedError
	require.ErrorAs(t, talk.Once(context.Background(), "the impossible", false), &stopped)
	require.Equal(t, agent.StoppedCorrections, stopped.By)
	require.Contains(t, out.String(), "I could not.")
}

func TestAnInterruptEndsTheAnswer(t *testing.T) {
	model := agenttest.New(t, dialogues...)
	interrupts := make(chan os.Signal, 1)
	var out bytes.Buffer
	talk := New(Options{Agent: newAgent(t, model.URL(), sandbox{}), Out: &out, Columns: columns, Interrupts: interrupts})
	defer talk.Close()
	interrupts <- os.Interrupt // is about nothing yet
	go func() {
		for len(model.Requests()) == 0 {
			time.Sleep(10 * time.Millisecond)
		}
		interrupts <- os.Interrupt
	}()
	require.ErrorIs(t, talk.Once(context.Background(), "wait for it", false), ErrInterrupted)
	require.NoError(t, talk.Once(context.Background(), "again", false))
	require.Equal(t, "Again.\n", out.String())
}

func TestComplete(t *testing.T) {
	folder := t.TempDir()
	for _, name := range []string{"alpha.csv", "alpine.csv", ".hidden", "bad\x1bname"} {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), nil, 0o600))
	}
	require.NoError(t, os.Mkdir(filepath.Join(folder, "deep"), 0o700))
	begin := "/file " + folder + "/"
	require.Equal(t, []string{begin + "alpha.csv", begin + "alpine.csv"}, Complete(begin+"al"))
	require.Equal(t, []string{begin + "alpha.csv", begin + "alpine.csv", begin + "deep/"}, Complete(begin))
	require.Equal(t, []string{begin + ".hidden"}, Complete(begin+".h"))
	require.Equal(t, []string{"/file "}, Complete("/f"))
	require.Empty(t, Complete("What"))
	require.Empty(t, Complete(""))
	require.Empty(t, Complete("/file "+folder+"/none/"))
}

func TestLongOutputsLoseTheirMiddle(t *testing.T) {
	lines := strings.Repeat("x\n", 100) + "last"
	short := shorten(lines)
	require.Contains(t, short, "… 77 lines are not shown …")
	require.True(t, strings.HasSuffix(short, "last"))
	require.Equal(t, "a\nb", shorten("a\nb"))
}

func TestTailOf(t *testing.T) {
	require.Equal(t, "b c", tailOf("a\nb\x1b[2J\tc\n\n"))
	require.Empty(t, tailOf(""))
	require.LessOrEqual(t, len(tailOf(strings.Repeat("漢", 1000))), maxTail)
}
