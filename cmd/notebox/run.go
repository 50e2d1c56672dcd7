package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/peterbourgon/ff/v3/ffcli"
	"golang.org/x/term"

	"notebox/client"
	"notebox/cmd/notebox/script"
	"notebox/terminal"
)

const runHelp = `Runs a script, a notebook or a text in a fresh sandbox, and prints what it prints.
FILE is a program (.py, .js, .ts, .sh, .R, .go) or a notebook (.ipynb); - reads one
from standard input. It runs on the notebox at --url; where none is named, in a
sandbox that this command itself starts on Docker, without a server or a port, with
the limits that the variables of notebox serve set.

  notebox run -c 'print(6*7)'
  notebox run analysis.py --file data.csv --out results
  notebox run report.ipynb --notebook executed.ipynb --html report.html

NOTEBOX_URL is a variable for --url, NOTEBOX_API_KEY for --api-key. Ctrl-C interrupts
the code, twice leaves it.

The exit status is 0 if the code ran, 1 if it raised, 2 for a mistake in the call,
3 if the service or the engine failed, 124 after a timeout, 130 if it was
interrupted, 137 if it was killed or out of memory, 141 at the limit of output,
143 if this command was told to end (SIGTERM).`

// runFlags are the flags of notebox run.
type runFlags struct {
	elsewhere
	code     *string
	language string
	files    several
	out      string
	timeout  time.Duration
	packages several
	env      several
	network  bool
	session  string
	json     bool
	notebook string
	html     string
	images   string
}

func (r *runFlags) register(f *flag.FlagSet) {
	f.StringVar(&r.url, "url", "", "Run it on the notebox at this `URL`. (default: in this process, on Docker)")
	f.StringVar(&r.key, "api-key", "", "Show this API `key` to notebox; a variable hides it from the list of processes.")
	r.elsewhere.fromVariables()
	f.Var(&r.packages, "package", "Install this `package` before, in the language's notation (polars==1.*); repeatable.")
	f.Var(&r.env, "env", "Set a variable, `NAME=value`, for the code; repeatable.")
	f.BoolVar(&r.network, "network", false, "Give the code the network that the service allows.")
	f.StringVar(&r.session, "session", "", "Run it in the session with this `id`, of the notebox at --url.")
	r.registerCode(f)
}

// registerSession defines those that a run in a session has.
func (r *runFlags) registerSession(f *flag.FlagSet) {
	r.elsewhere.register(f)
	r.elsewhere.fromVariables()
	r.registerCode(f)
}

func (r *runFlags) registerCode(f *flag.FlagSet) {
	f.Func("c", "Run this `code`.", func(code string) error { r.code = &code; return nil })
	f.StringVar(&r.language, "language", "", "Take the code to be in this `language`. (default: as the file's name, the notebook or its first line says, else Python)")
	f.Var(&r.files, "file", "Put this `file`, or all of a folder, into /mnt/data, where the code runs; repeatable.")
	f.StringVar(&r.out, "out", "", "Write files and images that the code makes into this `folder`.")
	f.DurationVar(&r.timeout, "timeout", 0, "End the code after this time. (default: the service's, 30s)")
	f.BoolVar(&r.json, "json", false, "Print the service's reply, in JSON, and nothing else.")
	f.StringVar(&r.notebook, "notebook", "", "Write the executed notebook to this `file`.")
	f.StringVar(&r.html, "html", "", "Write code and outputs to this `file`, as a page that needs neither a service nor a network.")
	f.StringVar(&r.images, "images", "auto", "Show images on the terminal in this `way`: auto, kitty, iterm2, sixel or off.")
}

func runCommand() *ffcli.Command {
	var r runFlags
	flags := flag.NewFlagSet("notebox run", flag.ContinueOnError)
	r.register(flags)
	return &ffcli.Command{
		Name:       "run",
		ShortUsage: "notebox run [flags] FILE | - | -c CODE",
		ShortHelp:  "run a script, a notebook or standard input",
		LongHelp:   runHelp,
		FlagSet:    flags,
		Exec: func(ctx context.Context, args []string) error {
			args, err := interspersed(flags, args)
			if err != nil {
				return exitError{int(script.Mistake), err}
			}
			return exitOfScript(r.run(ctx, args))
		},
	}
}

// interspersed parses flags that stand after arguments too, as people write them. It returns the
// arguments.
func interspersed(flags *flag.FlagSet, args []string) (all []string, err error) {
	for len(args) > 0 {
		all = append(all, args[0])
		switch err := flags.Parse(args[1:]); {
		case errors.Is(err, flag.ErrHelp):
			return nil, err
		case err != nil:
			return nil, fmt.Errorf("%w; %s -h lists the flags", err, flags.Name())
		}
		args = flags.Args()
	}
	return all, nil
}

// flagsAlone parses what is left of the flags of a command that takes nothing else.
func flagsAlone(f *flag.FlagSet, args []string) error {
	words, err := interspersed(f, args)
	if err == nil && len(words) > 0 {
		err = fmt.Errorf("unexpected argument %q; %s -h lists the flags", words[0], f.Name())
	}
	if err != nil {
		return exitError{usageStatus, err}
	}
	return nil
}

func (r *runFlags) run(ctx context.Context, args []string) (script.Exit, error) {
	o, err := r.options(args)
	if err != nil {
		return script.Mistake, &script.Error{Exit: script.Mistake, Err: err}
	}
	var stop func()
	o.Interrupts, stop = interrupts()
	defer stop()
	open := openLocal
	if r.url != "" {
		open = func(context.Context) (*client.Client, func() error, error) {
			return client.New(client.Options{BaseURL: r.url, Key: r.key}), func() error { return nil }, nil
		}
	}
	return script.Run(ctx, open, o)
}

func (r *runFlags) options(args []string) (o script.Options, err error) {
	path := ""
	if len(args) > 0 {
		path = args[0]
	}
	switch {
	case len(args) > 1:
		return o, fmt.Errorf("one file at a time: %q is one more", args[1])
	case r.code == nil && path == "":
		return o, errors.New("what is to be run? A file, - for standard input, or -c and the code; notebox run -h says more")
	case r.code != nil && path != "":
		return o, errors.New("a file or -c, not both")
	case r.session != "" && r.url == "":
		return o, errors.New("--session: sessions are a service's, which --url or NOTEBOX_URL names")
	}
	if r.url != "" {
		if _, err := r.parse(); err != nil {
			return o, err
		}
	}
	o = script.Options{
		Code: r.code, Path: path, Language: r.language, Files: r.files, Packages: r.packages, Network: r.network,
		Timeout: r.timeout, Session: r.session, Out: r.out, Notebook: r.notebook, HTML: r.html, JSON: r.json,
		Stdin: os.Stdin, Stdout: outputOf(os.Stdout), Stderr: outputOf(os.Stderr), Fleeting: r.url == "",
	}
	for _, pair := range r.env {
		name, value, is := strings.Cut(pair, "=")
		if !is {
			return o, fmt.Errorf("--env %q: it is NAME=value", pair)
		}
		if o.Env == nil {
			o.Env = map[string]string{}
		}
		o.Env[name] = value
	}
	if !isWay(r.images) {
		return o, fmt.Errorf("--images is auto, kitty, iterm2, sixel or off, not %q", r.images)
	}
	o.Stdout.Pictures = sync.OnceValue(func() terminal.Pictures {
		return pictures(r.images, os.Stdin, os.Stdout, o.Stdout.Plain)
	})
	return o, nil
}

// outputOf is one of this program's own outputs.
func outputOf(file *os.File) script.Output {
	return script.Output{
		Writer: file, Terminal: term.IsTerminal(int(file.Fd())),
		Plain:   plainTerminal(),
		Columns: func() int { return columnsOf(file) },
	}
}

// several is a flag that is given once for each value.
type several []string

func (s *several) String() string { return strings.Join(*s, " ") }

func (s *several) Set(value string) error {
	*s = append(*s, value)
	return nil
}
