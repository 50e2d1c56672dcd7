package notebook

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Plain returns s as a terminal would leave it on the screen, in one normal form:
//
//   - Valid UTF-8: each byte that is not becomes U+FFFD.
//   - No control characters but newline and tab. "\r\n" is a newline, "\r" moves
//     to the start of the line and "\b" one column back, and what is written
//     there replaces what was: of a progress bar, the last state is left (and of
//     one that was blanked, nothing: spaces at the end of such a line go). The
//     others, NUL and DEL among them, are removed.
//   - No escape sequences (ECMA-48): CSI with colours, OSC with titles and
//     hyperlinks (their text stays), DCS and its like, charset selections, and
//     the same as 8-bit C1 controls. Those that move the cursor or erase a line
//     or what is below are followed within the last 50 lines, as tqdm's nested
//     bars and rich's need it; a cleared screen keeps its text. A string sequence
//     that is not terminated ends with its line.
//
// A rune is one column, also a wide or a combining one, and so is a tab; lines
// have no width at which they wrap, and a cursor cannot be right of a line's end.
//
// Plain is idempotent. Its time and memory are linear in len(s).
func Plain(s string) string {
	if isPlain(s) {
		return s
	}
	t := newTerminal()
	t.write(s)
	return t.text()
}

// write follows s, which Plain describes.
func (t *terminal) write(s string) {
	for i := 0; i < len(s); {
		c, size := utf8.DecodeRuneInString(s[i:])
		i += size
		switch {
		case c == '\n':
			t.newline()
		case c == '\r':
			t.col = 0
		case c == '\b':
			t.col = max(t.col-1, 0)
		case c == '\x1b':
			i += t.escape(s[i:])
		case c >= 0x80 && c < 0xa0: // C1, which 7-bit text writes as ESC and c-0x40
			i += t.sequence(byte(c-0x40), s[i:])
		case c == '\t' || c >= 0x20 && c != 0x7f:
			t.put(c)
		}
	}
}

// isPlain reports whether Plain has nothing to do.
func isPlain(s string) bool {
	if !utf8.ValidString(s) {
		return false
	}
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c < 0x20 && c != '\n' && c != '\t', c == 0x7f, c == 0xc2 && s[i+1] < 0xa0:
			return false
		}
	}
	return true
}

// screenRows is how many of the last lines the cursor can reach, as many as a
// tall terminal shows. Older ones are final, so that memory stays linear.
const screenRows = 50

// terminal is the screen, and what has scrolled off it.
type terminal struct {
	scrolled strings.Builder
	rows     []row // never empty
	row, col int   // col <= len(rows[row].text)
}

func newTerminal() terminal { return terminal{rows: make([]row, 1)} }

type row struct {
	text        []rune
	overwritten bool
}

func (t *terminal) put(c rune) {
	line := &t.rows[t.row]
	if t.col < len(line.text) {
		line.text[t.col] = c
		line.overwritten = true
	} else {
		line.text = append(line.text, c)
	}
	t.col++
}

func (t *terminal) newline() {
	t.row++
	t.col = 0
	if t.row < len(t.rows) {
		return
	}
	if len(t.rows) == 2*screenRows { // scroll many at once: it costs a move
		for _, line := range t.rows[:screenRows] {
			t.scrolled.WriteString(line.String())
			t.scrolled.WriteByte('\n')
		}
		t.rows = slices.Delete(t.rows, 0, screenRows)
		t.row = screenRows
	}
	t.rows = append(t.rows, row{})
}

// text returns all that was written.
func (t *terminal) text() string {
	for i, line := range t.rows {
		if i > 0 {
			t.scrolled.WriteByte('\n')
		}
		t.scrolled.WriteString(line.String())
	}
	return t.scrolled.String()
}

// String returns the line. Spaces at its end that replaced something show
// nothing; those that were merely printed stay, as all that is printed does.
func (r row) String() string {
	text := string(r.text)
	if r.overwritten {
		text = strings.TrimRight(text, " ")
	}
	return text
}

// width returns where the line of the cursor ends.
func (t *terminal) width() int { return len(t.rows[t.row].text) }

// truncate ends the line of the cursor at col.
func (t *terminal) truncate(col int) { t.rows[t.row].text = t.rows[t.row].text[:col] }

// escape reads what follows an ESC and returns its length.
func (t *terminal) escape(s string) int {
	if s == "" {
		return 0
	}
	switch c := s[0]; {
	case c >= 0x20 && c < 0x30: // nF: charset selections and the like
		n := span(s, 0x20, 0x2f)
		return n + min(1, span(s[n:], 0x30, 0x7e))
	case c >= 0x30 && c < 0x7f:
		return 1 + t.sequence(c, s[1:])
	default:
		return 0
	}
}

// sequence reads what follows an introducer, in its 7-bit form without the ESC,
// and returns its length.
func (t *terminal) sequence(introducer byte, s string) int {
	switch introducer {
	case '[':
		return t.csi(s)
	case ']', 'P', 'X', '^', '_':
		return controlString(s)
	default:
		return 0
	}
}

// controlString returns the length of the rest of an OSC, DCS, SOS, PM or APC.
func controlString(s string) int {
	for i := 0; i < len(s); i++ {
		switch rest := s[i:]; {
		case s[i] == '\a':
			return i + 1
		case strings.HasPrefix(rest, "\x1b\\"), strings.HasPrefix(rest, "\u009c"):
			return i + 2
		case s[i] == '\x1b', s[i] == '\n':
			return i
		}
	}
	return len(s)
}

// csi reads the rest of a control sequence and does what it says, if that is
// one of the few that matter in the output of a program that has no terminal.
func (t *terminal) csi(s string) int {
	params := span(s, 0x30, 0x3f)
	n := params + span(s[params:], 0x20, 0x2f)
	if n == len(s) || s[n] < 0x40 || s[n] > 0x7e {
		return n // malformed; what comes next is text
	}
	if n > params { // with intermediate bytes these letters mean other things
		return n + 1
	}
	count, err := strconv.Atoi("0" + s[:min(params, 9)])
	if err != nil { // "?25" and other private ones
		return n + 1
	}
	switch s[n] {
	case 'A':
		t.move(-max(count, 1))
	case 'B':
		t.move(max(count, 1))
	case 'E':
		t.col = 0
		t.move(max(count, 1))
	case 'F':
		t.col = 0
		t.move(-max(count, 1))
	case 'C':
		t.col = min(t.col+max(count, 1), t.width())
	case 'D':
		t.col = max(t.col-max(count, 1), 0)
	case 'G':
		t.col = min(max(count, 1)-1, t.width())
	case 'J':
		t.eraseBelow(count)
	case 'K':
		t.eraseLine(count)
	}
	return n + 1
}

func (t *terminal) move(rows int) {
	top := max(0, len(t.rows)-screenRows)
	t.row = min(max(t.row+rows, top), len(t.rows)-1)
	t.col = min(t.col, t.width())
}

func (t *terminal) eraseBelow(part int) {
	if part == 0 {
		t.truncate(t.col)
		t.rows = slices.Delete(t.rows, t.row+1, len(t.rows))
	}
}

// eraseLine erases from the cursor on, or all. The latter moves the cursor to
// the start, since programs return there anyway.
func (t *terminal) eraseLine(part int) {
	switch part {
	case 0:
		t.truncate(t.col)
	case 2:
		t.truncate(0)
		t.col = 0
	}
}

// span returns how many bytes at the start of s lie between low and high.
func span(s string, low, high byte) int {
	n := 0
	for n < len(s) && s[n] >= low && s[n] <= high {
		n++
	}
	return n
}
