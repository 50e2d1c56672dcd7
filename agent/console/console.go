package console

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"notebox/agent"
	"notebox/terminal"
)

// Options are what a Console is made of. Agent, Out and Columns must be set.
type Options struct {
	Agent    *agent.Agent
	Out      io.Writer
	Columns  func() int // of the terminal
	Theme    terminal.Theme
	Pictures terminal.Pictures
	Client   *http.Client // that gets images; nil: http.DefaultClient
	// Interrupts ends the answer under way; nil: nothing does but ctx.
	Interrupts <-chan os.Signal
	// Plain writes no escape sequence at all: no colours, links, images or spinner.
	Plain bool
	// Greeting is what the console says of itself at its beginning, a line.
	Greeting string
}

// Console asks an agent what a person asks it. It must be closed.
type Console struct {
	o     Options
	talk  *agent.Conversation
	links terminal.Links
	files []agent.File // for the next question
}

// New returns a Console.
func New(o Options) *Console {
	o.Client = cmp.Or(o.Client, http.DefaultClient)
	if o.Plain {
		o.Out, o.Pictures = stripped{o.Out}, terminal.PicturesOff
	}
	return &Console{o: o, talk: o.Agent.Converse(), links: terminal.Links{}}
}

// Close ends the conversation, and its session if it has one.
func (c *Console) Close() error { return c.talk.Close() }

// Lines is where a person's lines come from.
type Lines interface {
	// Line returns the next, without its end: ErrInterrupted if it was given up, io.EOF
	// if there will be none, and ctx's error when that ends.
	Line(ctx context.Context, prompt string) (string, error)
}

// ErrInterrupted is an answer, or a line, that was interrupted.
var ErrInterrupted = errors.New("interrupted")

// StoppedError is a question that ended by a bound before the model was done with it.
type StoppedError struct{ By agent.Stopped }

func (e *StoppedError) Error() string {
	return fmt.Sprintf("the question was stopped: its limit of %s was reached", e.By)
}

const prompt = "notebox> "

const help = `Ask in your own words; the model writes Python, which runs in a sandbox.

  /file PATH   give a file to the next question (and those after it)
  /new         begin a new conversation: nothing is remembered, files are gone
  /help        this
  exit, quit   end; so does Ctrl-D. Ctrl-C ends the answer under way.
`

// Commands are the lines that are not questions, for completion.
var Commands = []string{"/file ", "/new", "/help", "exit", "quit"}

// Interact answers lines until they end or ctx does, or one of them says exit.
func (c *Console) Interact(ctx context.Context, lines Lines) error {
	if c.o.Greeting != "" {
		c.write(terminal.Dim + c.o.Greeting + terminal.Plain + "\n")
	}
	for {
		line, err := lines.Line(ctx, prompt)
		switch {
		case errors.Is(err, ErrInterrupted):
			continue
		case errors.Is(err, io.EOF):
			c.write("\n")
			return nil
		case err != nil:
			return err
		}
		if end := c.line(ctx, strings.TrimSpace(line)); end {
			return nil
		}
	}
}

// line does what a line says. It reports whether that is the end.
func (c *Console) line(ctx context.Context, line string) (end bool) {
	command, argument, _ := strings.Cut(line, " ")
	switch {
	case line == "":
	case line == "exit", line == "quit", line == "/exit", line == "/quit":
		return true
	case command == "/help":
		c.write(help)
	case command == "/new":
		c.renew()
	case command == "/file":
		c.addFile(strings.TrimSpace(argument))
	case strings.HasPrefix(command, "/") && !strings.Contains(command[1:], "/"):
		c.complain("there is no command " + command + "; /help lists them")
	default:
		c.ask(ctx, line)
	}
	return false
}

func (c *Console) renew() {
	if err := c.talk.Close(); err != nil {
		c.complain(err.Error())
	}
	c.talk, c.links, c.files = c.o.Agent.Converse(), terminal.Links{}, nil
	c.write(terminal.Dim + "A new conversation." + terminal.Plain + "\n")
}

// ask answers a question on a terminal.
func (c *Console) ask(ctx context.Context, text string) {
	c.write("\n")
	a, err := c.question(ctx, text, true)
	switch {
	case errors.Is(err, ErrInterrupted):
		c.write(terminal.Dim + "Interrupted." + terminal.Plain + "\n\n")
	case err != nil && ctx.Err() == nil:
		c.complain(err.Error())
	case err == nil:
		c.show(ctx, a)
		if a.Stopped != agent.StoppedNot {
			c.complain((&StoppedError{a.Stopped}).Error())
		}
	}
}

// question asks the agent, and shows meanwhile what goes on.
func (c *Console) question(ctx context.Context, text string, seen bool) (*agent.Answer, error) {
	ctx, done := c.interruptible(ctx)
	defer done()
	var sink agent.Sink
	if seen {
		v := &view{Spinner: &terminal.Spinner{W: c.o.Out, Columns: c.columns, Off: c.o.Plain}, theme: c.o.Theme}
		v.Say("thinking", "")
		v.Begin()
		defer v.End()
		sink = v.see
	}
	a, err := c.talk.Ask(ctx, agent.Question{Text: text, Files: c.files}, sink)
	if err != nil {
		if errors.Is(context.Cause(ctx), ErrInterrupted) {
			err = ErrInterrupted
		}
		return nil, err
	}
	c.files = nil
	c.issued(a)
	return a, nil
}

// interruptible is ctx, which an interrupt from now on ends too.
func (c *Console) interruptible(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	for len(c.o.Interrupts) > 0 { // what came before is not about this
		<-c.o.Interrupts
	}
	go func() {
		select {
		case <-c.o.Interrupts:
			cancel(ErrInterrupted)
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}

// Once answers one question: for a terminal as Interact does, else the answer alone, as
// text for programs.
func (c *Console) Once(ctx context.Context, text string, terminal bool) error {
	a, err := c.question(ctx, text, terminal)
	if err != nil {
		return err
	}
	if terminal {
		c.show(ctx, a)
	} else {
		c.write(plainAnswer(a))
	}
	if a.Stopped != agent.StoppedNot {
		return &StoppedError{a.Stopped}
	}
	return nil
}

// leastColumns is how narrow a terminal is taken to be.
const leastColumns = 20

func (c *Console) columns() int { return max(c.o.Columns(), leastColumns) }

func (c *Console) write(text string) { _, _ = io.WriteString(c.o.Out, text) }

// stripped writes text without its escape sequences. Each write has whole ones.
type stripped struct{ w io.Writer }

func (s stripped) Write(text []byte) (int, error) {
	if _, err := io.WriteString(s.w, ansi.Strip(string(text))); err != nil {
		return 0, err
	}
	return len(text), nil
}

// complain says what went wrong, which may be in the words of others.
func (c *Console) complain(text string) {
	c.write(terminal.Red + terminal.Defuse(text) + terminal.Plain + "\n\n")
}
