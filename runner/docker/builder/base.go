package builder

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"regexp"
	"strings"
	"time"

	"github.com/docker/docker/api/types/image"
)

// Imported is the name of a base that came as a tar file.
const Imported = "notebox/debian:imported"

// pullTime is for 30 MB; a registry that needs longer is as good as none.
const pullTime = 5 * time.Minute

// isPath tells what can be meant as a file alone from an image's name.
var isPath = regexp.MustCompile(`(?i)^[./~]|\.tar$|\.tar\.|\.tgz$`)

// Base makes sure that the daemon has the image that all are made from, and returns its name.
// given is an image, or the path of a tar file, which holds a file system or what docker save
// writes; "" is debian, from a registry if it is not there, or what a tar file brought before if
// none answers.
func (b *Builder) Base(ctx context.Context, given, debian string) (ref string, err error) {
	info, err := os.Stat(given)
	switch {
	case err == nil && info.Mode().IsRegular():
		return b.load(ctx, given)
	case isPath.MatchString(given) && err != nil:
		return "", fmt.Errorf("--base: %w", err)
	case isPath.MatchString(given):
		return "", fmt.Errorf("--base %s: it is no file", given)
	}
	ref = debian
	if given != "" {
		ref = given
	}
	there, err := b.Has(ctx, ref)
	if there || err != nil {
		return ref, err
	}
	b.say("pulling %s", ref)
	err = b.pull(ctx, ref)
	if err == nil {
		return ref, nil
	}
	if given == "" {
		if before, _ := b.Has(ctx, Imported); before {
			b.say("%s cannot be pulled (%v): beginning with %s, which --base has brought before", ref, err, Imported)
			return Imported, nil
		}
	}
	return "", fmt.Errorf("pull %s: %w; --base names an image that the daemon has, or a tar file of Debian trixie: mmdebstrap --variant=minbase trixie base.tar", ref, unreached(err))
}

// pull has the daemon fetch an image, within pullTime.
func (b *Builder) pull(ctx context.Context, ref string) error {
	pulling, cancel := context.WithTimeout(ctx, b.pullTime)
	defer cancel()
	said, err := b.api.ImagePull(pulling, ref, image.PullOptions{})
	if err != nil {
		return err
	}
	return errors.Join(drain(said), said.Close())
}

// drain reads messages of the daemon to their end, and returns the error that is among them.
func drain(r io.Reader) error {
	for messages := json.NewDecoder(r); ; {
		var m message
		switch err := messages.Decode(&m); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case m.Error != "":
			return errors.New(m.Error)
		}
	}
}

// load gives the daemon what is in a tar file.
func (b *Builder) load(ctx context.Context, file string) (ref string, err error) {
	saved, err := isSaved(file)
	if err != nil {
		return "", fmt.Errorf("--base %s: %w", file, err)
	}
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	b.say("importing %s", file)
	if saved {
		return b.loadSaved(ctx, f)
	}
	said, err := b.api.ImageImport(ctx, image.ImportSource{Source: f, SourceName: "-"}, Imported, image.ImportOptions{Changes: []string{`CMD ["bash"]`}})
	if err == nil {
		err = errors.Join(drain(said), said.Close())
	}
	if err != nil {
		return "", fmt.Errorf("import %s: %w", file, unreached(err))
	}
	return Imported, nil
}

// loadSaved takes an image that docker save wrote. It is named Imported, whatever its name was.
func (b *Builder) loadSaved(ctx context.Context, f *os.File) (string, error) {
	res, err := b.api.ImageLoad(ctx, f)
	if err != nil {
		return "", fmt.Errorf("load %s: %w", f.Name(), unreached(err))
	}
	defer res.Body.Close()
	loaded := ""
	for messages := json.NewDecoder(res.Body); ; {
		var m struct{ Stream, Error string }
		err := messages.Decode(&m)
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil && m.Error != "" {
			err = errors.New(m.Error)
		}
		if err != nil {
			return "", fmt.Errorf("load %s: %w", f.Name(), err)
		}
		for _, before := range []string{"Loaded image ID: ", "Loaded image: "} {
			if name, ok := strings.CutPrefix(strings.TrimSpace(m.Stream), before); ok {
				loaded = name
			}
		}
	}
	if loaded == "" {
		return "", fmt.Errorf("load %s: there is no image in it", f.Name())
	}
	return Imported, b.api.ImageTag(ctx, loaded, Imported)
}

// isSaved tells what docker save writes from a file system: by its list of images. A file
// system has a shell.
func isSaved(file string) (bool, error) {
	f, err := os.Open(file)
	if err != nil {
		return false, err
	}
	defer f.Close()
	for entries := tar.NewReader(f); ; {
		h, err := entries.Next()
		switch {
		case errors.Is(err, io.EOF):
			return false, errors.New("neither a file system with a shell nor an image that docker save wrote is in it")
		case err != nil:
			return false, fmt.Errorf("it is not an uncompressed tar file: %w", err)
		}
		switch path.Clean(h.Name) {
		case "manifest.json":
			return true, nil
		case "bin/bash", "usr/bin/bash":
			return false, nil
		}
	}
}
