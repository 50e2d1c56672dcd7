package tool

import (
	"regexp"
	"strings"
)

// tag is what some models put around a call or the code.
var tag = regexp.MustCompile(`^<\|?(tool_call|function_call|tool_use|execute_python|python_code|python|code|tool_code)\|?>`)

// callSyntax is a call as a programming language writes it.
var callSyntax = regexp.MustCompile(`^(?:functions\.|default_api\.)?(\w{1,40})\s*\(`)

// yamlBlock is the code as a block of YAML.
var yamlBlock = regexp.MustCompile(`^(\w{1,40}):[ \t]*\|[-+]?[ \t]*\n`)

// unwrap takes one wrapper from a text that is arguments or code.
func unwrap(text string) (inner string, found bool, err error) {
	if inner, found, err := unfence(text); found || err != nil {
		return inner, found, err
	}
	if m := tag.FindStringSubmatch(text); m != nil { // no Python begins with <
		inner := text[len(m[0]):]
		for _, end := range []string{"</" + m[1] + ">", "<|/" + m[1] + "|>", "</|" + m[1] + "|>"} {
			if i := strings.LastIndex(inner, end); i >= 0 && strings.TrimSpace(inner[i+len(end):]) == "" {
				return inner[:i], true, nil
			}
		}
		return inner, true, nil
	}
	if text[0] == '<' {
		return "", false, unreadable("its arguments begin with a tag")
	}
	if strings.HasPrefix(text, `"{`) && strings.HasSuffix(text, `}"`) && !strings.Contains(text, `\"`) {
		return text[1 : len(text)-1], true, nil // quotes around the object, which has its own
	}
	if m := callSyntax.FindStringSubmatch(text); m != nil && isName(m[1]) && plainName(m[1]) != "python" && strings.HasSuffix(text, ")") {
		inner := strings.TrimSpace(text[len(m[0]) : len(text)-1])
		if strings.HasPrefix(inner, "{") {
			return inner, true, nil
		}
		if v, err := readLoose("{"+inner+"}", nil); err == nil && len(v.members) > 0 {
			return "{" + inner + "}", true, nil
		}
		if v, err := readLoose(inner, nil); err == nil && v.kind == isString {
			return inner, true, nil
		}
	}
	if m := yamlBlock.FindStringSubmatch(text); m != nil && isField(m[1]) {
		return dedent(text[len(m[0]):]), true, nil
	}
	return "", false, nil
}

// dedent takes the first line's indentation from each that has it.
func dedent(text string) string {
	lines := strings.Split(text, "\n")
	indent := lines[0][:len(lines[0])-len(strings.TrimLeft(lines[0], " \t"))]
	for i := range lines {
		lines[i] = strings.TrimPrefix(lines[i], indent)
	}
	return strings.Join(lines, "\n")
}

// fence is a line that begins or ends a code block of Markdown.
var fence = regexp.MustCompile("^[ \t]{0,3}(```+|~~~+)[ \t]*([A-Za-z0-9_+.-]*)[ \t]*\r?$")

// fencedLine is a code block in one line.
var fencedLine = regexp.MustCompile("^```(?:(?:python3?|py) +)?([^`\n]+)```$")

// unfence takes the one code block out of Markdown. Text around it is the model's
// talk, unless a string of Python may have begun before it.
func unfence(text string) (code string, found bool, err error) {
	if m := fencedLine.FindStringSubmatch(text); m != nil {
		return m[1], true, nil
	}
	if !strings.Contains(text, "```") && !strings.Contains(text, "~~~") {
		return "", false, nil
	}
	lines := strings.Split(text, "\n")
	var open string // the mark of the block that a line is in
	var block, blocks []string
	for _, l := range lines {
		m := fence.FindStringSubmatch(l)
		switch {
		case m != nil && open == "":
			if len(blocks) == 0 && inPython(lines, l) {
				return "", false, nil
			}
			open, block = m[1], []string{}
		case m != nil && m[2] == "" && m[1] == open:
			blocks = append(blocks, strings.Join(block, "\n"))
			open = ""
		case open != "":
			block = append(block, l)
		}
	}
	if open != "" { // one that does not end
		blocks = append(blocks, strings.Join(block, "\n"))
	}
	switch len(blocks) {
	case 0:
		return "", false, nil
	case 1:
		return blocks[0], true, nil
	}
	return "", false, unreadable("there is more than one code block in it, or a fence within one")
}

// inPython reports whether the lines before first may be a program, in a string of
// which first is.
func inPython(lines []string, first string) bool {
	for _, l := range lines {
		if l == first {
			return false
		}
		if strings.Contains(l, `"""`) || strings.Contains(l, `'''`) || strings.HasPrefix(strings.TrimSpace(l), "{") {
			return true
		}
	}
	return false
}

// unescape mends a program whose line breaks or quotes have been escaped once too
// often. A backslash outside of strings and comments that does not end its line is
// never Python, so a program that is whole is left as it is.
func unescape(code string) string {
	strays, paired, ok := backslashes(code)
	if !ok || len(strays) == 0 {
		return code
	}
	quotes := false
	for _, at := range strays {
		switch code[at+1] {
		case 'n', 't', 'r':
		case '"', '\'', '\\':
			quotes = true
		default:
			return code
		}
	}
	if quotes || paired && !strings.Contains(code, `"`) { // all of it was escaped
		l := loose{text: code}
		var b strings.Builder
		for l.at < len(code) {
			if code[l.at] != '\\' {
				b.WriteByte(code[l.at])
				l.at++
			} else if l.escape(&b) != nil {
				return code
			}
		}
		return b.String()
	}
	var b strings.Builder // line breaks alone
	from := 0
	for _, at := range strays {
		b.WriteString(code[from:at])
		b.WriteByte(map[byte]byte{'n': '\n', 't': '\t', 'r': '\r'}[code[at+1]])
		from = at + 2
	}
	return b.String() + code[from:]
}

// backslashes finds those of a program that stand outside of strings and comments and
// do not end a line. paired is that those in strings are all doubled, and there are
// some. ok is false if the strings of the program cannot be told.
func backslashes(code string) (strays []int, paired, ok bool) {
	quote, multiline := "", strings.Contains(code, "\n")
	inStrings, single := 0, 0
	for i := 0; i < len(code); i++ {
		switch c := code[i]; {
		case quote != "" && c == '\\':
			if inStrings++; i+1 >= len(code) || code[i+1] != '\\' {
				single++
			}
			i++
		case quote != "" && strings.HasPrefix(code[i:], quote):
			i += len(quote) - 1
			quote = ""
		case quote != "" && c == '\n' && len(quote) == 1:
			return nil, false, false
		case quote != "":
		case c == '"' || c == '\'':
			quote = code[i : i+1]
			if triple := strings.Repeat(quote, 3); strings.HasPrefix(code[i:], triple) {
				quote = triple
				i += 2
			}
		case c == '#':
			end := -1
			switch {
			case multiline:
				end = strings.IndexByte(code[i:], '\n')
			case len(strays) > 0 || i == 0: // one line that is a comment alone is no program
				if end = strings.Index(code[i:], `\n`); end > 0 {
					end-- // the loop steps on to the backslash
				}
			}
			if end < 0 {
				return strays, inStrings > 0 && single == 0, true
			}
			i += end
		case c == '\\' && i+1 < len(code):
			if code[i+1] != '\n' && code[i+1] != '\r' {
				strays = append(strays, i)
			}
			i++
		case c == '\\':
			return nil, false, false
		}
	}
	return strays, inStrings > 0 && single == 0, true
}
