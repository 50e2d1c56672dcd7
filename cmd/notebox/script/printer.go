package script

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf16"

	"notebox/client"
	"notebox/terminal"
)

// printer prints what a program puts out.
type printer struct {
	stdout, stderr stream
	progress       *terminal.Spinner
	settled        bool
	fetch          func(link string) ([]byte, error)
}

func newPrinter(o Options) *printer {
	var open [2]bool
	stdout, stderr := &open[0], &open[1]
	if o.Stdout.Terminal && o.Stderr.Terminal { // one and the same
		stderr = stdout
	}
	return &printer{
		stdout: stream{Output: o.Stdout, open: stdout}, stderr: stream{Output: o.Stderr, open: stderr},
		progress: &terminal.Spinner{W: o.Stderr, Columns: o.Stderr.Columns, Off: !o.Stderr.Terminal || o.Stderr.Plain || o.JSON},
	}
}

// settle takes the line of progress away: what follows is the program's.
func (p *printer) settle() {
	if !p.settled {
		p.settled = true
		p.progress.End()
	}
}

// withPackages is what goes on in a run that asks for packages: nobody tells when they are
// there and the code begins.
const withPackages = "installing packages, then running"

// install shows the newest of an installer's words, while it works.
func (p *printer) install(text string) {
	if !p.settled {
		p.progress.Say(withPackages, terminal.LastLine(text))
	}
}

// output prints one entry of a run's outputs.
func (p *printer) output(o client.Output) {
	p.settle()
	switch o.Type {
	case "stream":
		to := &p.stdout
		if o.Name == "stderr" {
			to = &p.stderr
		}
		to.write(o.Text, o.ReplacedLines)
	case "error":
		p.stdout.flush()
		p.stderr.line(p.traceback(o.Traceback))
	default:
		p.stderr.flush()
		p.show(o)
	}
}

// show prints a display or a result: its image if the terminal shows images, else its text.
func (p *printer) show(o client.Output) {
	text := o.Plain()
	if link := image(o.Data); link != "" && p.picture(link) {
		return
	}
	if text != "" {
		p.stdout.line(text)
	}
}

// picture shows an image if the terminal can.
func (p *printer) picture(link string) bool {
	way := p.stdout.Pictures()
	if way == terminal.PicturesOff {
		return false
	}
	p.stdout.flush()
	raw, err := p.fetch(link)
	return err == nil && way.Write(p.stdout, raw) == nil
}

// image is the link of an image that a terminal may be able to show.
func image(data map[string]json.RawMessage) string {
	for _, mediaType := range []string{"image/png", "image/jpeg", "image/webp", "image/gif"} {
		var blob client.Link
		if json.Unmarshal(data[mediaType], &blob) == nil && blob.URL != "" {
			return blob.URL
		}
	}
	return ""
}

// traceback is one as its reader sees it: in colour on a terminal.
func (p *printer) traceback(text string) string {
	if p.stderr.Terminal && !p.stderr.Plain {
		return terminal.Traceback(text)
	}
	return p.stderr.safe(text)
}

// say prints what notebox itself has to say, of strangers' words too.
func (p *printer) say(format string, args ...any) {
	p.stderr.line("notebox: " + terminal.DefuseLine(fmt.Sprintf(format, args...)))
}

// lost is why not all could be printed.
func (p *printer) lost() error { return errors.Join(p.stdout.err, p.stderr.err) }

// stream is one of the two that a shell knows.
type stream struct {
	Output
	held strings.Builder // in a pipe: the line without an end, which the program may still replace
	open *bool           // the last line has no end: on a terminal, that of both
	err  error           // why it takes no more
}

// write prints text, which takes the place of so many lines.
func (s *stream) write(text string, replaced int) {
	if !s.Terminal {
		if replaced > 0 {
			s.held.Reset() // of several lines those before are printed already
		}
		if end := strings.LastIndexByte(text, '\n') + 1; end > 0 {
			s.flush()
			s.print(text[:end])
			text = text[end:]
		}
		s.held.WriteString(text)
		return
	}
	if replaced > 0 && !s.Plain {
		up := ""
		if replaced > 1 {
			up = fmt.Sprintf("\x1b[%dA", replaced-1)
		}
		s.print(up + "\r\x1b[J")
	}
	s.print(s.safe(text))
}

// line prints text on lines of its own.
func (s *stream) line(text string) {
	s.flush()
	if *s.open {
		s.print("\n")
	}
	s.print(strings.TrimSuffix(text, "\n") + "\n")
}

// flush prints what is held back.
func (s *stream) flush() {
	held := s.held.String()
	s.held.Reset()
	s.print(held)
}

// json is JSON that a person may read: what a terminal does not only show is escaped.
func (s *stream) json(raw []byte) string {
	if !s.Terminal {
		return string(raw)
	}
	var out strings.Builder
	for _, r := range string(raw) {
		if !terminal.IsUnsafe(r) {
			out.WriteRune(r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&out, "\\u%04x", unit)
		}
	}
	return out.String()
}

// safe is text that a person may read.
func (s *stream) safe(text string) string {
	if s.Terminal {
		return terminal.Defuse(text)
	}
	return text
}

// print writes text. A reader that has gone, as head(1) does, ends the program by SIGPIPE.
func (s *stream) print(text string) {
	if text == "" {
		return
	}
	*s.open = !strings.HasSuffix(text, "\n")
	if _, err := io.WriteString(s.Output, text); err != nil && s.err == nil {
		s.err = err
	}
}
