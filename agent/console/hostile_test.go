package console

import (
	"bytes"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/require"

	"notebox/terminal"
	"notebox/terminal/terminaltest"
)

const ours = "http://ours.example/f?a=1&b=2"

func TestRenderedMarkdownHasOurLinksOnly(t *testing.T) {
	for _, theme := range []terminal.Theme{{}, {Light: true}} {
		for _, in := range terminaltest.Hostile {
			out := render(theme, in, terminal.Links{ours: true}, 80)
			terminaltest.RequireRendered(t, out, ours)
		}
		out := render(theme, "See [the file](http://ours.example/f?a=1&b=2) and [another](http://evil.example/).", terminal.Links{ours: true}, 80)
		require.Contains(t, out, "\x1b]8;;"+ours+"\x1b\\")
		require.NotContains(t, out, "\x1b]8;;http://evil")
		require.NotContains(t, ansi.Strip(out), ours, "its text leads there")
		for _, in := range []string{"Here: " + ours + ".", "<" + ours + ">", "| a |\n| --- |\n| [f](" + ours + ") |", "[f][1]\n\n[1]: " + ours} {
			out := render(theme, in, terminal.Links{ours: true}, 80)
			require.Contains(t, out, "\x1b]8;;"+ours+"\x1b\\", in)
			require.Contains(t, ansi.Strip(out), "f", in)
		}
		require.Contains(t, render(theme, "a &amp; b &lt;c&gt;", nil, 80), "b")
	}
}

func FuzzRender(f *testing.F) {
	for _, in := range terminaltest.Hostile {
		f.Add(in)
	}
	f.Fuzz(func(t *testing.T, in string) {
		terminaltest.RequireRendered(t, render(terminal.Theme{}, in, terminal.Links{ours: true}, 40), ours)
		terminaltest.RequireRendered(t, terminal.Theme{}.Highlight(in, "python"))
		var out bytes.Buffer
		v := &view{Spinner: &terminal.Spinner{W: &out, Columns: func() int { return 40 }, Off: true}}
		terminaltest.RequireRendered(t, v.bar(terminal.Defuse(in), terminal.Red))
	})
}
