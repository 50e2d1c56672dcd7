// Package environments holds what sandboxes are made of: one folder per
// language, the base of all their images, and the harness that runs in all of them.
//
// A folder has an environment.json (see Environment), a Dockerfile and what that copies.
// The folders are embedded in the program, so that it knows by itself which
// image belongs to it: an image's tag is the hash of its folder, of the base and of the
// harness, and changes exactly when something in them does. An operator's own
// environments are folders of the same form elsewhere; see Load.
//
// How to add one is in docs/environments.md.
package environments

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
)

// Default is the folder of the environment that a request gets which names no
// language.
const Default = "jupyter"

// Folders that are part of every image.
const (
	harness    = "harness"
	base       = "base"
	supervisor = "supervisor"
)

// baseImage is the repository of the image that the others are made from.
const baseImage = "notebox/base"

// Files with a dot in their name, and the Dockerfile: no folder, such as testdata, but for
// the harness's package.
//
//go:embed */*.* */Dockerfile harness/harness/*.py harness/harness/*/*.py supervisor/wire/*.go supervisor/tail/*.go
var embedded embed.FS

// Load returns the embedded environments, the default one first and the others by
// name, and then those in the folders of dir, which may be "". What is wrong with one of
// them is an error that names its file and field.
func Load(dir string) ([]Environment, error) {
	all, err := loadAll(embedded, embedded)
	if err != nil {
		return nil, err
	}
	if i := slices.IndexFunc(all, func(e Environment) bool { return e.Name == Default }); i > 0 {
		first := all[i]
		all = slices.Insert(slices.Delete(all, i, i+1), 0, first)
	}
	if dir != "" {
		if _, err := os.Stat(dir); err != nil {
			return nil, err
		}
		own, err := loadAll(os.DirFS(dir), embedded)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", dir, err)
		}
		all = append(all, own...)
	}
	if err := shareImages(all); err != nil {
		return nil, err
	}
	return all, distinct(all)
}

// BaseImage returns the reference of the image that the others are made from.
func BaseImage() (string, error) {
	tag, err := hash(embedded, base)
	return baseImage + ":" + tag, err
}

// loadAll loads each folder of files that has an environment.json, by name. common
// has the base and the harness.
func loadAll(files, common fs.FS) ([]Environment, error) {
	found, err := fs.Glob(files, "*/environment.json")
	if err != nil {
		return nil, err
	}
	var all []Environment
	for _, name := range found {
		e, err := load(files, common, path.Dir(name))
		if err != nil {
			return nil, err
		}
		all = append(all, e)
	}
	return all, nil
}

func load(files, common fs.FS, name string) (Environment, error) {
	e, err := parse(files, name)
	if err != nil {
		return e, fmt.Errorf("environment %s: %w", name, err)
	}
	if e.ImageOf == "" {
		own, err := hashOf(files, name)
		if err != nil {
			return e, fmt.Errorf("environment %s: %w", name, err)
		}
		shared, err := hashOf(common, base, harness, supervisor)
		if err != nil {
			return e, fmt.Errorf("environment %s: %w", name, err)
		}
		e.Image += ":" + digest(append(own, shared...))
	}
	e.Packages, err = packages(files, name, e.PackageLock)
	if err != nil {
		return e, fmt.Errorf("environment %s: %w", name, err)
	}
	return e, nil
}

// shareImages gives those that have another's image its reference.
func shareImages(all []Environment) error {
	for i := range all {
		e := &all[i]
		if e.ImageOf == "" {
			continue
		}
		of := slices.IndexFunc(all, func(o Environment) bool { return o.Name == e.ImageOf && o.ImageOf == "" })
		if of < 0 {
			return fmt.Errorf("environment %s: image_of: there is no environment %q with an image", e.Name, e.ImageOf)
		}
		e.Image = all[of].Image
	}
	return nil
}

// distinct refuses two environments of one name, or that answer to one name of a
// language or one media type: which is meant must be clear.
func distinct(all []Environment) error {
	var errs []error
	owners := map[string]string{}
	own := func(e Environment, kind, name string) {
		key := kind + " " + strings.ToLower(name)
		if of, taken := owners[key]; taken {
			errs = append(errs, fmt.Errorf("environment %s: %s %q is %s's already", e.Name, kind, name, of))
		}
		owners[key] = e.Name
	}
	for _, e := range all {
		own(e, "name", e.Name)
		for _, name := range append([]string{e.Language}, e.Aliases...) {
			own(e, "language", name)
		}
		for _, name := range e.MediaTypes {
			own(e, "media type", name)
		}
	}
	return errors.Join(errs...)
}
