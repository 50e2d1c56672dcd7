package agent

import (
	"maps"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"

	"notebox/agent/internal/markdown"
	"notebox/agent/tool"
)

// Links are those that notebox issued in a conversation: they may stand in answers, and
// nothing else may. What a model says is untrusted, as is what it quotes: a program, a
// file or a web page may have told it to show an image from somewhere, whose address
// carries away what was said before.
type Links struct {
	urls  markdown.Links
	paths map[string]string // the URL of a path in /mnt/data
	names map[string]string // the URL of an image, by its name
	// written are the ways to write a path, and the path: as it is, and escaped.
	written map[string]string
}

// Issue takes the links of a run.
func (l *Links) Issue(r *tool.Result) {
	if l.paths == nil {
		l.paths, l.names, l.written = map[string]string{}, map[string]string{}, map[string]string{}
	}
	add := func(link string) bool {
		// What cannot stand in Markdown as it is would be read as something else.
		if link == "" || strings.ContainsAny(link, " \t\r\n<>\"`\\") {
			return false
		}
		l.urls.Add(link)
		return true
	}
	for _, i := range r.Images {
		if add(i.URL) {
			l.names[i.Name] = i.URL
		}
	}
	for _, f := range r.Files {
		if add(f.URL) {
			l.paths[f.Path] = f.URL
			escaped := (&url.URL{Path: f.Path}).EscapedPath()
			for _, w := range []string{escaped, markdown.Target(escaped), f.Path} {
				if _, other := l.paths[w]; !other || w == f.Path {
					l.written[w] = f.Path
				}
			}
		}
	}
}

// Clean makes Markdown of what a model said that shows no link or image but those that
// were issued:
//
//   - sandbox:/mnt/data/x and /mnt/data/x become the link of the file, if there is one
//   - a link or image to anything else becomes its text with the address as code behind
//   - HTML becomes text; addresses that stand in the text, which many programs make
//     links of, become code
//
// Code is left as it is, but for code that is nothing but such a path.
func (l *Links) Clean(answer string) string {
	answer = strings.ToValidUTF8(strings.ReplaceAll(answer, "\x00", ""), "\uFFFD")
	if len(answer) > maxAnswer {
		answer = strings.ToValidUTF8(answer[:maxAnswer], "") + "\n\n…"
	}
	answer = l.fillIn(answer)
	for range maxPasses {
		clean, rests := l.defuse(answer)
		if rests {
			return answer
		}
		answer = clean
	}
	return markdown.Fence(answer)
}

const (
	// maxAnswer bounds an answer, in bytes: what people read, and little enough for
	// Markdown that takes a parser time by the square of its length.
	maxAnswer = 64 << 10
	// maxPasses is how often a text is looked at again, as what was within a link may be
	// one itself. A text that is not at rest then is shown as code.
	maxPasses = 8
)

// fillIn puts the links of files in the place of their paths.
func (l *Links) fillIn(answer string) string {
	if l.paths == nil {
		return answer
	}
	code := codeOf(answer)
	var out strings.Builder
	for at := 0; at < len(answer); {
		if end := code.whole(at); end > at {
			out.WriteString(l.ofCode(answer[at:end]))
			at = end
			continue
		}
		if name, file, link := l.pathAt(answer, at); link != "" {
			if isTarget(answer[:at]) {
				out.WriteString(markdown.Target(link))
			} else {
				out.WriteString("[" + markdown.Escape(path.Base(file)) + "](" + markdown.Target(link) + ")")
			}
			at += len(name)
			continue
		}
		out.WriteByte(answer[at])
		at++
	}
	return l.imageNames(out.String())
}

// ofCode makes a link of inline code that is nothing but a path.
func (l *Links) ofCode(code string) string {
	inner := strings.TrimPrefix(strings.Trim(code, "`"), "sandbox:")
	link := l.paths[inner]
	if link == "" || code[0] != '`' {
		return code
	}
	return "[`" + inner + "`](" + markdown.Target(link) + ")"
}

// pathAt finds an issued path at a place, as models write it: with sandbox: before it,
// and escaped as in a URL. name is what stands there.
func (l *Links) pathAt(text string, at int) (name, file, link string) {
	if text[at] != 's' && text[at] != '/' {
		return "", "", ""
	}
	rest := text[at:]
	scheme := ""
	for _, s := range []string{"sandbox://", "sandbox:"} {
		if strings.HasPrefix(rest, s+tool.DataFolder+"/") {
			scheme = s
			break
		}
	}
	if !strings.HasPrefix(rest[len(scheme):], tool.DataFolder+"/") || scheme == "" && at > 0 && continues(text[at-1:at]) {
		return "", "", ""
	}
	for w, p := range l.written {
		whole := scheme + w
		if len(whole) > len(name) && strings.HasPrefix(rest, whole) && !continues(rest[len(whole):]) {
			name, file, link = whole, p, l.paths[p]
		}
	}
	return name, file, link
}

// continues reports whether what follows belongs to the path before it.
func continues(rest string) bool {
	r := []rune(rest[:min(len(rest), 8)])
	switch {
	case len(r) == 0:
		return false
	case r[0] == '.' || r[0] == '-':
		return len(r) > 1 && isWord(r[1])
	}
	return isWord(r[0]) || r[0] == '/' || r[0] == '%'
}

func isWord(r rune) bool {
	return r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r > 127
}

// isTarget reports whether what follows stands where a link's target does.
func isTarget(before string) bool {
	before = strings.TrimSuffix(strings.TrimRight(before, " "), "<")
	return strings.HasSuffix(before, "](") || reference.MatchString(before[strings.LastIndexByte(before, '\n')+1:])
}

// reference is how the definition of a link begins, up to its target.
var reference = regexp.MustCompile(`^[ >]{0,8}\[[^\[\]]{1,200}\]:[ ]*<?$`)

// imageNames gives images their links that are named as the tool named them.
func (l *Links) imageNames(answer string) string {
	for _, name := range slices.Sorted(maps.Keys(l.names)) {
		for _, before := range []string{"](", "](sandbox:", "](attachment:", "](./"} {
			answer = strings.ReplaceAll(answer, before+name+")", "]("+markdown.Target(l.names[name])+")")
		}
	}
	return answer
}
