package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path"
	"slices"

	"github.com/peterbourgon/ff/v3/ffcli"

	"notebox/environments"
	"notebox/runner/docker/builder"
)

const imageBuildHelp = `Builds the image of each LANGUAGE that is not there yet, Python's if none is named, and
prints its reference. All that images are made of is in this program, but for packages:
those of Debian, and of PyPI, npm and CRAN, come from their registries, by what this host
knows of these (pip.conf, .npmrc, proxies, its certificates). None of that stays in an
image. It needs a Docker daemon with BuildKit (18.09 or later), and no docker client.

The image that all are made from is debian:trixie-slim of the daemon, else of the
registry; --base names another one, or a tar file: a file system of Debian trixie, as
mmdebstrap makes it, or what docker save writes. With --base, what is there is built anew.`

// imageBuild are the flags of notebox image build.
type imageBuild struct {
	dir, base, tag   string
	supervisor       string
	all, force, anew bool

	progress io.Writer
	builder  *builder.Builder
	program  []byte // of the supervisor, when it was read
	ready    string // the image of the base, when that is there
}

func imageBuildCommand() *ffcli.Command {
	var b imageBuild
	f := flag.NewFlagSet("notebox image build", flag.ContinueOnError)
	f.BoolVar(&b.all, "all", false, "Build the images of all languages.")
	f.StringVar(&b.base, "base", "", "Begin with this `IMAGE|TAR`. (default: debian:trixie-slim)")
	registerEnvironments(f, &b.dir)
	f.BoolVar(&b.force, "force", false, "Build also what is there, from what the daemon keeps of earlier builds.")
	f.BoolVar(&b.anew, "no-cache", false, "Build also what is there, each step anew.")
	f.StringVar(&b.tag, "tag", "", "Name the image of one language `REF` instead of by the hash of what it is made of.")
	f.StringVar(&b.supervisor, "supervisor", "", "Take the supervisor of cells in this `file` instead of the one in this program.")
	return &ffcli.Command{
		Name:       "build",
		ShortUsage: "notebox image build [flags] [LANGUAGE …]",
		ShortHelp:  "build images of languages",
		LongHelp:   imageBuildHelp,
		FlagSet:    f,
		Exec: func(ctx context.Context, args []string) error {
			names, err := interspersed(f, args)
			if err != nil {
				return exitError{usageStatus, err}
			}
			return b.run(ctx, os.Stdout, os.Stderr, names)
		},
	}
}

// run prints references to out, and what goes on to progress.
func (b *imageBuild) run(ctx context.Context, out, progress io.Writer, names []string) error {
	b.progress = progress
	if err := ownEnvironments(&b.dir); err != nil {
		return err
	}
	all, err := environments.Load(b.dir)
	if err != nil {
		return err
	}
	wanted, err := b.wanted(all, names)
	if err != nil {
		return err
	}
	secrets, err := buildSecrets(ctx)
	if err != nil {
		return err
	}
	b.builder, err = builder.New(builder.Options{Secrets: secrets, Proxies: proxies(), Progress: progress, NoCache: b.anew})
	if err != nil {
		return err
	}
	defer b.builder.Close()
	for _, e := range wanted {
		if b.tag != "" {
			e.Image = b.tag
		}
		if err := b.one(ctx, e); err != nil {
			return err
		}
		fmt.Fprintln(out, e.Image)
	}
	return nil
}

// wanted are the environments whose images are asked for, each image once.
func (b *imageBuild) wanted(all []environments.Environment, names []string) (out []environments.Environment, err error) {
	switch {
	case b.all && len(names) > 0:
		return nil, errors.New("--all builds each language: name none")
	case b.tag != "" && (b.all || len(names) > 1):
		return nil, errors.New("--tag names one image: name one language")
	case len(names) == 0:
		names = []string{environments.Default}
	}
	if b.all {
		names = nil
		for _, e := range all {
			names = append(names, e.Name)
		}
	}
	for _, name := range names {
		e, err := environmentOf(all, name)
		if err != nil {
			return nil, err
		}
		if e.ImageOf != "" {
			e = all[slices.IndexFunc(all, func(o environments.Environment) bool { return o.Name == e.ImageOf })]
		}
		if !slices.ContainsFunc(out, func(o environments.Environment) bool { return o.Name == e.Name }) {
			out = append(out, e)
		}
	}
	return out, nil
}

// again reports whether also what is there is built: it may be made from another base.
func (b *imageBuild) again() bool { return b.force || b.anew || b.base != "" }

// one builds the image of an environment, unless it is there.
func (b *imageBuild) one(ctx context.Context, e environments.Environment) error {
	there, err := b.builder.Has(ctx, e.Image)
	if err != nil {
		return err
	}
	if there && !b.again() && b.tag == "" {
		fmt.Fprintln(b.progress, e.Image, "is there")
		return nil
	}
	base, err := b.makeBase(ctx)
	if err != nil {
		return err
	}
	return b.build(ctx, e.Image, e.Name, "", map[string]string{"BASE": base})
}

// makeBase builds the image that those of languages are made from, unless it is there. It does
// so once.
func (b *imageBuild) makeBase(ctx context.Context) (ref string, err error) {
	if b.ready != "" {
		return b.ready, nil
	}
	if ref, err = environments.BaseImage(); err != nil {
		return "", err
	}
	there, err := b.builder.Has(ctx, ref)
	if err != nil {
		return "", err
	}
	if !there || b.again() {
		debian, err := b.builder.Base(ctx, b.base, environments.DebianImage)
		if err != nil {
			return "", err
		}
		if err := b.build(ctx, ref, environments.Base, debian, nil); err != nil {
			return "", err
		}
	}
	b.ready = ref
	return ref, nil
}

func (b *imageBuild) build(ctx context.Context, ref, name, debian string, args map[string]string) error {
	if err := b.readProgram(ctx); err != nil {
		return err
	}
	fmt.Fprintf(b.progress, "building %s (the first time takes some minutes)\n", ref)
	return b.builder.Build(ctx, builder.Image{
		Ref: ref, Dockerfile: path.Join(name, "Dockerfile"), Args: args,
		Context: func(w io.Writer) error { return environments.BuildContext(w, b.dir, name, b.program, debian) },
	})
}

// readProgram reads the supervisor for the daemon's processor.
func (b *imageBuild) readProgram(ctx context.Context) (err error) {
	switch {
	case b.program != nil:
	case b.supervisor != "":
		b.program, err = os.ReadFile(b.supervisor)
	default:
		var arch string
		if arch, err = b.builder.Arch(ctx); err == nil {
			b.program, err = environments.Supervisor(arch)
		}
	}
	return err
}
