package console

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"

	"notebox/agent"
	"notebox/terminal"
)

const (
	// maxHeadLines and maxTailLines are how much of a long output is shown: what it
	// begins with, and the end, where results and errors are.
	maxHeadLines, maxTailLines = 12, 12
	// maxTail bounds what the spinner shows of a text, in bytes.
	maxTail = 200
)

// view shows what goes on while a question is answered.
type view struct {
	*terminal.Spinner
	theme terminal.Theme
	said  strings.Builder // of the model's turn
	live  string          // the last line of a program
}

// see is the agent.Sink.
func (v *view) see(e agent.Event) {
	switch e.Kind {
	case agent.EventText:
		v.said.WriteString(e.Text)
		v.Say("writing", tailOf(v.said.String()))
	case agent.EventAgain:
		v.said.Reset()
		v.Say("asking again", "")
	case agent.EventCall:
		v.flush()
		v.call(e.Step)
	case agent.EventLive:
		v.live = tailOf(v.live + e.Text)
		v.Say("running", v.live)
	case agent.EventOutput:
		v.outcome(e.Step)
		v.Say("thinking", "")
	case agent.EventTurn:
		v.Say("thinking", "")
	}
}

// tailOf is the last line with something on it.
func tailOf(text string) string {
	if cut := len(text) - maxTail; cut > 0 {
		for cut < len(text) && !utf8.RuneStart(text[cut]) {
			cut++
		}
		text = text[cut:]
	}
	return terminal.LastLine(text)
}

// flush shows what the model says before it calls a tool. It has no links yet that
// could be ours.
func (v *view) flush() {
	text := strings.TrimSpace(v.said.String())
	v.said.Reset()
	if text != "" {
		var none agent.Links
		v.Print(render(v.theme, none.Clean(text), nil, v.Columns()) + "\n\n")
	}
}

// call shows a call that is about to be run.
func (v *view) call(s *agent.Step) {
	v.live = ""
	if s.Role == agent.FileAgent {
		v.Say("looking at the folder", "")
		v.Print(fmt.Sprintf("%s▸ %s %s%s\n", terminal.Dim, terminal.DefuseLine(s.Tool), ansi.Truncate(terminal.DefuseLine(s.Input), v.Columns()-20, "…"), terminal.Plain))
		return
	}
	v.Say("running", "")
	v.Print(heading("python", v.Columns()) + v.bar(strings.TrimRight(v.theme.Highlight(strings.Trim(s.Input, "\n"), "python"), "\n")+terminal.Plain, terminal.Cyan))
}

// heading is a line that names what comes below it.
func heading(name string, columns int) string {
	rule := max(min(columns, maxColumns)-len(name)-5, 0)
	return fmt.Sprintf("%s╭─ %s %s%s\n", terminal.Cyan, name, strings.Repeat("─", rule), terminal.Plain)
}

// bar sets lines behind a bar, wrapped to the terminal.
func (v *view) bar(text, colour string) string {
	text = strings.ReplaceAll(text, "\t", "    ")
	text = ansi.Wrap(text, min(v.Columns(), maxColumns)-2, "")
	var out strings.Builder
	for line := range strings.SplitSeq(text, "\n") {
		out.WriteString(colour + "│" + terminal.Plain + " " + line + terminal.Plain + "\n")
	}
	return out.String()
}

// outcome shows what became of a call.
func (v *view) outcome(s *agent.Step) {
	if s.Role == agent.FileAgent {
		if s.Failed() {
			v.Print(terminal.Red + "  " + terminal.DefuseLine(s.Output) + terminal.Plain + "\n")
		}
		return
	}
	colour, sign := terminal.Green, "✓ ok"
	if s.Failed() {
		colour, sign = terminal.Red, "✗ "+terminal.DefuseLine(s.Status)
	}
	text := named.ReplaceAllString(terminal.Defuse(s.Output), "[$1]")
	text = shorten(strings.Trim(text, "\n"))
	v.Print(fmt.Sprintf("%s├─ %s%s\n%s%s╰─%s\n\n", colour, sign, terminal.Plain, v.bar(text, colour), colour, terminal.Plain))
}

// named are the lines of an outcome that name what the answer's end names with its link.
var named = regexp.MustCompile(`(?m)^\[((?:image|file) [^\n]*): https?://\S+\]$`)

// shorten leaves out the middle of a long output.
func shorten(text string) string {
	lines := strings.Split(text, "\n")
	left := len(lines) - maxHeadLines - maxTailLines
	if left <= 1 {
		return text
	}
	head, tail := lines[:maxHeadLines], lines[len(lines)-maxTailLines:]
	return strings.Join(head, "\n") + fmt.Sprintf("\n… %d lines are not shown …\n", left) + strings.Join(tail, "\n")
}
