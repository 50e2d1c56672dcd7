package tool

import (
	"fmt"
	"regexp"
	"strings"
)

// shortTraceback is how many lines one may have and be left as it is.
const shortTraceback = 30

// frameHead begins a frame: of the program, or of a file. IPython writes "Cell In[1],
// line 2" and "File /a/b.py:12, in f(x)", Python itself `File "/a/b.py", line 12, in f`.
var frameHead = regexp.MustCompile(`^\s{0,2}(Cell In ?\[|Input In ?\[|File )`)

// ownFrame is that of the program, or of a file that it brought.
var ownFrame = regexp.MustCompile(`^\s{0,2}(Cell In ?\[|Input In ?\[|File "?(/mnt/data|/tmp)/)`)

// Essence shortens a long traceback to what its author can correct: its head, the frames
// of the program itself, the place where the last one of a library was, and the error.
// What is left out is counted.
func Essence(traceback string) string {
	lines := strings.Split(strings.TrimRight(traceback, "\n"), "\n")
	if len(lines) <= shortTraceback {
		return traceback
	}
	var heads []int
	for i, l := range lines {
		if frameHead.MatchString(l) {
			heads = append(heads, i)
		}
	}
	if len(heads) == 0 {
		return traceback
	}
	out := append([]string{}, lines[:heads[0]]...)
	skipped := 0
	for n, at := range heads {
		last := n == len(heads)-1
		end := len(lines)
		if !last {
			end = heads[n+1]
		}
		switch {
		case ownFrame.MatchString(lines[at]):
			out = append(countSkipped(out, &skipped), lines[at:end]...)
		case last:
			out = append(countSkipped(out, &skipped), lines[at])
			out = append(out, afterFrame(lines[at+1:end])...)
		default:
			skipped++
		}
	}
	return strings.Join(out, "\n")
}

func countSkipped(out []string, skipped *int) []string {
	if *skipped > 0 {
		out = append(out, fmt.Sprintf("[… %d frames of libraries left out …]", *skipped), "")
	}
	*skipped = 0
	return out
}

// afterFrame is what follows the last frame's lines of code: the error.
func afterFrame(lines []string) []string {
	for i, l := range lines {
		if strings.TrimSpace(l) == "" {
			return lines[i:]
		}
	}
	return lines
}
