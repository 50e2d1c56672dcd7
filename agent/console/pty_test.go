//go:build unix

package console

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/agent"
	"notebox/agent/agenttest"
	"notebox/agent/provider"
	"notebox/terminal"
	"notebox/terminal/terminaltest"
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

// open starts this test's program again, as the variables say.
func open(t *testing.T, variables ...string) *terminaltest.Screen {
	t.Helper()
	process := exec.Command(os.Args[0])
	process.Env = append(os.Environ(), variables...)
	return terminaltest.Open(t, process, 80)
}

func TestTerminal(t *testing.T) {
	model := agenttest.New(t, dialogues...)
	history := filepath.Join(t.TempDir(), "state", "history")
	s := open(t, childModel+"="+model.URL(), childHistory+"="+history)
	s.See("hello")
	s.See(prompt)
	s.Write("What is six times sevem?\x7f\x7fn?\r") // mended while it is typed
	s.See("ran 6*7")
	s.See("42")
	s.See(prompt)

	s.Write("wait for it\r")
	require.Eventually(t, func() bool { return strings.Contains(lastQuestion(model), "wait for it") }, terminaltest.WaitTime, 20*time.Millisecond)
	s.See("thinking")
	s.Write("\x03")
	s.See("Interrupted.")
	s.See(prompt)

	s.Write("half a li\x03")
	s.See(prompt)
	s.Write("ag\x1b[A\x1b[A\x1b[B\x15again\r") // through the history, and the line begun anew
	s.See("Again.")
	s.See(prompt)
	s.Write("exit\r")
	s.See("the console ended")
	require.Zero(t, s.Wait())

	raw, err := os.ReadFile(history)
	require.NoError(t, err)
	require.Equal(t, "What is six times seven?\nwait for it\nagain\nexit\n", string(raw))
	info, err := os.Stat(history)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	require.NotContains(t, s.Text(), "\x1b[2J")
	require.NotContains(t, s.Text(), "owned")
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
	s.See(prompt)
	s.Write("\x1b[A")
	s.See("before")
	s.Write("\x15")
	s.Write("\x04")
	s.See("the console ended")
	require.Zero(t, s.Wait())
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
			s.See("\x1b[c")
			if c.answer != "" {
				s.Write(c.answer)
			}
			s.See(c.want)
			require.Zero(t, s.Wait())
		})
	}
}
