package script

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/client"
	"notebox/terminal"
	"notebox/terminal/terminaltest"
)

// out is a terminal or a pipe, and what was written to it.
func out(isTerminal bool) (Output, *strings.Builder) {
	var written strings.Builder
	return Output{Writer: &written, Terminal: isTerminal, Columns: func() int { return 80 }, Pictures: func() terminal.Pictures { return terminal.PicturesOff }}, &written
}

func TestReplacedLines(t *testing.T) {
	for _, c := range []struct {
		desc       string
		isTerminal bool
		want       string
	}{{"pipe", false, "a\n2 of 2\nend"}, {"terminal", true, "a\n1 of 2\r\x1b[J2 of 2\nend"}} {
		t.Run(c.desc, func(t *testing.T) {
			o, written := out(c.isTerminal)
			p := newPrinter(Options{Stdout: o, Stderr: o})
			p.stdout.write("a\n1 of 2", 0)
			p.stdout.write("2 of 2\n", 1)
			p.stdout.write("end", 0)
			p.stdout.flush()
			require.Equal(t, c.want, written.String())
		})
	}
}

// TestOneTerminal: what comes by the other stream begins a line of its own.
func TestOneTerminal(t *testing.T) {
	o, written := out(true)
	p := newPrinter(Options{Stdout: o, Stderr: o})
	p.stdout.write("no end", 0)
	p.stderr.line("said")
	require.Equal(t, "no end\nsaid\n", written.String())
}

func FuzzOutput(f *testing.F) {
	for _, text := range terminaltest.Hostile {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		o, written := out(true)
		o.Plain = true
		p := newPrinter(Options{Stdout: o, Stderr: o})
		p.output(client.Output{Type: "stream", Name: "stdout", Text: text})
		p.output(client.Output{Type: "error", Traceback: text})
		p.say("%s", text)
		terminaltest.RequireHarmless(t, written.String())
		terminaltest.RequireHarmless(t, p.stdout.json([]byte(strings.ToValidUTF8(text, "?"))))
	})
}

// TestProgress: nobody tells when packages are there and the code begins, so the line of
// progress does not say so either.
func TestProgress(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			packages []string
			want     string
		}{{nil, "⠙ running"}, {[]string{"six"}, "⠙ installing packages, then running  Collecting six"}} {
			stderr, shown := out(true)
			o := Options{Packages: c.packages, Stderr: stderr}
			s := &script{Options: o, printer: newPrinter(o)}
			s.progress.Begin()
			s.started(t.Context(), nil, "run")
			if c.packages != nil {
				s.install("Looking\nCollecting six\n")
			}
			time.Sleep(150 * time.Millisecond) // one frame
			s.settle()
			require.Contains(t, shown.String(), c.want)
		}
	})
}
