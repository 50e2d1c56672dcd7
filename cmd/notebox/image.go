package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/peterbourgon/ff/v3"
	"github.com/peterbourgon/ff/v3/ffcli"

	"notebox/environments"
)

const imageHelp = `Without a subcommand it prints the reference of the image that belongs to this program,
for Python or the language that is named.`

// imageCommand prints which images belong to this program, and its subcommands make them.
func imageCommand() *ffcli.Command {
	f := flag.NewFlagSet("notebox image", flag.ContinueOnError)
	var q environments.Question
	q.Register(f)
	return &ffcli.Command{
		Name:        "image",
		ShortUsage:  "notebox image [flags] [LANGUAGE]\n  notebox image build | list | prune",
		ShortHelp:   "build, list and remove the images of languages",
		LongHelp:    imageHelp,
		FlagSet:     f,
		Subcommands: []*ffcli.Command{imageBuildCommand(), imageListCommand(), imagePruneCommand()},
		Exec: func(_ context.Context, args []string) error {
			if err := ownEnvironments(&q.Dir); err != nil {
				return err
			}
			if len(args) == 1 && !q.Base && !q.List {
				all, err := environments.Load(q.Dir)
				if err != nil {
					return err
				}
				e, err := environmentOf(all, args[0])
				if err != nil {
					return fmt.Errorf("%w; the commands are build, list and prune", err)
				}
				args[0] = e.Name
			}
			return q.Answer(os.Stdout, args)
		},
	}
}

// registerEnvironments is the flag of serve that images are made by too.
func registerEnvironments(f *flag.FlagSet, dir *string) {
	f.StringVar(dir, "environments-dir", "", "Know the languages in this `folder` too; NOTEBOX_ENVIRONMENTS_DIR names it as well.")
}

// ownEnvironments reads the variable of --environments-dir where the flag is not set, as serve
// does.
func ownEnvironments(dir *string) error {
	if *dir != "" {
		return nil
	}
	var f flag.FlagSet
	registerEnvironments(&f, dir)
	return ff.Parse(&f, nil, ff.WithEnvVarPrefix("NOTEBOX")) // not by a file .env: the folder may be a stranger's
}

// environmentOf is the environment of a language, by its own name, the language's or an alias.
func environmentOf(all []environments.Environment, name string) (environments.Environment, error) {
	var known []string
	for _, e := range all {
		if e.Name == name || strings.EqualFold(e.Language, name) || slices.Contains(e.Aliases, strings.ToLower(name)) {
			return e, nil
		}
		known = append(known, e.Name)
	}
	return environments.Environment{}, fmt.Errorf("no language %q; there is: %s", name, strings.Join(known, ", "))
}
