package notebook

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// repeatedFrames is how often a frame is shown that recurses into itself, as in
// Python's own tracebacks. IPython 9 sends all thousand.
const repeatedFrames = 3

// joinFrames returns the text of a traceback, which nbformat has as a list of
// IPython's frames. What is no string in it is left out.
func joinFrames(raw jsontext.Value) string {
	if text, ok := unquote(raw); ok {
		return text
	}
	var text strings.Builder
	add := func(frame string) {
		if text.Len() > 0 {
			text.WriteByte('\n')
		}
		text.WriteString(frame)
	}
	last, equal := "", 0 // the last frame, and how many more are equal to it
	note := func() {
		if equal >= repeatedFrames {
			add(fmt.Sprintf("[previous frame repeated %d more times]\n", equal+1-repeatedFrames))
		}
	}
	_ = elements(raw, lenient, func(_ int, value jsontext.Value) error {
		frame, ok := unquote(value)
		switch {
		case !ok:
		case text.Len() > 0 && frame == last && equal+1 >= repeatedFrames:
			equal++
		case text.Len() > 0 && frame == last:
			equal++
			add(frame)
		default:
			note()
			last, equal = frame, 0
			add(frame)
		}
		return nil
	})
	note()
	return text.String()
}

// maxLine bounds the line of an error: a notebook of DefaultMaxBytes has no more.
const maxLine = int(DefaultMaxBytes)

// cellFrame is the head of a frame that belongs to a cell, in IPython 8 and 9,
// also of a SyntaxError, which is indented: "Cell In[3], line 2", and as before
// 8.7 "Cell In [3], line 2" and "Input In [3], in <cell line: 2>()". The code
// below a %%time has frames of its own.
var cellFrame = regexp.MustCompile(`(?m)^(?: {0,2}(?:Cell|Input) In ?\[(\d+)\], (?:line |in <cell line: )|File <timed exec>:)(\d+)`)

// line returns the 1-based line of the cell at which the exception out passed
// through it, 0 if the traceback does not tell: that of the last frame with
// the cell's own execution count. Frames of earlier cells, whose functions it
// calls, have other counts. What begins with such a frame is no traceback of
// IPython's, and says the line itself.
func line(out Output, cell cellHead) int {
	frames := out.Traceback
	// The message comes last, and may hold anything.
	if i := strings.LastIndex(frames, "\n"+out.Name+": "+out.Message); i >= 0 {
		frames = frames[:i]
	}
	source, _ := multiline(cell.source)
	timed := strings.HasPrefix(strings.TrimLeft(source, blank), "%%time")
	found := 0
	for _, m := range cellFrame.FindAllStringSubmatch(frames, -1) {
		n, err := strconv.Atoi(m[2])
		switch {
		case err != nil || n > maxLine: // as hostile as the rest
		case m[1] == "" && timed:
			found = n + 1 // after the line of the magic
		case m[1] != "" && m[1] == cell.count:
			found = n
		}
	}
	if found == 0 || strings.HasPrefix(frames, "Cell In[") { // another kernel's, which counts all lines
		return found
	}
	return found + leadingBlankLines(source)
}

// blank is what a blank line consists of.
const blank = " \t\r\n\f\v"

// leadingBlankLines counts the lines that IPython takes off a cell before it
// counts: input_transformer2.leading_empty_lines.
func leadingBlankLines(source string) int {
	code := strings.TrimLeft(source, blank)
	if code == "" {
		return 0
	}
	return strings.Count(source[:len(source)-len(code)], "\n")
}
