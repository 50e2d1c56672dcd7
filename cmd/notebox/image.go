package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/peterbourgon/ff/v3/ffcli"

	"notebox/environments"
)

// imageCommand prints which image belongs to this program, for the scripts that
// build it.
func imageCommand() *ffcli.Command {
	return &ffcli.Command{
		Name:       "image",
		ShortUsage: "notebox image [environment]",
		ShortHelp:  "print the reference of a sandbox image",
		Exec: func(_ context.Context, args []string) error {
			name := environments.Default
			if len(args) > 0 {
				name = args[0]
			}
			all, err := environments.Load()
			if err != nil {
				return err
			}
			var known []string
			for _, e := range all {
				if e.Name == name {
					fmt.Println(e.Image)
					return nil
				}
				known = append(known, e.Name)
			}
			return fmt.Errorf("no environment %q; there is: %s", name, strings.Join(known, ", "))
		},
	}
}
