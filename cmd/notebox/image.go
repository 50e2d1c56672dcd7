package main

import (
	"context"
	"flag"
	"os"

	"github.com/peterbourgon/ff/v3/ffcli"

	"notebox/environments"
)

// imageCommand prints which images belong to this program.
func imageCommand() *ffcli.Command {
	f := flag.NewFlagSet("notebox image", flag.ContinueOnError)
	var q environments.Question
	q.Register(f)
	return &ffcli.Command{
		Name:       "image",
		ShortUsage: "notebox image [flags] [environment]",
		ShortHelp:  "print the reference of a sandbox image",
		FlagSet:    f,
		Exec:       func(_ context.Context, args []string) error { return q.Answer(os.Stdout, args) },
	}
}
