package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"text/tabwriter"

	"github.com/docker/go-units"
	"github.com/peterbourgon/ff/v3/ffcli"

	"notebox/environments"
	"notebox/runner/docker/builder"
)

const imagePruneHelp = `Removes images of languages that other versions of notebox have built, and prints what it
removes. What a container is made from stays, and so does what this program runs code in:
also the image that NOTEBOX_IMAGE names, in the environment, .env or the file of
NOTEBOX_CONFIG.

While a notebox of another version runs code on the same daemon nothing is removed, as it
may need each of these images: end it first, or say --force. --dry-run shows what would go.`

func imageListCommand() *ffcli.Command {
	f := flag.NewFlagSet("notebox image list", flag.ContinueOnError)
	var dir string
	registerEnvironments(f, &dir)
	asJSON := f.Bool("json", false, "Print a JSON array.")
	return &ffcli.Command{
		Name:       "list",
		ShortUsage: "notebox image list [--json]",
		ShortHelp:  "list the images of languages, and which are missing or old",
		FlagSet:    f,
		Exec: func(ctx context.Context, args []string) error {
			if err := flagsAlone(f, args); err != nil {
				return err
			}
			return withImages(ctx, dir, func(_ *builder.Builder, all []builder.Kept) error {
				if *asJSON {
					return writeJSON(os.Stdout, all)
				}
				return writeImages(os.Stdout, all)
			})
		},
	}
}

func imagePruneCommand() *ffcli.Command {
	f := flag.NewFlagSet("notebox image prune", flag.ContinueOnError)
	var dir string
	registerEnvironments(f, &dir)
	dry := f.Bool("dry-run", false, "Remove nothing, and print what would be removed.")
	force := f.Bool("force", false, "Remove them also while a notebox of another version runs.")
	return &ffcli.Command{
		Name:       "prune",
		ShortUsage: "notebox image prune [--dry-run] [--force]",
		ShortHelp:  "remove images that other versions of notebox have built",
		LongHelp:   imagePruneHelp,
		FlagSet:    f,
		Exec: func(ctx context.Context, args []string) error {
			if err := flagsAlone(f, args); err != nil {
				return err
			}
			return withImages(ctx, dir, func(b *builder.Builder, all []builder.Kept) error {
				if i := slices.IndexFunc(all, func(k builder.Kept) bool { return k.State == builder.Old && k.Serving }); i >= 0 && !*force && !*dry {
					return fmt.Errorf("a notebox of another version runs code in %s, and may need other old images too: end it first, or say --force; nothing was removed", all[i].Ref)
				}
				return prune(ctx, b, all, *dry, os.Stdout)
			})
		},
	}
}

// withImages calls use with the images that are there and those that are missing.
func withImages(ctx context.Context, dir string, use func(*builder.Builder, []builder.Kept) error) error {
	if err := ownEnvironments(&dir); err != nil {
		return err
	}
	all, err := environments.Load(dir)
	if err != nil {
		return err
	}
	refs := map[string]string{}
	for _, e := range all {
		if e.ImageOf == "" {
			refs[e.Name] = e.Image
		}
	}
	if refs[environments.Base], err = environments.BaseImage(); err != nil {
		return err
	}
	b, err := builder.New(builder.Options{})
	if err != nil {
		return err
	}
	defer b.Close()
	kept, err := b.List(ctx, refs, imagesOfServe()...)
	if err != nil {
		return err
	}
	return use(b, kept)
}

// imagesOfServe are those that the variables and files of serve name. What is wrong with other
// settings is of no interest.
func imagesOfServe() []string {
	var s settings
	flags := flag.NewFlagSet("notebox serve", flag.ContinueOnError)
	s.register(flags)
	_, _ = readEach(flags, &s)
	if s.image == "" {
		return nil
	}
	return []string{s.image}
}

// prune removes the old images, and prints their references.
func prune(ctx context.Context, b *builder.Builder, all []builder.Kept, dry bool, out io.Writer) error {
	var failed []error
	for _, k := range all {
		if k.State != builder.Old || k.InUse {
			continue
		}
		if !dry {
			switch err := b.Remove(ctx, k.Ref); {
			case errors.Is(err, builder.ErrInUse): // since it was listed
				continue
			case err != nil:
				failed = append(failed, err)
				continue
			}
		}
		fmt.Fprintln(out, k.Ref)
	}
	return errors.Join(failed...)
}

// writeImages prints a table. Sizes include what images have in common.
func writeImages(w io.Writer, all []builder.Kept) error {
	table := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(table, "LANGUAGE\tIMAGE\tSTATE\tSIZE\tCREATED")
	for _, k := range all {
		state, size, created := string(k.State), "", ""
		if k.State != builder.Missing {
			size, created = units.HumanSize(float64(k.Bytes)), k.Created.Local().Format("2006-01-02 15:04")
		}
		switch {
		case k.State != builder.Old:
		case k.Serving:
			state += ", a notebox runs it"
		case k.InUse:
			state += ", in use"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", k.Name, k.Ref, state, size, created)
	}
	return table.Flush()
}
