package terminal

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Defuse is a text that a terminal only shows: it has no control character but line
// breaks and tabs, none that a terminal may take for one, and none that changes the
// order in which text is read. Whole escape sequences are left out, what else there is
// of them is replaced by visible characters.
func Defuse(text string) string {
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\r\n", "\n")
	if !strings.ContainsFunc(text, IsUnsafe) {
		return text
	}
	return strings.Map(visible, sequences.ReplaceAllString(text, ""))
}

// sequences are escape sequences that have an end: CSI, those with a string (OSC, DCS,
// APC, PM, SOS), and short ones. One without an end would hide all text after it.
var sequences = regexp.MustCompile("\x1b\\[[0-?]*[ -/]*[@-~]|\x1b[]PX^_][^\x07\x1b\n]*(?:\x07|\x1b\\\\)|\x1b[ -/]*[0-NQ-WYZ`-~]")

// DefuseLine is Defuse for what must stay on one line.
func DefuseLine(text string) string {
	return strings.Join(strings.Fields(Defuse(text)), " ")
}

// LastLine is the last line of a text with something on it, defused.
func LastLine(text string) string {
	text = strings.TrimRight(text, "\n ")
	return DefuseLine(text[strings.LastIndexByte(text, '\n')+1:])
}

// IsUnsafe reports whether a terminal does more with a character than show it.
func IsUnsafe(r rune) bool {
	switch {
	case r == '\n' || r == '\t':
		return false
	case unicode.Is(unicode.Cc, r), unicode.Is(unicode.Bidi_Control, r):
		return true
	case r >= firstTag && r <= lastTag, r == '\u2028', r == '\u2029', r == '\uFEFF':
		return true
	}
	return unicode.Is(unicode.Co, r) // private use: what they show is the font's affair
}

// Tags are characters that cannot be seen and can carry text.
const firstTag, lastTag = 0xE0000, 0xE007F

// Control characters have pictures in Unicode, from U+2400 on in their order.
const (
	controlPictures = 0x2400
	deletePicture   = 0x2421
)

func visible(r rune) rune {
	switch {
	case !IsUnsafe(r):
		return r
	case r < ' ':
		return controlPictures + r
	case r == 0x7F:
		return deletePicture
	}
	return utf8.RuneError
}
