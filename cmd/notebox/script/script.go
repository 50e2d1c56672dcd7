package script

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"time"

	"notebox/client"
	"notebox/terminal"
)

// Options say what is to be run, and where what comes of it goes.
type Options struct {
	Code *string // the program, else Path is read
	Path string  // "-": Stdin

	Language string   // "": as Path says
	Files    []string // and folders, for /mnt/data
	Packages []string
	Env      map[string]string
	Network  bool
	Timeout  time.Duration // 0: the service's
	Session  string        // "": a fresh sandbox

	Out      string // folder for files and images; "": they are named alone
	Notebook string // file for the executed notebook; "": none
	HTML     string // file for the record of the run, a page; "": none
	JSON     bool   // print the reply, and nothing else

	Stdin          io.Reader
	Stdout, Stderr Output
	Interrupts     <-chan os.Signal // the first interrupts the run, the second leaves it
	// Fleeting says that links end with this program.
	Fleeting bool
}

// Output is where text goes.
type Output struct {
	io.Writer
	Terminal bool // a person reads it: no control characters
	Plain    bool // on a terminal, too: no colours, no line of progress
	Columns  func() int
	Pictures func() terminal.Pictures // how images are shown, if at all; called when there is one
}

// Open finds the notebox that is to run it. close is called when all is fetched.
type Open func(ctx context.Context) (notebox *client.Client, close func() error, err error)

// Run runs a script. The error is an *Error.
func Run(ctx context.Context, open Open, o Options) (exit Exit, err error) {
	run := client.Run{
		Language: o.Language, Env: o.Env, Network: o.Network, Timeout: o.Timeout,
		Session: o.Session, Dependencies: o.Packages, Images: o.JSON || o.HTML != "",
	}
	s := &script{Options: o, printer: newPrinter(o)}
	ctx, leave := context.WithCancel(ctx)
	defer leave()
	defer s.heed(ctx, leave)()
	if err := s.read(ctx, &run); err != nil {
		return s.failed(ctx, err)
	}
	s.progress.Begin()
	s.progress.Say("starting a sandbox", "")
	defer s.settle()
	notebox, closing, err := open(ctx)
	if err != nil {
		return s.failed(ctx, failedUnless(err))
	}
	defer func() {
		if failed := closing(); failed != nil && err == nil {
			exit, err = Failed, &Error{Failed, failed}
		}
	}()
	return s.run(ctx, notebox, run)
}

// read reads what is to be run, unless that is interrupted: standard input may never end.
func (s *script) read(ctx context.Context, run *client.Run) error {
	var all client.Run
	done := make(chan error, 1)
	go func() {
		all = *run
		var err error
		if all.Files, err = Inputs(s.Files); err == nil {
			err = errors.Join(source(&all, s.Options), s.places())
		}
		done <- err
	}()
	select {
	case err := <-done:
		*run = all
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// script is one that is being run.
type script struct {
	Options
	*printer
	mu          sync.Mutex
	interrupted bool
	stop        func() // interrupts the run; nil before it can be
}

func (s *script) run(ctx context.Context, notebox *client.Client, run client.Run) (Exit, error) {
	s.fetch = func(link string) ([]byte, error) {
		content, err := notebox.Open(ctx, link)
		if err != nil {
			return nil, err
		}
		return content.All(terminal.MaxPicture)
	}
	listener := &client.Listener{Started: func(id string) { s.started(ctx, notebox, id) }}
	if !s.JSON {
		listener.Install, listener.Output = s.install, s.output
	}
	run.Listener = listener
	result, err := notebox.Execute(ctx, run)
	s.settle()
	if err != nil {
		return s.failed(ctx, Refused(err))
	}
	if s.JSON {
		s.stdout.print(s.stdout.json(result.Raw) + "\n")
	} else {
		s.outcome(result)
	}
	if err := errors.Join(s.saveRecord(ctx, notebox, run, result), s.save(ctx, notebox, result), s.lost()); err != nil {
		return Failed, &Error{Failed, err}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.interrupted {
		return Interrupted, nil
	}
	return exitOf(result), nil
}

// failed is what a run without a result ends with.
func (s *script) failed(ctx context.Context, err error) (Exit, error) {
	s.settle()
	s.mu.Lock()
	defer s.mu.Unlock()
	if ctx.Err() != nil || s.interrupted {
		return Interrupted, &Error{Interrupted, errors.New("interrupted")}
	}
	e := failedUnless(err).(*Error)
	return e.Exit, e
}

// heed heeds interrupts until the func that it returns is called: the first ends the run, which
// has a result, and the second leaves it.
func (s *script) heed(ctx context.Context, leave func()) func() {
	done := make(chan struct{})
	go func() {
		for {
			select {
			case <-done:
				return
			case <-ctx.Done():
				return
			case <-s.Interrupts:
			}
			s.mu.Lock()
			again, stop := s.interrupted, s.stop
			s.interrupted = true
			s.mu.Unlock()
			if again || stop == nil {
				leave()
				return
			}
			go stop()
		}
	}()
	return func() { close(done) }
}

// stopTime bounds the request that interrupts a run.
const stopTime = 10 * time.Second

func (s *script) started(ctx context.Context, notebox *client.Client, id string) {
	if len(s.Packages) > 0 {
		s.progress.Say(withPackages, "")
	} else {
		s.progress.Say("running", "")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stop = func() {
		ctx, cancel := context.WithTimeout(ctx, stopTime)
		defer cancel()
		if s.Session != "" { // whose variables stay
			_ = notebox.Interrupt(ctx, s.Session) // a second interrupt leaves in any case
			return
		}
		_ = notebox.Cancel(ctx, id)
	}
}
