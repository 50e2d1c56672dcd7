package console

import (
	"bytes"
	"strings"
	"testing"
	"unicode"

	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/require"
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
		t.Run(c.desc, func(t *testing.T) { require.Equal(t, c.out, Defuse(c.in)) })
	}
}

// requireHarmless fails where a text has anything that a terminal does not only show.
func requireHarmless(t *testing.T, text string) {
	t.Helper()
	for _, r := range text {
		if r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)) {
			require.Failf(t, "a control character", "%U in %q", r, text)
		}
	}
}

// requireRendered fails where rendered text has anything but colours, links that were
// issued, and text.
func requireRendered(t *testing.T, text string, issued ...string) {
	t.Helper()
	for _, address := range append(issued, "") {
		text = strings.ReplaceAll(text, "\x1b]8;;"+address+"\x1b\\", "")
		text = strings.ReplaceAll(text, "\x1b]8;;\a", "")
	}
	for {
		before, after, found := strings.Cut(text, "\x1b[")
		requireHarmless(t, before)
		if !found {
			return
		}
		rest := strings.TrimLeft(after, "0123456789;:")
		require.True(t, strings.HasPrefix(rest, "m"), "%q", after)
		text = rest[1:]
	}
}

var hostile = []string{
	"plain", "\x1b[2J", "\x1b]0;x\a", "&#27;[2J", "&#x1b;]0;x&#7;", "&amp;#27;[2J", "&amp;amp;#27;[2J", "&NewLine;&Tab;",
	"[x](http://evil.example)", "<http://evil.example>", "![x](http://evil.example/&#27;)", "[&#27;[2J](http://ours.example/f?a=1&b=2)",
	"`\x1b[2J`", "```\n&#27;[2J\x1b[2J\n```", "<b>&#27;</b>", "| a | b |\n|--|--|\n| &#27;[2J | \x9b2J |", "\u009b2J", "http://evil.example/%1b",
	"[x]: http://evil.example/&#27;\n\n[x]", "- [ ] &#155;2J", "# &#27;c",
}

const ours = "http://ours.example/f?a=1&b=2"

func TestRenderedMarkdownHasOurLinksOnly(t *testing.T) {
	for _, theme := range []Theme{{}, {Light: true}} {
		for _, in := range hostile {
			out := theme.render(in, links{ours: true}, 80)
			requireRendered(t, out, ours)
		}
		out := theme.render("See [the file](http://ours.example/f?a=1&b=2) and [another](http://evil.example/).", links{ours: true}, 80)
		require.Contains(t, out, "\x1b]8;;"+ours+"\x1b\\")
		require.NotContains(t, out, "\x1b]8;;http://evil")
		require.NotContains(t, ansi.Strip(out), ours, "its text leads there")
		for _, in := range []string{"Here: " + ours + ".", "<" + ours + ">", "| a |\n| --- |\n| [f](" + ours + ") |", "[f][1]\n\n[1]: " + ours} {
			out := theme.render(in, links{ours: true}, 80)
			require.Contains(t, out, "\x1b]8;;"+ours+"\x1b\\", in)
			require.Contains(t, ansi.Strip(out), "f", in)
		}
		require.Contains(t, theme.render("a &amp; b &lt;c&gt;", nil, 80), "b")
	}
}

func FuzzDefuse(f *testing.F) {
	for _, in := range hostile {
		f.Add(in)
	}
	f.Fuzz(func(t *testing.T, in string) {
		out := Defuse(in)
		requireHarmless(t, out)
		require.Equal(t, out, Defuse(out), "it rests")
	})
}

func FuzzRender(f *testing.F) {
	for _, in := range hostile {
		f.Add(in)
	}
	f.Fuzz(func(t *testing.T, in string) {
		requireRendered(t, Theme{}.render(in, links{ours: true}, 40), ours)
		requireRendered(t, Theme{}.highlight(in, "python"))
		var out bytes.Buffer
		v := &view{spinner: &spinner{w: &out, columns: func() int { return 40 }, off: true}}
		requireRendered(t, v.bar(Defuse(in), red))
	})
}
