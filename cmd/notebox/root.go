package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/peterbourgon/ff/v3/ffcli"
)

const about = `notebox runs code that a model, or anybody else, wrote. The code runs in a sandbox that
is used once and has no network. Text, images, errors and files come back, and the
executed notebook too. It needs a Docker daemon.`

// intro is what the program says if it is called with nothing: the commands that people need
// first are in it, and the rest is one call away.
const intro = about + `

  notebox doctor              say whether code can run here, and what to mend
  notebox run -c 'print(42)'  run code, a script or a notebook
  notebox serve               answer the HTTP API at http://127.0.0.1:8080

notebox -h lists all commands, and notebox COMMAND -h the flags of one.
`

const rootHelp = about + `

notebox COMMAND -h lists the flags of a command.`

// introduce is the command without a subcommand.
func introduce(_ context.Context, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("no subcommand %q; notebox -h lists them", args[0])
	}
	_, err := io.WriteString(os.Stdout, intro)
	return err
}

// rootUsage is ffcli's, without the commands that are for programs.
func rootUsage(c *ffcli.Command) string {
	shown := *c
	shown.Subcommands = slices.DeleteFunc(slices.Clone(c.Subcommands), func(s *ffcli.Command) bool { return s.ShortHelp == "" })
	return ffcli.DefaultUsageFunc(&shown)
}
