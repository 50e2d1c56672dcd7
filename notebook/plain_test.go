package notebook_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"notebox/notebook"
)

func TestPlain(t *testing.T) {
	for _, test := range []struct {
		desc, in, want string
	}{
		{"nothing to do", "a\tb\nc é 漢 👩‍👧 \u2028\n", "a\tb\nc é 漢 👩‍👧 \u2028\n"},
		{"colours", "\x1b[1;31mred\x1b[0m \x1b[38;2;1;2;3mx\x1b[m", "red x"},
		{"colours with colons", "\x1b[38:5:1mx", "x"},
		{"8-bit CSI", "\u009b31mred\u009b0m", "red"},
		{"private modes", "\x1b[?25lx\x1b[?25h\x1b[>4;1m", "x"},
		{"a sequence with intermediates is not its letter", "abc\x1b[2 Kd", "abcd"},
		{"a hyperlink keeps its text", "\x1b]8;id=1;https://example.org\x1b\\text\x1b]8;;\a!", "text!"},
		{"a title, ended by 8-bit ST", "\u009d0;title\u009cx", "x"},
		{"an image as DCS or APC", "a\x1bPq#0;2;0~~\x1b\\b\x1b_Gf=100;AAAA\x1b\\c", "abc"},
		{"an unended OSC takes its line", "a\x1b]0;title\nb", "a\nb"},
		{"an OSC that an escape ends", "a\x1b]0;title\x1b[1mb", "ab"},
		{"charsets and keypad modes", "\x1b(B\x1b)0\x1b#8\x1b%G\x1b=\x1b>\x1b7x\x1b8\x1bc", "x"},
		{"other C1", "a\u0085b\u0080c", "abc"},
		{"cut off", "a\x1b", "a"},
		{"cut off in a CSI", "a\x1b[12", "a"},
		{"cut off in a charset", "a\x1b(", "a"},
		{"a malformed CSI", "a\x1b[12\x01b\x1b[é", "abé"},
		{"a newline in a CSI", "a\x1b[1\nb", "a\nb"},
		{"NUL, BEL, DEL and the like", "a\x00b\ac\x7fd\ve\ff\x1ag", "abcdefg"},
		{"CR LF", "a\r\nb\r\r\n", "a\nb\n"},
		{"a carriage return overwrites", "12345\rab", "ab345"},
		{"at the end of the text it does nothing", "12345\r", "12345"},
		{"blanks over text leave nothing", "12345\r     \rab\n", "ab\n"},
		{"blanks that were printed stay", "a  \nb\r\n", "a  \nb\n"},
		{"backspaces", "abc\b\bX\n\b\bY", "aXc\nY"},
		{"bold by overstriking", "b\bbo\bol\bld\bd", "bold"},
		{"erase to the end", "12345\r\x1b[Kab", "ab"},
		{"erase the line", "12345\x1b[2Kab", "ab"},
		{"erase to the start is passed over", "12345\x1b[1Kab", "12345ab"},
		{"columns", "12345\x1b[3Dx\x1b[Cy\x1b[1Gz\x1b[99Cw", "z2x4yw"},
		{"tqdm's nested bars", "outer 0\n\rinner 1\x1b[A\n\rinner 2\x1b[A\router 1\n", "outer 1\ninner 2"},
		{"rich's lines", "a1\nb1\r\x1b[2K\x1b[1A\x1b[2Ka2\nb2\n", "a2\nb2\n"},
		{"the column ends with a shorter line", "a\n12345\x1b[Ab", "ab\n12345"},
		{"next and previous line", "a\nb\x1b[FX\x1b[EY", "X\nY"},
		{"up and down do not leave the text", "a\x1b[99Ab\x1b[99Bc", "abc"},
		{"erase below", "a\nb\nc\x1b[2A\r\x1b[Jd", "d"},
		{"a cleared screen keeps its text", "a\x1b[2J\x1b[Hb", "ab"},
		{"the cursor reaches 50 lines", strings.Repeat("x\n", 60) + "\x1b[99AX", strings.Repeat("x\n", 11) + "X\n" + strings.Repeat("x\n", 48)},
		{"long text scrolls", strings.Repeat("ab\rX\n", 1000) + "z", strings.Repeat("Xb\n", 1000) + "z"},
		{"broken UTF-8, byte by byte", "a\xff\xfeb\xe2\x82", "a\ufffd\ufffdb\ufffd\ufffd"},
		{"a raw byte that is no C1", "a\x9b31mb", "a\ufffd31mb"},
		{"a wide rune is one column", "漢字\rab", "ab"},
	} {
		t.Run(test.desc, func(t *testing.T) {
			requirePlain(t, test.in, test.want)
		})
	}
}

func requirePlain(t *testing.T, in, want string) {
	t.Helper()
	got := notebook.Plain(in)
	require.Equal(t, want, got)
	require.Equal(t, want, notebook.Plain(got), "Plain is idempotent")
}

func TestPlainHoldsForRandomText(t *testing.T) {
	alphabet := []string{"a", "é", " ", "\n", "\r", "\b", "\t", "\x00", "\x1b", "[", "]", "2", ";", "A", "B", "J", "K", "\a", "\\", "\u009b", "\u009d", "\xff", "\xc2"}
	random := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		var in strings.Builder
		for range random.IntN(40) {
			in.WriteString(alphabet[random.IntN(len(alphabet))])
		}
		checkPlain(t, in.String())
	}
}

// checkPlain checks what holds for every text.
func checkPlain(t *testing.T, in string) {
	t.Helper()
	got := notebook.Plain(in)
	require.True(t, utf8.ValidString(got), "%q", in)
	require.Equal(t, got, notebook.Plain(got), "%q", in)
	require.LessOrEqual(t, len(got), 3*len(in), "%q", in)
	for _, c := range got {
		require.False(t, c < 0x20 && c != '\n' && c != '\t' || c >= 0x7f && c < 0xa0, "%q", in)
	}
}

// A quadratic Plain would take hours for any of these.
func TestPlainIsLinear(t *testing.T) {
	const size = 8 << 20
	for desc, unit := range map[string]string{
		"carriage returns": "\r", "backspaces": "\b", "newlines": "\n", "overwriting": "ab\r", "overstriking": "a\b",
		"introducers": "\x1b[", "8-bit introducers": "\u009b", "long parameters": "1", "OSC": "\x1b]", "8-bit OSC": "\u009d",
		"unended OSC": "\x1b]x\n", "charsets": "\x1b(", "erasing": "a\x1b[2K", "up": "\n\x1b[Ab", "far right": "a\x1b[999999999C",
		"erasing below": "\n\n\x1b[2A\x1b[Ja", "broken UTF-8": "\xff",
	} {
		t.Run(desc, func(t *testing.T) {
			for _, in := range []string{
				strings.Repeat(unit, size/len(unit)),
				strings.Repeat("x", size/2) + strings.Repeat(unit, size/2/len(unit)),
				"\x1b[" + strings.Repeat(unit, size/len(unit)),
			} {
				start := time.Now()
				notebook.Plain(in)
				require.Less(t, time.Since(start), 10*time.Second)
			}
		})
	}
}
