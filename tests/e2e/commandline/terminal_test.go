package commandline

import (
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/stretchr/testify/require"
)

// screen is a terminal that a call writes to.
type screen struct {
	t     *testing.T
	tty   *os.File
	wait  func() int
	mu    sync.Mutex
	shown string
}

// onTerminal starts a call on a terminal of 100 columns.
func onTerminal(t *testing.T, c call) *screen {
	t.Helper()
	cmd := c.command(t)
	cmd.Stdin = nil
	cmd.Env = append(cmd.Env, "TERM=xterm-256color", "NO_COLOR=", "TERM_PROGRAM=", "KITTY_WINDOW_ID=", "TMUX=")
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 30, Cols: 100})
	require.NoError(t, err)
	s := &screen{t: t, tty: tty}
	read := make(chan struct{})
	go func() {
		defer close(read)
		buffer := make([]byte, 4096)
		for {
			n, err := tty.Read(buffer)
			s.mu.Lock()
			s.shown += string(buffer[:n])
			s.mu.Unlock()
			if err != nil { // EIO: the program has ended
				return
			}
		}
	}()
	s.wait = func() int {
		<-read
		_ = cmd.Wait() // its status is what is asked for
		_ = tty.Close()
		return cmd.ProcessState.ExitCode()
	}
	return s
}

func (s *screen) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shown
}

// until waits for a text.
func (s *screen) until(text string) {
	s.t.Helper()
	require.Eventually(s.t, func() bool { return strings.Contains(s.text(), text) }, soon, 10*time.Millisecond, "%q", s.text())
}

func TestTerminal(t *testing.T) {
	inPlaces(t, func(t *testing.T, env []string) {
		s := onTerminal(t, call{args: []string{"run", "-c", "print('before')\nprint('\\x1b]0;title\\x07evil\\x9b2J')\n1/0"}, env: env})
		require.Equal(t, 1, s.wait())
		shown := s.text()
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
		s.until("sleeps")
		_, err := s.tty.WriteString("\x03")
		require.NoError(t, err)
		require.Equal(t, 130, s.wait())
		require.Contains(t, s.text(), "woken")
		require.Contains(t, s.text(), "KeyboardInterrupt")
	})
	t.Run("twice", func(t *testing.T) {
		t.Parallel()
		s := onTerminal(t, call{args: []string{"run", "--language", "bash", "-c", "trap '' INT; echo deaf; while :; do sleep 1; done"}})
		s.until("deaf")
		_, err := s.tty.WriteString("\x03\x03")
		require.NoError(t, err)
		require.Equal(t, 130, s.wait())
	})
	t.Run("before it runs", func(t *testing.T) {
		t.Parallel()
		s := onTerminal(t, call{args: []string{"run", "-c", code}})
		s.until("starting")
		_, err := s.tty.WriteString("\x03")
		require.NoError(t, err)
		require.Equal(t, 130, s.wait())
	})
}

// TestInputThatNeverEnds: Ctrl-C ends a call that still reads its program.
func TestInputThatNeverEnds(t *testing.T) {
	t.Parallel()
	s := onTerminal(t, call{args: []string{"run", "-"}})
	time.Sleep(500 * time.Millisecond)
	_, err := s.tty.WriteString("\x03")
	require.NoError(t, err)
	require.Equal(t, 130, s.wait(), s.text())
}

// TestReplyOnATerminal: names that code has made do nothing to it in JSON either.
func TestReplyOnATerminal(t *testing.T) {
	t.Parallel()
	s := onTerminal(t, call{args: []string{"run", "--json", "-c", "open('x\\x9b2J\\u202e', 'w').close()"}, env: []string{"NOTEBOX_URL=" + shared.URL}})
	require.Zero(t, s.wait(), s.text())
	require.Contains(t, s.text(), `/mnt/data/x\u009b2J\u202e`)
	require.NotContains(t, s.text(), "\u009b")
}

// TestProgressBar: what a program writes over stays one line on a terminal, and its last state
// in a pipe.
func TestProgressBar(t *testing.T) {
	const code = "import sys, time\nfor i in range(5):\n    sys.stderr.write(f'\\r{i} of 4'); sys.stderr.flush(); time.sleep(0.3)\nprint('', file=sys.stderr)"
	inPlaces(t, func(t *testing.T, env []string) {
		got := call{args: []string{"run", "-c", code}, env: env}.run(t)
		require.Equal(t, ended{said: "4 of 4\n"}, got)
		s := onTerminal(t, call{args: []string{"run", "-c", code}, env: env})
		require.Zero(t, s.wait())
		require.Contains(t, s.text(), "\r\x1b[J4 of 4")
	})
}
