package notebook

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// uncaughtGroup is how IPython (8 and 9) begins an ExceptionGroup that nobody
// caught. Unlike any other exception it is no error output: IPython leaves it to
// Python, which prints it. One that the code itself prints has other frames.
var uncaughtGroup = regexp.MustCompile(`(?m)^  \+ Exception Group Traceback \(most recent call last\):\n  \|   File "[^"\n]*IPython/core/interactiveshell\.py", line \d+, in run_(?:code|ast_nodes)\n`)

var (
	groupFrame = regexp.MustCompile(`^  \|   File "([^"]*)", line (\d+), in (.*)$`)
	groupFinal = regexp.MustCompile(`^  \| (\S+?): (.*)$`)
)

// exceptionGroup returns the ExceptionGroup that ended the cell, nil if none did.
func (r *reading) exceptionGroup(cell cellHead) *Exception {
	for _, out := range slices.Backward(r.outputs) {
		if out.Cell != cell.index {
			return nil
		}
		if out.Type != TypeStream || out.Name != "stderr" {
			continue
		}
		if at := uncaughtGroup.FindStringIndex(out.Text); at != nil {
			return r.readGroup(cell, out.Text[at[0]:])
		}
	}
	return nil
}

// readGroup reads the traceback that text begins with. The cell's own file is
// the one whose module level ran, and the line is the last one in it.
func (r *reading) readGroup(cell cellHead, text string) *Exception {
	e := &Exception{Cell: cell.index}
	file, length := "", 0
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "  ") {
			break
		}
		length += len(line)
		line = strings.TrimSuffix(line, "\n")
		if frame := groupFrame.FindStringSubmatch(line); frame != nil && e.Name == "" {
			if frame[3] == "<module>" {
				file = frame[1]
			}
			if frame[1] == file {
				e.Line, _ = strconv.Atoi(frame[2])
			}
		}
		if final := groupFinal.FindStringSubmatch(line); final != nil && e.Name == "" {
			e.Name = clip(final[1])
			e.Message = r.clamp(cell.index, "", "the exception's message", final[2], r.limits.MaxErrorBytes)
		}
	}
	if e.Line > 0 {
		source, _ := multiline(cell.source)
		e.Line += leadingBlankLines(source)
	}
	e.Traceback = r.clamp(cell.index, "", "the traceback", strings.TrimSuffix(text[:length], "\n"), r.limits.MaxErrorBytes)
	return e
}
