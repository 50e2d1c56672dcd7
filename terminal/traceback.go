package terminal

import (
	"regexp"
	"strings"
)

// The lines of a traceback, as IPython writes it: where, the line that failed, and in the end what
// happened.
var (
	tracebackRule   = regexp.MustCompile(`^-{20,}$`)
	tracebackWhere  = regexp.MustCompile(`^(Cell In\[\d+\]|File |Input In )`)
	tracebackFailed = regexp.MustCompile(`^-+> ?\d`)
	tracebackWhat   = regexp.MustCompile(`^[A-Za-z_][\w.]*(: |$)`)
)

// Traceback colours one, in whatever language: what it does not know stays as it is.
func Traceback(text string) string {
	lines := strings.Split(strings.TrimRight(Defuse(text), "\n"), "\n")
	for i, line := range lines {
		colour := ""
		switch {
		case tracebackRule.MatchString(line):
			colour = Dim
		case tracebackWhere.MatchString(line):
			colour = Cyan
		case tracebackFailed.MatchString(line), i > 0 && tracebackWhat.MatchString(line):
			colour = Red
		}
		if colour != "" {
			lines[i] = colour + line + Plain
		}
	}
	return strings.Join(lines, "\n")
}
