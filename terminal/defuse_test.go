package terminal_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"notebox/terminal"
	"notebox/terminal/terminaltest"
)

func TestDefuse(t *testing.T) {
	for _, c := range []struct{ desc, in, out string }{
		{"text", "naïve 漢字 👩‍🔬\n\tx", "naïve 漢字 👩‍🔬\n\tx"},
		{"colours", "\x1b[1;31mred\x1b[0m", "red"},
		{"clears the screen", "a\x1b[2J\x1b[Hb", "ab"},
		{"a private sequence", "a\x1b[?1049hb", "ab"},
		{"the title, ended by BEL", "a\x1b]0;title\ab", "ab"},
		{"a link, ended by ST", "\x1b]8;;http://evil.example\x1b\\click\x1b]8;;\x1b\\", "click"},
		{"the clipboard", "\x1b]52;c;ZXZpbA==\a.", "."},
		{"a device's string", "\x1bPq#0\x1b\\x", "x"},
		{"a reset", "a\x1bcb", "ab"},
		{"a string without an end hides nothing", "a\x1b]0;b\nc", "a␛]0;b\nc"},
		{"an escape alone", "a\x1b", "a␛"},
		{"what is left forms nothing new", "\x1b\x1b[0m[31mx", "␛[31mx"},
		{"C1 in UTF-8", "a\u009b31mb\u0090c", "a\uFFFD31mb\uFFFDc"},
		{"C1 as a byte", "a\x9b31mb", "a\uFFFD31mb"},
		{"BEL, BS, CR, DEL, NUL", "\a\b\r\x7f\x00", "␇␈␍␡␀"},
		{"lines of DOS", "a\r\nb", "a\nb"},
		{"an order turned", "abc\u202Egpj.exe\u2066", "abc\uFFFDgpj.exe\uFFFD"},
		{"tags", "a\U000E0041b", "a\uFFFDb"},
		{"private use", "\uE000", "\uFFFD"},
	} {
		t.Run(c.desc, func(t *testing.T) { require.Equal(t, c.out, terminal.Defuse(c.in)) })
	}
}

func FuzzDefuse(f *testing.F) {
	for _, in := range terminaltest.Hostile {
		f.Add(in)
	}
	f.Fuzz(func(t *testing.T, in string) {
		out := terminal.Defuse(in)
		terminaltest.RequireHarmless(t, out)
		require.Equal(t, out, terminal.Defuse(out), "it rests")
	})
}
