//go:build unix

package console

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/stretchr/testify/require"

	"notebox/agent"
	"notebox/agent/agenttest"
	"notebox/agent/provider"
	"notebox/terminal"
)

// The terminal is of a process: the tests of it run this test's program again, with a
// pseudo-terminal as its own and the variables below.
const (
	childModel   = "NOTEBOX_TEST_CONSOLE_MODEL"
	childHistory = "NOTEBOX_TEST_CONSOLE_HISTORY"
	childQuery   = "NOTEBOX_TEST_CONSOLE_QUERY"
)

func TestMain(m *testing.M) {
	switch {
	case os.Getenv(childQuery) != "":
		fmt.Printf("pictures: %s.\n", terminal.Detect(os.Getenv, func() string { return terminal.Query(os.Stdin) }))
	case os.Getenv(childModel) != "":
		if err := child(); err != nil {
			fmt.Println("failed:", err)
			os.Exit(1)
		}
		fmt.Println("the console ended")
	default:
		os.Exit(m.Run())
	}
}

// child is a console as notebox chat has one.
func child() error {
	p, err := provider.Open(provider.Settings{API: provider.Chat, Model: "scripted", BaseURL: os.Getenv(childModel), Key: "key"})
	if err != nil {
		return err
	}
	a, err := agent.New(agent.Config{Code: agent.Mind{Provider: p}, Executor: sandbox{}})
	if err != nil {
		return err
	}
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt)
	lines, err := OpenTerminal(os.Getenv(childHistory))
	if err != nil {
		return err
	}
	defer lines.Close()
	talk := New(Options{Agent: a, Out: os.Stdout, Columns: columns, Interrupts: interrupts, Greeting: "hello"})
	defer talk.Close()
	return talk.Interact(context.Background(), lines)
}

// screen is what a process writes to its terminal.
type screen struct {
	t       *testing.T
	tty     *os.File
	process *exec.Cmd

	mu   sync.Mutex
	text string
	from int // of what was not looked for yet
}

// screenTime bounds each wait, on a machine that does much else.
const screenTime = 2 * time.Minute

func open(t *testing.T, variables ...string) *screen {
	t.Helper()
	s := &screen{t: t, process: exec.Command(os.Args[0])}
	s.process.Env = append(os.Environ(), append([]string{"TERM=xterm-256color", "TMUX=", "TERM_PROGRAM=", "LC_TERMINAL=", "KITTY_WINDOW_ID="}, variables...)...)
	terminal, err := pty.StartWithSize(s.process, &pty.Winsize{Rows: 40, Cols: 80})
	require.NoError(t, err)
	s.tty = terminal
	read := make(chan struct{})
	go func() {
		defer close(read)
		part := make([]byte, 4096)
		for {
			n, err := terminal.Read(part)
			s.mu.Lock()
			s.text += string(part[:n])
			s.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		_ = s.process.Process.Kill() // it has ended, unless the test failed
		_ = s.process.Wait()
		terminal.Close()
		<-read
	})
	return s
}

func (s *screen) write(text string) {
	s.t.Helper()
	_, err := io.WriteString(s.tty, text)
	require.NoError(s.t, err)
}

// see waits for a text after those that were seen before.
func (s *screen) see(want string) {
	s.t.Helper()
	require.Eventually(s.t, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		at := strings.Index(s.text[s.from:], want)
		if at >= 0 {
			s.from += at + len(want)
		}
		return at >= 0
	}, screenTime, 20*time.Millisecond, "%q is not in %q", want, &s.text)
}

func TestTerminal(t *testing.T) {
	model := agenttest.New(t, dialogues...)
	history := filepath.Join(t.TempDir(), "state", "history")
	s := open(t, childModel+"="+model.URL(), childHistory+"="+history)
	s.see("hello")
	s.see(prompt)
	s.write("What is six times sevem?\x7f\x7fn?\r") // mended while it is typed
	s.see("ran 6*7")
	s.see("42")
	s.see(prompt)

	s.write("wait for it\r")
	require.Eventually(t, func() bool { return strings.Contains(lastQuestion(model), "wait for it") }, screenTime, 20*time.Millisecond)
	s.see("thinking")
	s.write("\x03")
	s.see("Interrupted.")
	s.see(prompt)

	s.write("half a li\x03")
	s.see(prompt)
	s.write("ag\x1b[A\x1b[A\x1b[B\x15again\r") // through the history, and the line begun anew
	s.see("Again.")
	s.see(prompt)
	s.write("exit\r")
	s.see("the console ended")
	require.NoError(t, s.process.Wait())

	raw, err := os.ReadFile(history)
	require.NoError(t, err)
	require.Equal(t, "What is six times seven?\nwait for it\nagain\nexit\n", string(raw))
	info, err := os.Stat(history)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	s.mu.Lock()
	defer s.mu.Unlock()
	require.NotContains(t, s.text, "\x1b[2J")
	require.NotContains(t, s.text, "owned")
}

func lastQuestion(model *agenttest.Server) string {
	all := model.Requests()
	return all[len(all)-1].Question()
}

func TestTheEndOfInputEnds(t *testing.T) {
	model := agenttest.New(t, dialogues...)
	history := filepath.Join(t.TempDir(), "history")
	require.NoError(t, os.WriteFile(history, []byte("before\x1b[2J\n"), 0o644))
	s := open(t, childModel+"="+model.URL(), childHistory+"="+history)
	s.see(prompt)
	s.write("\x1b[A")
	s.see("before")
	s.write("\x15")
	s.write("\x04")
	s.see("the console ended")
	require.NoError(t, s.process.Wait())
	info, err := os.Stat(history)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
}

func TestQuery(t *testing.T) {
	for _, c := range []struct{ desc, answer, want string }{
		{"sixel", "\x1b[?62;4;22c", "pictures: sixel."},
		{"none", "\x1b[?62;22c", "pictures: off."},
		{"no answer", "", "pictures: off."},
		{"no end of one", "\x1b[?62", "pictures: off."},
	} {
		t.Run(c.desc, func(t *testing.T) {
			s := open(t, childQuery+"=1")
			s.see("\x1b[c")
			if c.answer != "" {
				s.write(c.answer)
			}
			s.see(c.want)
			require.NoError(t, s.process.Wait())
		})
	}
}
