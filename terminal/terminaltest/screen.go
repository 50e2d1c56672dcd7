//go:build unix

package terminaltest

import (
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/stretchr/testify/require"
)

// WaitTime bounds each wait, on a machine that does much else.
const WaitTime = 2 * time.Minute

// Screen is a terminal that a process writes to, and a person types into.
type Screen struct {
	t       *testing.T
	tty     *os.File
	process *exec.Cmd
	read    chan struct{} // closed when the process writes nothing more

	mu   sync.Mutex
	text string
	from int // of what was not looked for yet
}

// Open starts a process on a terminal of this many columns, whose variables say of no terminal
// program that it is there. The process ends with the test.
func Open(t *testing.T, process *exec.Cmd, columns uint16) *Screen {
	t.Helper()
	if process.Env == nil {
		process.Env = os.Environ()
	}
	process.Env = append(process.Env, "TERM=xterm-256color", "NO_COLOR=", "TMUX=", "TERM_PROGRAM=", "LC_TERMINAL=", "KITTY_WINDOW_ID=")
	tty, err := pty.StartWithSize(process, &pty.Winsize{Rows: 40, Cols: columns})
	require.NoError(t, err)
	s := &Screen{t: t, tty: tty, process: process, read: make(chan struct{})}
	go func() {
		defer close(s.read)
		part := make([]byte, 4096)
		for {
			n, err := tty.Read(part)
			s.mu.Lock()
			s.text += string(part[:n])
			s.mu.Unlock()
			if err != nil { // EIO: the process has ended
				return
			}
		}
	}()
	t.Cleanup(func() {
		_ = process.Process.Kill() // it has ended, unless the test failed
		_ = process.Wait()
		tty.Close()
		<-s.read
	})
	return s
}

// Write types a text.
func (s *Screen) Write(text string) {
	s.t.Helper()
	_, err := io.WriteString(s.tty, text)
	require.NoError(s.t, err)
}

// See waits for a text after those that were seen before.
func (s *Screen) See(want string) {
	s.t.Helper()
	require.Eventually(s.t, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		at := strings.Index(s.text[s.from:], want)
		if at >= 0 {
			s.from += at + len(want)
		}
		return at >= 0
	}, WaitTime, 20*time.Millisecond, "%q is not in %q", want, &s.text)
}

// Text is all that was written so far.
func (s *Screen) Text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text
}

// Wait waits for the end of the process, and returns its exit status.
func (s *Screen) Wait() int {
	<-s.read
	_ = s.process.Wait() // its status is what is asked for
	return s.process.ProcessState.ExitCode()
}
