// Command notebox runs code that somebody else wrote: notebox serve answers the
// HTTP API, and the other subcommands are for those who operate it.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/peterbourgon/ff/v3/ffcli"

	"notebox/terminal"
)

func main() {
	ctx, stop := untilSignal()
	err := run(ctx, os.Args[1:])
	stop()
	if errors.Is(err, flag.ErrHelp) || err == nil {
		return
	}
	exit := exitError{status: 1, error: err}
	errors.As(err, &exit)
	// A command that a signal ended exits with 128 and the signal's number, as shells do.
	if told := (ended{}); errors.As(context.Cause(ctx), &told) && (exit.status == interruptedStatus || errors.Is(err, context.Canceled)) {
		exit.status = signalledStatus + int(told.signal)
	}
	if exit.error != nil { // else it is said
		fmt.Fprintln(os.Stderr, "notebox:", terminal.Defuse(err.Error())) // which may quote what strangers have named
	}
	os.Exit(exit.status)
}

// Exit statuses that shells have.
const (
	usageStatus       = 2
	signalledStatus   = 128 // and the signal's number
	interruptedStatus = signalledStatus + int(syscall.SIGINT)
)

// ended is why a context has ended: a signal told this program to.
type ended struct{ signal syscall.Signal }

func (e ended) Error() string { return e.signal.String() }

// Is makes errors.Is(err, context.Canceled) true: some libraries return the cause.
func (ended) Is(target error) bool { return target == context.Canceled }

// untilSignal is a context that a signal to end ends. A second one ends the program at once.
func untilSignal() (ctx context.Context, stop func()) {
	ctx, end := context.WithCancelCause(context.Background())
	told := make(chan os.Signal, 1)
	signal.Notify(told, syscall.SIGINT, syscall.SIGTERM)
	go func() {
		s := (<-told).(syscall.Signal)
		signal.Stop(told)
		end(ended{s})
	}()
	return ctx, func() { end(nil) }
}

func run(ctx context.Context, args []string) error {
	c := command()
	var help bytes.Buffer // also written where a flag is wrong, of which the error says enough
	holdHelp(c, &help)
	err := c.Parse(args)
	switch {
	case err == nil:
		err = c.Run(ctx)
	case !errors.Is(err, flag.ErrHelp):
		text, isFlag := strings.CutPrefix(err.Error(), "error parsing commandline arguments: ")
		if isFlag {
			err = fmt.Errorf("%s; %s -h lists the flags", text, called(c, args))
		}
		err = exitError{usageStatus, err}
	}
	if errors.Is(err, flag.ErrHelp) {
		_, _ = help.WriteTo(os.Stderr)
	}
	return err
}

// holdHelp has a command and those below it write their help to w.
func holdHelp(c *ffcli.Command, w io.Writer) {
	c.FlagSet.SetOutput(w)
	for _, sub := range c.Subcommands {
		holdHelp(sub, w)
	}
}

// called is the command that is called with these arguments, as people write it.
func called(c *ffcli.Command, args []string) string {
	name := "notebox"
	for _, arg := range args {
		i := slices.IndexFunc(c.Subcommands, func(sub *ffcli.Command) bool { return strings.EqualFold(sub.Name, arg) })
		if i < 0 {
			break
		}
		c = c.Subcommands[i]
		name += " " + c.Name
	}
	return name
}

func command() *ffcli.Command {
	return &ffcli.Command{
		ShortUsage: "notebox COMMAND [flags]",
		ShortHelp:  "run code that somebody else wrote, in sandboxes",
		LongHelp:   rootHelp,
		UsageFunc:  rootUsage,
		FlagSet:    flag.NewFlagSet("notebox", flag.ContinueOnError),
		Subcommands: []*ffcli.Command{
			runCommand(),
			serveCommand(),
			sessionCommand(),
			doctorCommand(),
			imageCommand(),
			keyCommand(),
			chatCommand(),
			mcpCommand(),
			discordCommand(),
			healthcheckCommand(),
			configCommand(),
			completionCommand(),
			versionCommand(),
			completeCommand(),
			manCommand(),
			cleanupCommand(),
		},
		Exec: introduce,
	}
}
