package agent_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/agent"
	"notebox/agent/agenttest"
	"notebox/agent/provider"
	"notebox/agent/tool"
)

const patience = time.Minute

// sandbox is an Executor, with sessions, that knows a few programs.
type sandbox struct {
	mu     sync.Mutex
	runs   []agent.Run
	opened int
	gone   bool // the next run in a session finds it gone
	err    error
}

func (s *sandbox) Execute(ctx context.Context, r agent.Run) (*tool.Result, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.runs = append(s.runs, r)
	if s.gone {
		s.gone = false
		return nil, agent.ErrNoSession
	}
	if s.err != nil {
		return nil, s.err
	}
	switch {
	case strings.Contains(r.Code, "sleep"):
		<-ctx.Done()
		return nil, ctx.Err()
	case strings.Contains(r.Code, "raise"):
		return &tool.Result{Status: "error", Text: "ValueError: no\n", Hint: "Correct it.", Error: &tool.Raised{Name: "ValueError"}}, nil
	case strings.Contains(r.Code, "out.csv"):
		return &tool.Result{Status: "ok", Files: []tool.File{{Path: "/mnt/data/out.csv", Bytes: 3, URL: csvURL}}}, nil
	}
	if r.Tell != nil {
		r.Tell("ran ")
	}
	return &tool.Result{Status: "ok", Text: "ran " + r.Code + "\n"}, nil
}

func (s *sandbox) OpenSession(_ context.Context, _ string, files []agent.File) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opened++
	return fmt.Sprintf("session-%d-with-%d", s.opened, len(files)), nil
}

func (s *sandbox) CloseSession(context.Context, string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opened = -s.opened
	return nil
}

func run(code string) []agenttest.Call { return []agenttest.Call{agenttest.Code(tool.Name, code)} }

// begin makes an agent of a script.
func begin(t *testing.T, s *sandbox, c agent.Config, dialogues ...agenttest.Dialogue) (*agent.Agent, *agenttest.Server) {
	t.Helper()
	model := agenttest.New(t, dialogues...)
	p := func(name string) agent.Provider {
		p, err := provider.Open(provider.Settings{API: provider.Chat, Model: name, BaseURL: model.URL(), Retry: provider.RetryOptions{Pause: time.Millisecond}})
		require.NoError(t, err)
		return p
	}
	c.Code.Provider, c.Executor = p("code"), s
	if c.Folder != nil {
		c.File.Provider = p("files")
	}
	a, err := agent.New(c)
	require.NoError(t, err)
	return a, model
}

func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

func TestAQuestion(t *testing.T) {
	s := &sandbox{}
	a, _ := begin(t, s, agent.Config{}, agenttest.Dialogue{Turns: []agenttest.Turn{
		{Text: "Two runs.", Calls: append(run("1"), agenttest.Call{Name: "python", Arguments: "```python\nopen('out.csv')\n```"})},
		{Text: "{{tool:run]|file|(out)}} See [it](sandbox:/mnt/data/out.csv), not [that](https://evil.example/).", Expect: []string{"ran 1", "/mnt/data", "out.csv"}},
	}})
	var events []string
	answer, err := a.Ask(within(t), agent.Question{Text: "x"}, func(e agent.Event) {
		if n := len(events); e.Kind == agent.EventText && n > 0 && events[n-1] == "text" {
			return
		}
		events = append(events, string(e.Kind))
	})
	require.NoError(t, err)
	require.Contains(t, answer.Text, "[it]("+csvURL+"), not that (`https://evil.example/`).")
	require.Equal(t, []string{"text", "call", "live", "output", "call", "output", "turn", "text", "turn"}, events)
	require.Len(t, answer.Steps, 2)
	require.Equal(t, "open('out.csv')", strings.TrimSpace(answer.Steps[1].Input))
	require.Len(t, answer.Files, 1)
	require.Equal(t, agent.StoppedNot, answer.Stopped)
	require.Positive(t, answer.Usage.In)
}

func TestCorrections(t *testing.T) {
	broken := agenttest.Turn{Calls: run("raise ValueError")}
	said := &agenttest.Turn{Text: "It cannot be done.", Expect: []string{"No more calls are possible"}}
	for _, c := range []struct {
		desc    string
		most    int
		turns   []agenttest.Turn
		said    *agenttest.Turn
		steps   int
		stopped agent.Stopped
		want    string
	}{
		{"two attempts raise and the third works", 0, []agenttest.Turn{broken, broken, {Calls: run("1")}, {Text: "Done."}}, nil, 3, agent.StoppedNot, "Done."},
		{"the last correction works", 0, []agenttest.Turn{broken, broken, broken, {Calls: run("1")}, {Text: "Done."}}, nil, 4, agent.StoppedNot, "Done."},
		{"it never works", 0, []agenttest.Turn{broken}, said, 4, agent.StoppedCorrections, "It cannot be done."},
		{"the model does not say so", 0, []agenttest.Turn{broken}, &agenttest.Turn{}, 4, agent.StoppedCorrections, "I could not get the code to work"},
		{"none allowed", -1, []agenttest.Turn{broken}, said, 1, agent.StoppedCorrections, "It cannot be done."},
		{"several in one turn", 1, []agenttest.Turn{{Calls: append(append(run("raise 1"), run("raise 2")...), run("3")...)}}, said, 2, agent.StoppedCorrections, "It cannot be done."},
		{"calls that cannot be read", 1, []agenttest.Turn{{Calls: []agenttest.Call{{Name: "browse", Arguments: `{"url":"x"}`}}}, {Calls: []agenttest.Call{{Name: "python", Arguments: `{"code": "print(1`}}}}, said, 2, agent.StoppedCorrections, "It cannot be done."},
	} {
		t.Run(c.desc, func(t *testing.T) {
			a, _ := begin(t, &sandbox{}, agent.Config{Limits: agent.Limits{Corrections: c.most}}, agenttest.Dialogue{Turns: c.turns, Repeat: c.said != nil, WithoutTools: c.said})
			answer, err := a.Ask(within(t), agent.Question{Text: "x"}, nil)
			require.NoError(t, err)
			require.Contains(t, answer.Text, c.want)
			require.Len(t, answer.Steps, c.steps)
			require.Equal(t, c.stopped, answer.Stopped)
		})
	}
}

func TestBounds(t *testing.T) {
	endless := agenttest.Dialogue{Turns: []agenttest.Turn{{Calls: run("1"), NoUsage: true}}, Repeat: true, WithoutTools: &agenttest.Turn{Text: "That is all."}}
	for _, c := range []struct {
		desc    string
		limits  agent.Limits
		code    string
		stopped agent.Stopped
		want    string
		steps   int
	}{
		{"steps", agent.Limits{Steps: 3}, "1", agent.StoppedSteps, "That is all.", 2},
		{"tokens, estimated", agent.Limits{Tokens: 2000}, "1", agent.StoppedTokens, "tokens", -1},
		{"time", agent.Limits{Time: 2 * time.Second}, "sleep", agent.StoppedTime, "time", 0},
	} {
		t.Run(c.desc, func(t *testing.T) {
			d := endless
			d.Turns = []agenttest.Turn{{Calls: run(c.code), NoUsage: true}}
			a, _ := begin(t, &sandbox{}, agent.Config{Limits: c.limits}, d)
			answer, err := a.Ask(within(t), agent.Question{Text: "x"}, nil)
			require.NoError(t, err)
			require.Equal(t, c.stopped, answer.Stopped)
			require.Contains(t, answer.Text, c.want)
			if c.steps >= 0 {
				require.Len(t, answer.Steps, c.steps)
			}
		})
	}
}

func TestFailures(t *testing.T) {
	t.Run("the executor", func(t *testing.T) {
		refused := errors.New("no room")
		a, _ := begin(t, &sandbox{err: refused}, agent.Config{}, agenttest.Dialogue{Turns: []agenttest.Turn{{Calls: run("1")}}})
		_, err := a.Ask(within(t), agent.Question{Text: "x"}, nil)
		require.ErrorIs(t, err, refused)
	})
	t.Run("a program that is refused", func(t *testing.T) {
		a, _ := begin(t, &sandbox{err: &tool.CallError{Reason: "its program is empty"}}, agent.Config{}, agenttest.Dialogue{Turns: []agenttest.Turn{
			{Calls: run("1")}, {Text: "Well.", Expect: []string{"its program is empty"}},
		}})
		answer, err := a.Ask(within(t), agent.Question{Text: "x"}, nil)
		require.NoError(t, err)
		require.Equal(t, "refused", answer.Steps[0].Status)
	})
	t.Run("the provider", func(t *testing.T) {
		a, _ := begin(t, &sandbox{}, agent.Config{}, agenttest.Dialogue{Turns: []agenttest.Turn{{Faults: []agenttest.Fault{{Status: http.StatusUnauthorized}}}}})
		_, err := a.Ask(within(t), agent.Question{Text: "x"}, nil)
		var failed *provider.Error
		require.ErrorAs(t, err, &failed)
	})
	t.Run("the user leaves", func(t *testing.T) {
		a, _ := begin(t, &sandbox{}, agent.Config{}, agenttest.Dialogue{Turns: []agenttest.Turn{{Calls: run("sleep")}}})
		ctx, cancel := context.WithCancel(within(t))
		_, err := a.Ask(ctx, agent.Question{Text: "x"}, func(e agent.Event) {
			if e.Kind == agent.EventCall {
				cancel()
			}
		})
		require.ErrorIs(t, err, context.Canceled)
	})
}

func TestConversation(t *testing.T) {
	s := &sandbox{}
	a, model := begin(t, s, agent.Config{Sessions: true},
		agenttest.Dialogue{Question: "first", Turns: []agenttest.Turn{{Calls: run("x = 1"), Expect: []string{"a.txt (5 bytes)", "hello"}}, {Text: "Set."}}},
		agenttest.Dialogue{Question: "second", Turns: []agenttest.Turn{{Calls: run("x"), Expect: []string{"x = 1", "Set."}}, {Text: "One.", Expect: []string{"The session had ended"}}}},
	)
	hello := agent.File{Name: "a.txt", Size: 5, Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("hello")), nil }}
	talk := a.Converse()
	answer, err := talk.Ask(within(t), agent.Question{Text: "first", Files: []agent.File{hello}}, nil)
	require.NoError(t, err)
	require.Equal(t, "Set.", answer.Text)
	require.Equal(t, "session-1-with-1", s.runs[0].Session)
	require.Empty(t, s.runs[0].Files, "they are in the session already")
	s.gone = true
	answer, err = talk.Ask(within(t), agent.Question{Text: "second"}, nil)
	require.NoError(t, err)
	require.Equal(t, "One.", answer.Text)
	require.Equal(t, "session-2-with-1", s.runs[2].Session)
	require.NoError(t, talk.Close())
	require.Equal(t, -2, s.opened, "closed")
	require.Len(t, model.Requests(), 4)
}

// hostFolder has data, what must not be read, and ways to get there.
func hostFolder(t *testing.T) *agent.Folder {
	t.Helper()
	outside := filepath.Join(t.TempDir(), "outside.txt")
	require.NoError(t, os.WriteFile(outside, []byte("SECRET"), 0o600))
	dir := t.TempDir()
	for name, content := range map[string]string{
		"data.csv": "a,b\n1,2\n", "sub/more.txt": "more", ".env": "SECRET", ".git/config": "SECRET", "sub/.hidden/x": "SECRET", "binary": "\x00\x01\x02",
	} {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	for link, to := range map[string]string{
		"inside.csv": "data.csv", "out.txt": outside, "up": "..", "dot.txt": ".env", "dots": ".git", "loop": "loop", "sub/back.csv": "../data.csv", "sub/over.txt": "../../" + filepath.Base(filepath.Dir(outside)) + "/outside.txt",
	} {
		require.NoError(t, os.Symlink(to, filepath.Join(dir, link)))
	}
	f, err := agent.OpenFolder(dir)
	require.NoError(t, err)
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func TestFolder(t *testing.T) {
	f := hostFolder(t)
	list, more, err := f.List("")
	require.NoError(t, err)
	require.Zero(t, more)
	var names []string
	for _, e := range list {
		names = append(names, e.Name)
	}
	require.Equal(t, []string{"binary", "data.csv", "inside.csv", "sub/"}, names)
	for _, name := range []string{"data.csv", "inside.csv", "./data.csv", "sub/back.csv", "sub/../data.csv"} {
		part, size, err := f.Read(name, 0, 100)
		require.NoError(t, err, name)
		require.Equal(t, "a,b\n1,2\n", string(part))
		require.EqualValues(t, 8, size)
	}
	for _, name := range []string{
		".env", "./.env", "sub/../.env", ".git/config", "sub/.hidden/x", "dot.txt", "dots/config", "out.txt", "up/x", "..", "../x", "sub/over.txt",
		"/etc/passwd", "loop", "none", "sub", "", ".", "data.csv/x", "a\x00b",
	} {
		_, _, err := f.Read(name, 0, 100)
		require.Error(t, err, name)
		_, err = f.File(name)
		require.Error(t, err, name)
		require.NotContains(t, err.Error(), os.TempDir(), "a path of the host")
	}
	file, err := f.File("sub/more.txt")
	require.NoError(t, err)
	r, err := file.Open()
	require.NoError(t, err)
	defer r.Close()
	content, err := io.ReadAll(r)
	require.NoError(t, err)
	require.Equal(t, "more", string(content))
}

func TestTheFileAgentNeverSeesASandbox(t *testing.T) {
	s := &sandbox{}
	a, model := begin(t, s, agent.Config{Folder: hostFolder(t)},
		agenttest.Dialogue{Model: "files", Question: "first", Turns: []agenttest.Turn{
			{Calls: []agenttest.Call{{Name: "list_files", Arguments: "{}"}, {Name: "execute_python", Arguments: `{"code":"1"}`}}},
			{Calls: []agenttest.Call{{Name: "hand_over", Arguments: `{"files":["data.csv",".env"],"task":"t"}`}}, Expect: []string{"data.csv (8 bytes)", "there is no tool"}},
			{Calls: []agenttest.Call{{Name: "hand_over", Arguments: `{"files":["data.csv"],"task":"Add them."}`}}, Expect: []string{"begin with a dot"}, Absent: []string{"SECRET"}},
		}},
		agenttest.Dialogue{Model: "files", Question: "second", Turns: []agenttest.Turn{{Text: "Which file?", Absent: []string{"ran 7", "Seven"}}}},
		agenttest.Dialogue{Model: "code", Question: "first", Turns: []agenttest.Turn{
			{Calls: run("7"), Expect: []string{"Add them.", "/mnt/data/data.csv (8 bytes)", "a,b"}}, {Text: "Seven."},
		}},
	)
	talk := a.Converse()
	defer talk.Close()
	answer, err := talk.Ask(within(t), agent.Question{Text: "first"}, nil)
	require.NoError(t, err)
	require.Equal(t, "Seven.", answer.Text)
	require.Len(t, s.runs, 1)
	require.Equal(t, "data.csv", s.runs[0].Files[0].Name)
	answer, err = talk.Ask(within(t), agent.Question{Text: "second"}, nil)
	require.NoError(t, err)
	require.Equal(t, "Which file?", answer.Text)
	for _, r := range model.Requests() {
		if r.Model == "code" {
			require.Equal(t, []string{tool.Name}, r.Tools)
		} else {
			require.NotContains(t, r.Tools, tool.Name)
		}
	}
}

// TestTheFileAgentIsToldOfWrongArguments: nothing is handed over by a call that may mean more
// than one thing.
func TestTheFileAgentIsToldOfWrongArguments(t *testing.T) {
	hand := func(arguments string) []agenttest.Call {
		return []agenttest.Call{{Name: "hand_over", Arguments: agenttest.Arguments(arguments)}}
	}
	for _, c := range []struct{ desc, arguments, told string }{
		{"another name", `{"file":["data.csv"],"task":"t"}`, `hand_over has no argument \"file\"`},
		{"one too many", `{"files":["data.csv"],"task":"t","folder":"sub"}`, `hand_over has no argument \"folder\"`},
		{"no task", `{"files":["data.csv"]}`, "hand_over lacks its argument task"},
		{"no files", `{"task":"t","files":null}`, "hand_over lacks its argument files"},
		{"of another type", `{"task":"t","files":"data.csv"}`, "could not be read"},
	} {
		t.Run(c.desc, func(t *testing.T) {
			s := &sandbox{}
			a, model := begin(t, s, agent.Config{Folder: hostFolder(t)},
				agenttest.Dialogue{Model: "files", Turns: []agenttest.Turn{
					{Calls: hand(c.arguments)}, {Calls: hand(`{"files":["data.csv"],"task":"Add them."}`), Expect: []string{strings.ReplaceAll(c.told, `\"`, `"`)}},
				}},
				agenttest.Dialogue{Model: "code", Turns: []agenttest.Turn{{Calls: run("7"), Expect: []string{"Add them."}}, {Text: "Seven."}}},
			)
			answer, err := a.Ask(within(t), agent.Question{Text: "first"}, nil)
			require.NoError(t, err)
			require.Equal(t, "Seven.", answer.Text)
			require.Empty(t, model.Failures())
			require.Equal(t, []string{"refused", "ok", "ok"}, []string{answer.Steps[0].Status, answer.Steps[1].Status, answer.Steps[2].Status})
		})
	}
}

// TestTheCodeAgentMayAskAboutItsTool: what the description leaves out is told, and nothing runs.
func TestTheCodeAgentMayAskAboutItsTool(t *testing.T) {
	s := &sandbox{}
	python := tool.Language{Name: "python", Title: "Python 3", Packages: []string{"numpy"}, Notes: []string{"No corpora."}}
	a, model := begin(t, s, agent.Config{About: tool.About{Languages: []tool.Language{python}}}, agenttest.Dialogue{Turns: []agenttest.Turn{
		{Calls: []agenttest.Call{{Name: tool.Name, Arguments: `{"code":"","about":true}`}}},
		{Calls: run("7"), Expect: []string{"Nothing was run.", "numpy", "No corpora."}}, {Text: "Seven."},
	}})
	answer, err := a.Ask(within(t), agent.Question{Text: "first"}, nil)
	require.NoError(t, err)
	require.Equal(t, "Seven.", answer.Text)
	require.Empty(t, model.Failures())
	require.Len(t, s.runs, 1)
	require.Len(t, answer.Steps, 2)
}
