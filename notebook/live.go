package notebook

import (
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	// liveScreen is how many runes at the end of a streamed text can still be
	// rewritten: a screen of 50 lines by 80 columns. It bounds the work and the
	// memory for a run that rewrites with each of its many pieces.
	liveScreen = screenRows * 80

	// maxHeld bounds the beginning of an escape sequence that waits for its end,
	// in bytes: longer than any that programs send in two pieces.
	maxHeld = 256
)

// liveStream is a stream whose text comes piece by piece, as a terminal shows it.
type liveStream struct {
	cell   int
	name   string
	screen terminal // of what is not final, with nothing scrolled off it
	held   string   // the beginning of an escape sequence
	cut    bool     // the screen's first line goes on one whose beginning is final
}

func newLiveStream(cell int, name string) *liveStream {
	return &liveStream{cell: cell, name: name, screen: newTerminal()}
}

// add takes the next piece. text belongs behind all text so far, after the last
// lines of that, as many as replaced says, are removed; the line that has no
// newline yet counts, even if it is empty.
//
// Of a text that stays on the screen, this leaves what Plain makes of the whole.
func (l *liveStream) add(piece string) (text string, replaced int) {
	piece = l.held + piece
	whole := len(piece) - unfinished(piece)
	piece, l.held = piece[:whole], piece[whole:]
	if l.screen.appends() && isPlain(piece) {
		l.screen.write(piece)
		l.screen.scrolled.Reset()
		l.forget()
		return piece, 0
	}
	before := l.screen.take()
	l.screen.write(piece)
	after := l.screen.take()
	same := commonPrefix(before, after)
	start := strings.LastIndexByte(before[:same], '\n') + 1
	final := l.cut && start == 0 // what is longer than a screen is added to, and no more
	l.forget()
	if same == len(before) || final {
		return after[same:], 0
	}
	return after[start:], strings.Count(before[start:], "\n") + 1
}

// appends reports whether text that is plain will stand behind all that was
// shown so far. Spaces that replaced something are not shown until more follows.
func (t *terminal) appends() bool {
	last := t.rows[len(t.rows)-1]
	return t.row == len(t.rows)-1 && t.col == len(last.text) && !last.overwritten
}

// take returns all that was written, and forgets what scrolled off the screen.
func (t *terminal) take() string {
	text := t.text()
	t.scrolled.Reset()
	return text
}

// forget makes final what exceeds liveScreen, so that it is not rewritten.
func (l *liveStream) forget() {
	t, size := &l.screen, 0
	for i, line := range slices.Backward(t.rows) {
		if size += len(line.text) + 1; size <= liveScreen {
			continue
		}
		t.rows = slices.Delete(t.rows, 0, i+1)
		if l.cut = len(t.rows) == 0; l.cut {
			t.rows = append(t.rows, row{})
		}
		t.row = max(t.row-i-1, 0)
		t.col = min(t.col, t.width())
		return
	}
}

// commonPrefix returns how many bytes at the start are the same, in whole runes.
func commonPrefix(a, b string) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	for n < len(b) && !utf8.RuneStart(b[n]) {
		n--
	}
	return n
}

// unfinished returns how many bytes at the end of s are an escape sequence that
// has begun and has not ended.
func unfinished(s string) int {
	from := max(0, len(s)-maxHeld)
	start := max(strings.LastIndexByte(s[from:], '\x1b'), lastC1(s[from:]))
	if start < 0 {
		return 0
	}
	start += from
	sequence := s[start:]
	if sequence == "\x1b" || openSequence(sequence) {
		return len(sequence)
	}
	return 0
}

// lastC1 returns where the last 8-bit introducer of s is, or -1.
func lastC1(s string) int {
	return strings.LastIndexAny(s, "\u0090\u0098\u009b\u009d\u009e\u009f")
}

// openSequence reports whether s, which begins with an escape sequence, ends
// before that does.
func openSequence(s string) bool {
	introducer, rest := s[1], s[2:]
	if s[0] != '\x1b' {
		introducer -= 0x40 // the second byte of a C1 control in UTF-8 is its code
	}
	switch {
	case introducer == '[':
		params := span(rest, 0x30, 0x3f)
		return params+span(rest[params:], 0x20, 0x2f) == len(rest)
	case strings.IndexByte("]PX^_", introducer) >= 0:
		return !strings.ContainsAny(rest, "\a\n\x1b\u009c")
	case s[0] == '\x1b' && introducer >= 0x20 && introducer < 0x30:
		return span(rest, 0x20, 0x2f) == len(rest)
	}
	return false
}
