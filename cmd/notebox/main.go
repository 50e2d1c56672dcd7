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

	"github.com/peterbourgon/ff/v3/ffcli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// A second signal ends the program at once.
	context.AfterFunc(ctx, stop)
	err := command().ParseAndRun(ctx, os.Args[1:])
	stop()
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "notebox:", err)
		var exit exitError
		if errors.As(err, &exit) {
			os.Exit(exit.status)
		}
		os.Exit(1)
	}
}

func command() *ffcli.Command {
	return &ffcli.Command{
		ShortUsage: "notebox COMMAND [flags]",
		ShortHelp:  "run code that somebody else wrote, in sandboxes",
		LongHelp:   rootHelp,
		UsageFunc:  rootUsage,
		Subcommands: []*ffcli.Command{
			serveCommand(),
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
		},
		Exec: introduce,
	}
}
