// Package terminaltest checks that a text does nothing to a terminal but be shown.
package terminaltest

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
)

// RequireHarmless fails where a text has anything that a terminal does not only show.
func RequireHarmless(t *testing.T, text string) {
	t.Helper()
	for _, r := range text {
		if r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)) {
			require.Failf(t, "a control character", "%U in %q", r, text)
		}
	}
}

// RequireRendered fails where rendered text has anything but colours, links that were
// issued, and text.
func RequireRendered(t *testing.T, text string, issued ...string) {
	t.Helper()
	for _, address := range append(issued, "") {
		text = strings.ReplaceAll(text, "\x1b]8;;"+address+"\x1b\\", "")
		text = strings.ReplaceAll(text, "\x1b]8;;\a", "")
	}
	for {
		before, after, found := strings.Cut(text, "\x1b[")
		RequireHarmless(t, before)
		if !found {
			return
		}
		rest := strings.TrimLeft(after, "0123456789;:")
		require.True(t, strings.HasPrefix(rest, "m"), "%q", after)
		text = rest[1:]
	}
}

// Hostile are texts that try to reach a terminal by themselves, or as Markdown.
var Hostile = []string{
	"plain", "\x1b[2J", "\x1b]0;x\a", "&#27;[2J", "&#x1b;]0;x&#7;", "&amp;#27;[2J", "&amp;amp;#27;[2J", "&NewLine;&Tab;",
	"[x](http://evil.example)", "<http://evil.example>", "![x](http://evil.example/&#27;)", "[&#27;[2J](http://ours.example/f?a=1&b=2)",
	"`\x1b[2J`", "```\n&#27;[2J\x1b[2J\n```", "<b>&#27;</b>", "| a | b |\n|--|--|\n| &#27;[2J | \x9b2J |", "\u009b2J", "http://evil.example/%1b",
	"[x]: http://evil.example/&#27;\n\n[x]", "- [ ] &#155;2J", "# &#27;c",
}

// Dots is a PNG of so many pixels, each of another colour.
func Dots(t *testing.T, width, height int) []byte {
	t.Helper()
	img := image.NewRGBA(image.Rect(0, 0, width, height))
	for x := range width {
		for y := range height {
			img.Set(x, y, color.RGBA{uint8(x * 37), uint8(y * 91), uint8(x * y), 255})
		}
	}
	var out bytes.Buffer
	require.NoError(t, png.Encode(&out, img))
	return out.Bytes()
}
