package console

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"notebox/terminal"

	"github.com/peterh/liner"
)

// Terminal is the Lines of the terminal on standard input and output, with editing,
// completion, and a history in a file. Between lines it echoes nothing, so that what is
// typed does not get into an answer, and Ctrl-C is a signal. It must be closed.
type Terminal struct {
	state   *liner.State
	history string // "": none is kept
}

var _ Lines = (*Terminal)(nil)

// maxHistory bounds the history that is kept, in bytes: about a thousand questions.
const maxHistory = 256 << 10

// OpenTerminal takes the terminal. history is the file of earlier lines, "" for none; a
// history that cannot be read or written is an error.
func OpenTerminal(history string) (*Terminal, error) {
	if history != "" {
		if err := readable(history); err != nil {
			return nil, fmt.Errorf("history: %w", err)
		}
	}
	t := &Terminal{state: liner.NewLiner(), history: history}
	t.state.SetCtrlCAborts(true)
	t.state.SetTabCompletionStyle(liner.TabPrints)
	t.state.SetCompleter(Complete)
	if history != "" {
		raw, err := os.ReadFile(history)
		if err == nil {
			_, err = t.state.ReadHistory(bytes.NewReader(raw))
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("history: %w", err), t.state.Close())
		}
	}
	return t, nil
}

// Close gives the terminal back as it was.
func (t *Terminal) Close() error { return t.state.Close() }

// Line implements Lines.
func (t *Terminal) Line(ctx context.Context, prompt string) (string, error) {
	type read struct {
		line string
		err  error
	}
	got := make(chan read, 1)
	go func() {
		line, err := t.state.Prompt(prompt)
		got <- read{line, err}
	}()
	select {
	case <-ctx.Done(): // the goroutine ends with the program
		return "", ctx.Err()
	case r := <-got:
		if errors.Is(r.err, liner.ErrPromptAborted) {
			return "", ErrInterrupted
		}
		if r.err != nil {
			return "", r.err
		}
		if err := t.remember(r.line); err != nil {
			t.history = "" // one complaint is enough
			fmt.Fprintln(os.Stderr, "notebox: the history is not kept any more:", err)
		}
		return r.line, nil
	}
}

// remember adds a line to the history, and to its file at once.
func (t *Terminal) remember(line string) error {
	line = strings.TrimSpace(line)
	if line == "" {
		return nil
	}
	t.state.AppendHistory(line)
	if t.history == "" {
		return nil
	}
	f, err := os.OpenFile(t.history, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(line + "\n")
	return errors.Join(err, f.Close())
}

// readable makes the history's file such that it is its owner's alone and bounded, with
// lines that a terminal can show.
func readable(name string) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	raw, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		raw, err = nil, nil
	}
	if err != nil {
		return err
	}
	if err := os.WriteFile(name, trimmed(raw), 0o600); err != nil {
		return err
	}
	return os.Chmod(name, 0o600)
}

// trimmed is the end of a history, in whole lines.
func trimmed(raw []byte) []byte {
	if cut := len(raw) - maxHistory; cut > 0 {
		raw = raw[cut:]
		raw = raw[bytes.IndexByte(raw, '\n')+1:]
	}
	var out bytes.Buffer
	lines := bufio.NewReader(bytes.NewReader(raw))
	for {
		line, err := lines.ReadString('\n')
		if line = terminal.DefuseLine(line); line != "" {
			out.WriteString(line + "\n")
		}
		if errors.Is(err, io.EOF) {
			return out.Bytes()
		}
	}
}
