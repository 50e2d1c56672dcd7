package commandline

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/terminal/terminaltest"
)

// onTerminal starts a call on a terminal of 100 columns.
func onTerminal(t *testing.T, c call) *terminaltest.Screen {
	t.Helper()
	cmd := c.command(t)
	cmd.Stdin = nil
	return terminaltest.Open(t, cmd, 100)
}

func TestTerminal(t *testing.T) {
	inPlaces(t, func(t *testing.T, env []string) {
		s := onTerminal(t, call{args: []string{"run", "-c", "print('before')\nprint('\\x1b]0;title\\x07evil\\x9b2J')\n1/0"}, env: env})
		require.Equal(t, 1, s.Wait())
		shown := s.Text()
		if env == nil {
			require.Contains(t, shown, "starting a sandbox", "what takes long is told")
		}
		require.Contains(t, shown, "\r\x1b[K", "and is gone when output comes")
		require.Contains(t, shown, "before\r\n")
		require.NotContains(t, shown, "\x1b]0;")
		require.Contains(t, shown, "\x1b[31mZeroDivisionError: division by zero\x1b[0m", "a traceback has colours")
	})
}

// TestInterrupt: Ctrl-C is the code's, which may still say something; a second one leaves.
func TestInterrupt(t *testing.T) {
	const code = "import time\nprint('sleeps', flush=True)\ntry:\n    time.sleep(100)\nfinally:\n    print('woken', flush=True)"
	inPlaces(t, func(t *testing.T, env []string) {
		s := onTerminal(t, call{args: []string{"run", "-c", code}, env: env})
		s.See("sleeps")
		s.Write("\x03")
		require.Equal(t, 130, s.Wait())
		require.Contains(t, s.Text(), "woken")
		require.Contains(t, s.Text(), "KeyboardInterrupt")
	})
	t.Run("twice", func(t *testing.T) {
		t.Parallel()
		s := onTerminal(t, call{args: []string{"run", "--language", "bash", "-c", "trap '' INT; echo deaf; while :; do sleep 1; done"}})
		s.See("deaf")
		s.Write("\x03\x03")
		require.Equal(t, 130, s.Wait())
	})
	t.Run("before it runs", func(t *testing.T) {
		t.Parallel()
		s := onTerminal(t, call{args: []string{"run", "-c", code}})
		s.See("starting")
		s.Write("\x03")
		require.Equal(t, 130, s.Wait())
	})
}

// TestInputThatNeverEnds: Ctrl-C ends a call that still reads its program.
func TestInputThatNeverEnds(t *testing.T) {
	t.Parallel()
	s := onTerminal(t, call{args: []string{"run", "-"}})
	time.Sleep(500 * time.Millisecond)
	s.Write("\x03")
	require.Equal(t, 130, s.Wait(), s.Text())
}

// TestReplyOnATerminal: names that code has made do nothing to it in JSON either.
func TestReplyOnATerminal(t *testing.T) {
	t.Parallel()
	s := onTerminal(t, call{args: []string{"run", "--json", "-c", "open('x\\x9b2J\\u202e', 'w').close()"}, env: []string{"NOTEBOX_URL=" + shared.URL}})
	require.Zero(t, s.Wait(), s.Text())
	require.Contains(t, s.Text(), `/mnt/data/x\u009b2J\u202e`)
	require.NotContains(t, s.Text(), "\u009b")
}

// TestProgressBar: what a program writes over stays one line on a terminal, and its last state
// in a pipe.
func TestProgressBar(t *testing.T) {
	const code = "import sys, time\nfor i in range(5):\n    sys.stderr.write(f'\\r{i} of 4'); sys.stderr.flush(); time.sleep(0.3)\nprint('', file=sys.stderr)"
	inPlaces(t, func(t *testing.T, env []string) {
		got := call{args: []string{"run", "-c", code}, env: env}.run(t)
		require.Equal(t, ended{said: "4 of 4\n"}, got)
		s := onTerminal(t, call{args: []string{"run", "-c", code}, env: env})
		require.Zero(t, s.Wait())
		require.Contains(t, s.Text(), "\r\x1b[J4 of 4")
	})
}
