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
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// A second signal ends the program at once.
	context.AfterFunc(ctx, stop)
	err := run(ctx, os.Args[1:])
	stop()
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		exit := exitError{status: 1, error: err}
		errors.As(err, &exit)
		if exit.error != nil { // else it is said
			fmt.Fprintln(os.Stderr, "notebox:", terminal.Defuse(err.Error())) // which may quote what strangers have named
		}
		os.Exit(exit.status)
	}
}

// usageStatus is the exit status after a mistake in the call, as shells have it.
const usageStatus = 2

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
