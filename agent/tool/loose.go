package tool

import (
	"errors"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// maxDepth is how deep lists and objects of a call may nest: a provider's have four
// levels, and each mistake of a model adds one.
const maxDepth = 16

// maxValues bounds the values of a call: a provider's have some 20, a program as a list of
// lines hundreds, and each takes fifty times its byte in memory.
const maxValues = 20_000

// kind is what a value of loose JSON is.
type kind int

const (
	isNull kind = iota
	isBool
	isNumber
	isString
	isList
	isObject
)

// value is one of loose JSON. An object keeps its members in order, repeated ones too.
type value struct {
	kind    kind
	text    string   // of a string; of a number or bool as it was written
	items   []value  // of a list
	members []member // of an object
}

type member struct {
	name  string
	value value
}

// errCutOff is that a string has no end: what is there may be the half of a program.
var errCutOff = errors.New("a string in it has no end")

var errLoose = errors.New("it is not JSON")

// loose reads JSON and what models write instead:
//
//   - line breaks, tabs and other control characters in strings
//   - strings in single or triple quotes, or backticks; escapes that JSON does not
//     have: \' is a quote, of others the backslash stays
//   - names without quotes, True, False and None, a comma that is too many, and = for :
//   - brackets that are missing at the end, where no string is cut off
//
// With quotes, a double quote inside a string need not be escaped: one ends its string
// only if the object ends behind it, or goes on with a name that known accepts, or with
// a list of packages.
type loose struct {
	text   string
	at     int
	quotes bool
	known  func(string) bool
	values *int // that were read; nil: they are not counted
}

// readLoose reads text as one value and nothing behind it.
func readLoose(text string, known func(string) bool) (value, error) {
	v, err := (&loose{text: text, values: new(int)}).whole()
	if err == nil || known == nil {
		return v, err
	}
	if v, again := (&loose{text: text, quotes: true, known: known, values: new(int)}).whole(); again == nil {
		return v, nil
	} else if errors.Is(again, errCutOff) {
		err = again
	}
	return value{}, err
}

func (l *loose) whole() (value, error) {
	v, err := l.value(0)
	if err != nil {
		return value{}, err
	}
	if l.blank(); l.at < len(l.text) {
		return value{}, errLoose
	}
	return v, nil
}

func (l *loose) blank() {
	for l.at < len(l.text) {
		r, size := utf8.DecodeRuneInString(l.text[l.at:])
		if !unicode.IsSpace(r) && r != '\ufeff' {
			return
		}
		l.at += size
	}
}

// next is the byte after blanks, 0 at the end.
func (l *loose) next() byte {
	if l.blank(); l.at < len(l.text) {
		return l.text[l.at]
	}
	return 0
}

func (l *loose) value(depth int) (value, error) {
	if l.values != nil {
		*l.values++
	}
	if depth > maxDepth || l.values != nil && *l.values > maxValues {
		return value{}, errLoose
	}
	switch c := l.next(); c {
	case 0:
		return value{}, errLoose
	case '{':
		return l.object(depth)
	case '[':
		return l.list(depth)
	case '"', '\'', '`':
		text, err := l.string()
		return value{kind: isString, text: text}, err
	}
	switch word := l.word(); word {
	case "null", "None", "undefined":
		return value{kind: isNull}, nil
	case "true", "false", "True", "False":
		return value{kind: isBool, text: strings.ToLower(word)}, nil
	default:
		if word == "" || strings.Trim(word, "0123456789+-.eE") != "" || !strings.ContainsAny(word, "0123456789") {
			return value{}, errLoose
		}
		return value{kind: isNumber, text: word}, nil
	}
}

// word is a run of what names and numbers consist of.
func (l *loose) word() string {
	start := l.at
	for l.at < len(l.text) {
		c := l.text[l.at]
		if c != '_' && c != '-' && c != '+' && c != '.' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			break
		}
		l.at++
	}
	return l.text[start:l.at]
}

func (l *loose) object(depth int) (value, error) {
	v := value{kind: isObject}
	l.at++
	for {
		switch c := l.next(); {
		case c == 0:
			return v, nil // its bracket is missing
		case c == '}':
			l.at++
			return v, nil
		case c == ',' && len(v.members) > 0:
			l.at++
			continue
		}
		name, err := l.name()
		if err != nil {
			return v, err
		}
		if c := l.next(); c != ':' && c != '=' {
			return v, errLoose
		}
		l.at++
		item, err := l.value(depth + 1)
		if err != nil {
			return v, err
		}
		v.members = append(v.members, member{name, item})
		if c := l.next(); c != ',' && c != '}' && c != 0 {
			return v, errLoose
		}
	}
}

func (l *loose) name() (string, error) {
	if c := l.next(); c == '"' || c == '\'' || c == '`' {
		strict := *l
		strict.quotes = false // names hold no quotes
		name, err := strict.string()
		l.at = strict.at
		return name, err
	}
	name := l.word()
	if name == "" {
		return "", errLoose
	}
	return name, nil
}

func (l *loose) list(depth int) (value, error) {
	v := value{kind: isList}
	l.at++
	for {
		switch c := l.next(); {
		case c == 0:
			return v, nil
		case c == ']':
			l.at++
			return v, nil
		case c == ',' && len(v.items) > 0:
			l.at++
			continue
		}
		strict := *l
		strict.quotes = false // what ends a string of a list cannot be told
		item, err := strict.value(depth + 1)
		if l.at = strict.at; err != nil {
			return v, err
		}
		v.items = append(v.items, item)
		if c := l.next(); c != ',' && c != ']' && c != 0 {
			return v, errLoose
		}
	}
}

// string reads one whose first quote is at hand.
func (l *loose) string() (string, error) {
	quote := l.text[l.at : l.at+1]
	if triple := strings.Repeat(quote, 3); quote != "`" && strings.HasPrefix(l.text[l.at:], triple) {
		quote = triple
	}
	l.at += len(quote)
	var b strings.Builder
	for l.at < len(l.text) {
		switch {
		case l.text[l.at] == '\\':
			if err := l.escape(&b); err != nil {
				return "", err
			}
		case strings.HasPrefix(l.text[l.at:], quote) && l.ends(quote):
			l.at += len(quote)
			return b.String(), nil
		default:
			b.WriteByte(l.text[l.at])
			l.at++
		}
	}
	return "", errCutOff
}

// ends reports whether the quote at hand ends its string.
func (l *loose) ends(quote string) bool {
	if !l.quotes || len(quote) > 1 {
		return true
	}
	ahead := &loose{text: l.text, at: l.at + 1, known: l.known}
	switch ahead.next() {
	case 0:
		return true
	case ',':
		ahead.at++
		name := ahead.nameAhead()
		if dependencyNames[plainName(name)] {
			return ahead.dependenciesAhead()
		}
		return name != "" && l.known(name) && (ahead.next() == ':' || ahead.next() == '=')
	case '}':
		return ahead.closes()
	}
	return false
}

// closes reports whether nothing but brackets is left.
func (l *loose) closes() bool {
	for c := l.next(); c == '}' || c == ']'; c = l.next() {
		l.at++
	}
	return l.next() == 0
}

// nameAhead reads a short name, in quotes or not; "" if there is none.
func (l *loose) nameAhead() string {
	c := l.next()
	if c == '"' || c == '\'' {
		l.at++
	}
	name := l.word()
	if c == '"' || c == '\'' {
		if l.at >= len(l.text) || l.text[l.at] != c {
			return ""
		}
		l.at++
	}
	return name
}

// escape reads one that begins with the backslash at hand.
func (l *loose) escape(b *strings.Builder) error {
	rest := l.text[l.at+1:]
	if rest == "" {
		return errCutOff
	}
	l.at += 2
	switch c := rest[0]; c {
	case 'n':
		b.WriteByte('\n')
	case 't':
		b.WriteByte('\t')
	case 'r':
		b.WriteByte('\r')
	case 'b':
		b.WriteByte('\b')
	case 'f':
		b.WriteByte('\f')
	case '"', '\\', '/', '\'', '`':
		b.WriteByte(c)
	case '\n': // a continued line of the program, whose backslash was not escaped
		b.WriteString("\\\n")
	case 'u':
		r, size := hexRune(rest[1:])
		if size > 0 && utf16.IsSurrogate(r) {
			low, more := rune(0), 0
			if pair := rest[1+size:]; strings.HasPrefix(pair, `\u`) {
				low, more = hexRune(pair[2:])
			}
			if r = utf16.DecodeRune(r, low); r == unicode.ReplacementChar {
				return errLoose // half a character: what was meant is not known
			}
			size += 2 + more
		}
		if size == 0 {
			b.WriteString(`\u`)
			return nil
		}
		b.WriteRune(r)
		l.at += size
	default:
		b.WriteByte('\\')
		l.at-- // c may be the first byte of several
	}
	return nil
}

// hexRune reads four hex digits; size is 0 if they are not there.
func hexRune(s string) (r rune, size int) {
	if len(s) < 4 {
		return 0, 0
	}
	for _, c := range s[:4] {
		switch {
		case c >= '0' && c <= '9':
			r = r<<4 | (c - '0')
		case c >= 'a' && c <= 'f':
			r = r<<4 | (c - 'a' + 10)
		case c >= 'A' && c <= 'F':
			r = r<<4 | (c - 'A' + 10)
		default:
			return 0, 0
		}
	}
	return r, 4
}
