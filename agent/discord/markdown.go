package discord

import (
	"cmp"
	"regexp"
	"strings"

	"notebox/agent/internal/markdown"
)

// links are those that notebox issued in a channel, and may lead somewhere. In an
// answer, those of its attachments need not.
type links struct {
	known markdown.Links
	order []string
}

func (l *links) issue(url string) {
	if url == "" || l.known.Find(url) == url {
		return
	}
	for len(l.order) >= maxLinks {
		l.known.Remove(l.order[0])
		l.order = l.order[1:]
	}
	l.known.Add(url)
	l.order = append(l.order, url)
}

// blank stands within what must not be read as one, and is not seen.
const blank = "\u200b"

// render makes Discord's of an agent's answer:
//
//   - every block of code is in fences of three backticks, as there are no others; so
//     are tables, as there are none
//   - a link or image that is attached is its name; another that was issued is a link
//     without embed
//   - any other address, also in inline code, is broken by a character that is not seen.
//     The agent made code of those; but what is code is not the same for both.
func render(text string, l *links, attached map[string]bool) string {
	var out []string
	lines := strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	for i := 0; i < len(lines); {
		if f := fenceOf(lines[i]); f != nil {
			end := i + 1
			for end < len(lines) && !f.closedBy(lines[end]) {
				end++
			}
			out = append(out, fenced(f.language, f.content(lines[i+1:min(end, len(lines))])))
			i = end + 1
			continue
		}
		if n := tableAt(lines[i:]); n > 0 {
			out = append(out, fenced("", strings.Join(lines[i:i+n], "\n")))
			i += n
			continue
		}
		out = append(out, prose(lines[i], l, attached))
		i++
	}
	return strings.TrimSpace(strings.Join(out, "\n"))
}

// fenced is code as a block that nothing in it ends.
func fenced(language, code string) string {
	return "```" + language + "\n" + strings.ReplaceAll(code, "```", "``"+blank+"`") + "\n```"
}

// fence is a line that opens a block of code (CommonMark, section 4.5).
type fence struct{ indent, mark, language string }

var (
	fenceLine  = regexp.MustCompile("^([ \t]*)(`{3,}|~{3,})[ \t]*([^`]*)$")
	notInNames = regexp.MustCompile(`[^A-Za-z0-9_+.#-].*`)
)

func fenceOf(line string) *fence {
	m := fenceLine.FindStringSubmatch(line)
	if m == nil {
		return nil
	}
	language := notInNames.ReplaceAllString(m[3], "")
	if len(language) > 32 {
		language = ""
	}
	return &fence{m[1], m[2], language}
}

func (f *fence) closedBy(line string) bool {
	line = strings.TrimSpace(line)
	return len(line) >= len(f.mark) && strings.Trim(line, f.mark[:1]) == ""
}

// content is code without the indentation that its fence has.
func (f *fence) content(lines []string) string {
	out := make([]string, len(lines))
	for i, line := range lines {
		n := 0
		for n < len(line) && n < len(f.indent) && (line[n] == ' ' || line[n] == '\t') {
			n++
		}
		out[i] = line[n:]
	}
	return strings.Join(out, "\n")
}

// underHead is the line under the head of a table.
var underHead = regexp.MustCompile(`^[ ]{0,3}\|?[ ]*:?-+:?[ ]*(\|[ ]*:?-+:?[ ]*)+\|?[ ]*$`)

// tableAt counts the lines of a table that begins here.
func tableAt(lines []string) int {
	if len(lines) < 2 || !strings.Contains(lines[0], "|") || !underHead.MatchString(lines[1]) {
		return 0
	}
	n := 2
	for n < len(lines) && strings.Contains(lines[n], "|") && fenceOf(lines[n]) == nil {
		n++
	}
	return n
}

var (
	// address is a link or image in Markdown, or a bare address.
	address = regexp.MustCompile(`(!?)\[((?:[^\[\]\\]|\\.)*)\]\(<?([^()\s<>]+)>?(?:[ \t]+"[^"]*")?\)|<?[A-Za-z][A-Za-z0-9+.-]*:[/\\]{2}[^\s<>` + "`" + `]*>?`)
	scheme  = regexp.MustCompile(`:([/\\]{2})`)
	// invitation is what clients show as one also without a scheme.
	invitation = regexp.MustCompile(`(?i)(discord(?:app)?\.(?:gg|com|gift|new)|dis\.gd)/`)
	backticks  = regexp.MustCompile("`{3,}")
)

// prose is a line that is no code.
func prose(line string, l *links, attached map[string]bool) string {
	line = backticks.ReplaceAllString(strings.ReplaceAll(line, "&lt;", "<"), "`")
	var out strings.Builder
	at := 0
	for _, m := range address.FindAllStringSubmatchIndex(line, -1) {
		out.WriteString(inert(line[at:m[0]]))
		at = m[1]
		whole := line[m[0]:m[1]]
		if m[6] < 0 { // bare
			out.WriteString(bareAddress(whole, l))
			continue
		}
		label, url := line[m[4]:m[5]], l.known.Find(line[m[6]:m[7]])
		switch {
		case url == "":
			out.WriteString(inert(whole))
		case attached[url]:
			out.WriteString(apart(line[:m[0]], inert(label), line[m[1]:]))
		default:
			if strings.TrimSpace(label) == "" {
				label = "file"
			}
			out.WriteString("[" + inert(label) + "](<" + url + ">)")
		}
	}
	out.WriteString(inert(line[at:]))
	return out.String()
}

// apart is a label that makes no address with what stands beside it.
func apart(before, label, after string) string {
	if before != "" && !strings.HasSuffix(before, " ") {
		label = blank + label
	}
	if after != "" && !strings.HasPrefix(after, " ") {
		label += blank
	}
	return label
}

// bareAddress keeps one that was issued, without what may follow it in a sentence.
func bareAddress(whole string, l *links) string {
	if url, rest := l.known.FindIn(strings.Trim(whole, "<>")); url != "" {
		return "<" + url + ">" + inert(rest)
	}
	return inert(whole)
}

// inert is text in which nothing leads anywhere.
func inert(text string) string {
	text = scheme.ReplaceAllString(text, ":"+blank+"$1")
	return invitation.ReplaceAllString(text, "$1"+blank+"/")
}

// quoted is a text of others as inline code.
func quoted(text string) string { return cmp.Or(inert(markdown.Code(text)), "``") }
