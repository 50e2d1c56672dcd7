//go:build unix

package terminal

import (
	"errors"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

const (
	// queryTime bounds the wait for a terminal's answer: it is there in milliseconds, in
	// a tenth of a second over a slow line, and never where a program poses as a terminal.
	queryTime = 500 * time.Millisecond
	// maxQueryAnswer bounds the answer, in bytes.
	maxQueryAnswer = 256
)

// Query asks a terminal for its attributes (DA1). It returns what came in the time that
// there is for it, which may be nothing.
func Query(terminal *os.File) string {
	fd := int(terminal.Fd())
	if group, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP); err != nil || group != unix.Getpgrp() {
		return "" // a program in the background would be stopped
	}
	before, err := term.MakeRaw(fd)
	if err != nil {
		return ""
	}
	defer func() { _ = term.Restore(fd, before) }() // it is as it was, or gone
	if _, err := terminal.WriteString("\x1b[c"); err != nil {
		return ""
	}
	var answer []byte
	for end := time.Now().Add(queryTime); len(answer) < maxQueryAnswer && !strings.HasSuffix(string(answer), "c"); {
		wait := time.Until(end)
		if wait <= 0 {
			break
		}
		ready, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(wait.Milliseconds())+1)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || ready == 0 {
			break
		}
		one := make([]byte, 1) // not more than the answer: what is typed after it is the prompt's
		if n, err := unix.Read(fd, one); err != nil || n == 0 {
			break
		}
		answer = append(answer, one[0])
	}
	return string(answer)
}
