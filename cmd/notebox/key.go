package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/peterbourgon/ff/v3/ffcli"

	"notebox/access"
)

const keyHelp = `Prints a new API key, which is shown this once, and its line for the file of
serve --api-keys-file, in which only the key's SHA-256 is. With -file the line is
appended there, and the key alone is printed.

Limits, of which none is needed:
  runs-at-once=N          runs that go on, or wait for their place
  requests-per-minute=N   requests of every kind that need the key
  cpu-seconds-per-day=N   of all runs of a day (UTC)
  environments=A,B        languages, or names of environments
  network=no              not even where the service has one for others
  sessions=N|no           open at one time

With -stdin the key is not made but read, in one line. Of one that stands in the file
in plain, the named line takes the place, and that key's results stay its own.`

// newKey are the flags of notebox key.
type newKey struct {
	file   string
	rotate bool
	stdin  bool
}

func keyCommand() *ffcli.Command {
	var k newKey
	flags := flag.NewFlagSet("notebox key", flag.ContinueOnError)
	flags.StringVar(&k.file, "file", "", "Append the line to this `file` of keys, and make the file if it is missing.")
	flags.BoolVar(&k.rotate, "rotate", false, "Add the key to the line of NAME in -file; the old key works until you take it out by hand.")
	flags.BoolVar(&k.stdin, "stdin", false, "Read the key instead of making one.")
	return &ffcli.Command{
		Name:       "key",
		ShortUsage: "notebox key [-file FILE [-rotate]] [-stdin] NAME [limit=value …]",
		ShortHelp:  "make an API key",
		LongHelp:   keyHelp,
		FlagSet:    flags,
		Exec: func(ctx context.Context, args []string) error {
			return k.run(ctx, os.Stdin, os.Stdout, args)
		},
	}
}

func (k *newKey) run(ctx context.Context, in io.Reader, out io.Writer, args []string) error {
	switch {
	case len(args) == 0:
		return errors.New("key: a name is needed, for the file and the log")
	case k.rotate && (k.file == "" || len(args) > 1):
		return errors.New("key: -rotate needs -file, and leaves the limits as they are")
	}
	key := access.NewKey()
	if k.stdin {
		line, err := bufio.NewReader(in).ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("key: %w", err)
		}
		if key = strings.TrimSpace(line); !access.IsKey(key) {
			return errors.New("key: a key is one word of visible ASCII")
		}
	}
	entry, err := k.entry(args[0], args[1:], access.SecretOf(key))
	if err != nil {
		return fmt.Errorf("key: %w", err)
	}
	switch {
	case k.rotate:
		err = access.AddSecret(ctx, k.file, entry.Name, entry.Secrets[0])
	case k.file != "":
		err = access.Add(ctx, k.file, entry)
	}
	if err != nil {
		return err
	}
	switch {
	case k.file == "" && k.stdin:
		_, err = fmt.Fprintln(out, entry)
	case k.file == "":
		_, err = fmt.Fprintf(out, "%s\n%s\n", key, entry)
	case !k.stdin:
		_, err = fmt.Fprintln(out, key)
	}
	return err
}

// entry is that of the new line. A key that was there before keeps its owner.
func (k *newKey) entry(name string, limits []string, s access.Secret) (access.Entry, error) {
	if err := access.CheckName(name); err != nil {
		return access.Entry{}, err
	}
	l, err := access.ParseLimits(limits)
	e := access.NamedEntry(name, l, s)
	if k.stdin && !k.rotate {
		e.Owner = s.Owner()
	}
	return e, err
}
