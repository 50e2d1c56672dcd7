// Command notebox runs code that somebody else wrote: notebox serve answers the
// HTTP API, and the other subcommands are for those who operate it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"notebox/terminal"

	"github.com/peterbourgon/ff/v3/ffcli"
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
	// Who is told to end says by whom, as shells do.
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
	if err := c.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return err
		}
		return exitError{usageStatus, err}
	}
	return c.Run(ctx)
}

func command() *ffcli.Command {
	return &ffcli.Command{
		ShortUsage: "notebox COMMAND [flags]",
		ShortHelp:  "run code that somebody else wrote, in sandboxes",
		LongHelp:   rootHelp,
		UsageFunc:  rootUsage,
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
