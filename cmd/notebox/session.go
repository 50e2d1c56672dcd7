package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/docker/go-units"
	"github.com/peterbourgon/ff/v3/ffcli"
	"golang.org/x/term"

	"notebox/client"
	"notebox/cmd/notebox/script"
	"notebox/terminal"
)

const sessionHelp = `A session is a sandbox that lives on: what runs in it finds the variables and files
of the run before. It belongs to the notebox at --url, and to the API key that
opened it.

  id=$(notebox session open --file data.csv)
  notebox session run $id -c 'import pandas as pd; table = pd.read_csv("data.csv")'
  notebox session run $id -c 'table.describe()'
  notebox session files $id
  notebox session close $id

NOTEBOX_URL is a variable for --url, NOTEBOX_API_KEY for --api-key. The exit status is that of notebox run.`

func sessionCommand() *ffcli.Command {
	return &ffcli.Command{
		Name:        "session",
		ShortUsage:  "notebox session open | list | run | files | close",
		ShortHelp:   "keep a sandbox between runs",
		LongHelp:    sessionHelp,
		FlagSet:     flag.NewFlagSet("notebox session", flag.ContinueOnError),
		Subcommands: []*ffcli.Command{sessionOpen(), sessionList(), sessionRun(), sessionFiles(), sessionClose()},
		Exec: func(_ context.Context, args []string) error {
			if len(args) > 0 {
				return exitError{int(script.Mistake), fmt.Errorf("notebox session has no %q; notebox session -h lists what it has", args[0])}
			}
			return flag.ErrHelp
		},
	}
}

// sessionPart is a part of notebox session. Flags may stand before and after its arguments, of
// which there are at least so many and at most.
type sessionPart struct {
	name, usage, help string
	least, most       int
	flags             func(*flag.FlagSet)
	do                func(ctx context.Context, notebox *client.Client, args []string) error
}

func (s sessionPart) command() *ffcli.Command {
	var at elsewhere
	flags := flag.NewFlagSet("notebox session "+s.name, flag.ContinueOnError)
	at.register(flags)
	at.fromVariables()
	if s.flags != nil {
		s.flags(flags)
	}
	return &ffcli.Command{
		Name: s.name, ShortUsage: "notebox session " + s.usage, ShortHelp: s.help, FlagSet: flags,
		Exec: func(ctx context.Context, args []string) error {
			args, err := interspersed(flags, args)
			if err == nil && (len(args) < s.least || len(args) > s.most) {
				err = fmt.Errorf("it is called so: notebox session %s", s.usage)
			}
			if err == nil {
				_, err = at.parse()
			}
			if err != nil {
				return exitError{int(script.Mistake), err}
			}
			err = s.do(ctx, client.New(client.Options{BaseURL: at.url, Key: at.key}), args)
			return exitOfScript(script.OK, err)
		},
	}
}

// exitOfScript ends the program as a script's Exit and error say.
func exitOfScript(exit script.Exit, err error) error {
	var failed *script.Error
	switch {
	case errors.Is(err, context.Canceled):
		return exitError{int(script.Interrupted), errors.New("interrupted")}
	case errors.As(err, &failed):
		return exitError{int(failed.Exit), err}
	case err != nil:
		return exitError{int(script.Failed), err}
	case exit != script.OK:
		return exitError{int(exit), nil}
	}
	return nil
}

func sessionOpen() *ffcli.Command {
	var o client.SessionOptions
	var files, packages several
	return sessionPart{
		name: "open", usage: "open [flags]", help: "start a session, and print its id",
		flags: func(f *flag.FlagSet) {
			f.StringVar(&o.Language, "language", "", "Run code in this `language`. (default: Python)")
			f.DurationVar(&o.TTL, "ttl", 0, "End the session after this time. (default: the service's)")
			f.Var(&files, "file", "Put this `file`, or all of a folder, into /mnt/data; repeatable.")
			f.Var(&packages, "package", "Install this `package` before; repeatable.")
		},
		do: func(ctx context.Context, notebox *client.Client, _ []string) (err error) {
			if o.Files, err = script.Inputs(files); err != nil {
				return err
			}
			o.Dependencies = packages
			session, err := notebox.OpenSession(ctx, o)
			if err != nil {
				return script.Refused(err)
			}
			_, err = fmt.Println(session.ID)
			return err
		},
	}.command()
}

func sessionList() *ffcli.Command {
	return sessionPart{
		name: "list", usage: "list [flags]", help: "list the sessions of this key",
		do: func(ctx context.Context, notebox *client.Client, _ []string) error {
			all, err := notebox.Sessions(ctx)
			if err != nil {
				return script.Refused(err)
			}
			table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
			fmt.Fprintln(table, "ID\tLANGUAGE\tSTATUS\tENDS")
			for _, s := range all {
				fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", s.ID, s.Language, s.Status, s.ExpiresAt.Local().Format(time.DateTime))
			}
			return table.Flush()
		},
	}.command()
}

// sessionRun is notebox run, in a session.
func sessionRun() *ffcli.Command {
	var r runFlags
	flags := flag.NewFlagSet("notebox session run", flag.ContinueOnError)
	r.registerSession(flags)
	return &ffcli.Command{
		Name: "run", ShortUsage: "notebox session run [flags] ID FILE | - | -c CODE", ShortHelp: "run code in a session", FlagSet: flags,
		Exec: func(ctx context.Context, args []string) error {
			args, err := interspersed(flags, args)
			if err == nil && (len(args) == 0 || len(args) > 2) {
				err = errors.New("it is called so: notebox session run ID FILE, or ID and -c CODE")
			}
			if err != nil {
				return exitError{int(script.Mistake), err}
			}
			r.session = args[0]
			return exitOfScript(r.run(ctx, args[1:]))
		},
	}
}

func sessionFiles() *ffcli.Command {
	put := ""
	return sessionPart{
		name: "files", usage: "files [flags] ID [PATH]", help: "list a session's files, print one, or put one there", least: 1, most: 2,
		flags: func(f *flag.FlagSet) {
			f.StringVar(&put, "put", "", "Put this `file` of this machine into the session, at PATH or under its own name.")
		},
		do: func(ctx context.Context, notebox *client.Client, args []string) error {
			session, path := args[0], ""
			if len(args) > 1 {
				path = args[1]
			}
			switch {
			case put != "":
				return putFile(ctx, notebox, session, put, path)
			case path != "":
				content, err := notebox.ReadFile(ctx, session, path)
				if err != nil {
					return script.Refused(err)
				}
				defer content.Close()
				return printFile(content)
			}
			return listFiles(ctx, notebox, session)
		},
	}.command()
}

// printFile writes a file to standard output: as text that only shows, if that is a terminal.
func printFile(content *client.Content) error {
	if !term.IsTerminal(int(os.Stdout.Fd())) {
		_, err := io.Copy(os.Stdout, content)
		return err
	}
	raw, err := content.All(maxShown)
	if err != nil {
		return err
	}
	_, err = fmt.Println(strings.TrimSuffix(terminal.Defuse(string(raw)), "\n"))
	return err
}

// maxShown bounds a file that is shown on a terminal, in bytes.
const maxShown = 16 << 20

func putFile(ctx context.Context, notebox *client.Client, session, name, path string) error {
	file, err := os.Open(name)
	if err != nil {
		return &script.Error{Exit: script.Mistake, Err: err}
	}
	defer file.Close()
	if path == "" {
		path = filepath.Base(name)
	}
	if _, err := notebox.WriteFile(ctx, session, path, file); err != nil {
		return script.Refused(err)
	}
	return nil
}

func listFiles(ctx context.Context, notebox *client.Client, session string) error {
	list, err := notebox.ListFiles(ctx, session, "")
	if err != nil {
		return script.Refused(err)
	}
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, f := range list.Files {
		fmt.Fprintf(table, "%s\t%s\t %s\n", units.HumanSize(float64(f.Bytes)), f.ModifiedAt.Local().Format(time.DateTime), terminal.DefuseLine(strings.TrimPrefix(f.Path, client.DataFolder+"/")))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if list.More {
		fmt.Fprintln(os.Stderr, "notebox: there are more files")
	}
	return nil
}

func sessionClose() *ffcli.Command {
	return sessionPart{
		name: "close", usage: "close [flags] ID", help: "end a session", least: 1, most: 1,
		do: func(ctx context.Context, notebox *client.Client, args []string) error {
			if err := notebox.CloseSession(ctx, args[0]); err != nil {
				return script.Refused(err)
			}
			return nil
		},
	}.command()
}
