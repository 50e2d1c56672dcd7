package notebook

import (
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// htmlText returns the text of an HTML fragment roughly as a text browser shows
// it: no scripts and styles, a line for each block, a tab between table cells, and in
// words what else is at an address.
// It reads tokens and builds no tree, since trees of hostile HTML grow
// faster than their source.
func htmlText(source string) string {
	var text []byte
	var hidden atom.Atom // the element whose content is not shown
	preformatted := 0
	tokens := html.NewTokenizer(strings.NewReader(source))
	for {
		switch token := tokens.Next(); token {
		case html.ErrorToken:
			return squeeze(string(text))
		case html.TextToken:
			if hidden == 0 {
				text = appendText(text, string(tokens.Text()), preformatted > 0)
			}
		case html.StartTagToken, html.SelfClosingTagToken:
			name, source := tagAndSource(tokens)
			if hidden == 0 || hidden == atom.Audio || hidden == atom.Video {
				text = append(text, mediaWords(name, hidden, source)...)
			}
			opens := token == html.StartTagToken
			if opens && hidden == 0 && isHidden(name) {
				hidden = name
			}
			if opens && name == atom.Pre {
				preformatted++
			}
			if breaksLine(name) {
				text = append(text, '\n')
			}
		case html.EndTagToken:
			name, _ := tagAndSource(tokens)
			if name == hidden {
				hidden = 0
			}
			switch {
			case name == atom.Pre:
				preformatted = max(preformatted-1, 0)
				text = append(text, '\n')
			case name == atom.Td, name == atom.Th:
				text = append(text, '\t')
			case breaksLine(name):
				text = append(text, '\n')
			}
		}
	}
}

func isHidden(name atom.Atom) bool {
	switch name {
	case atom.Audio, atom.Iframe, atom.Noscript, atom.Script, atom.Style, atom.Svg, atom.Template, atom.Title, atom.Video:
		return true
	}
	return false
}

func breaksLine(name atom.Atom) bool {
	switch name {
	case atom.Blockquote, atom.Br, atom.Dd, atom.Details, atom.Div, atom.Dl, atom.Dt,
		atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6, atom.Hr, atom.Li, atom.Ol,
		atom.P, atom.Pre, atom.Section, atom.Summary, atom.Table, atom.Tr, atom.Ul:
		return true
	}
	return false
}

// appendText appends text with its white space collapsed, unless it is preformatted.
func appendText(dst []byte, text string, preformatted bool) []byte {
	if preformatted {
		return append(dst, text...)
	}
	space := func() {
		if n := len(dst); n > 0 && !isSpace(dst[n-1]) {
			dst = append(dst, ' ')
		}
	}
	if text != "" && isSpace(text[0]) {
		space()
	}
	words := strings.Fields(text)
	dst = append(dst, strings.Join(words, " ")...)
	if len(words) > 0 && isSpace(text[len(text)-1]) {
		space()
	}
	return dst
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\n' }

// squeeze takes off white space at the ends of lines, and blank lines.
func squeeze(text string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		if line = strings.TrimRight(line, " \t\r\n"); strings.TrimSpace(line) != "" {
			out.WriteString(line)
			out.WriteByte('\n')
		}
	}
	return out.String()
}
