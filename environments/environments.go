// Package environments holds what sandboxes are made of: one folder per
// language, and the harness that runs in all of them.
//
// A folder has an environment.json (see Environment), a Dockerfile and its lock
// files. The folders are embedded in the program, so that it knows by itself
// which image belongs to it: an image's tag is the hash of its folder and of
// the harness, and changes exactly when something in them does.
package environments

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
)

// Default is the folder of the environment that a request gets which names no
// language.
const Default = "jupyter"

// harness is the folder that is part of every image.
const harness = "harness"

//go:embed jupyter harness/*.py
var embedded embed.FS

// Environment describes one folder. The JSON names are those of its
// environment.json.
type Environment struct {
	Name          string    `json:"-"`              // the folder's name
	Language      string    `json:"language"`       // what requests call it: "python"
	Aliases       []string  `json:"aliases"`        // other names for the language
	DisplayName   string    `json:"display_name"`   // for people, and the kernelspec's
	Kernel        string    `json:"kernel"`         // name of the Jupyter kernelspec
	Image         string    `json:"image"`          // repository in the file; with the tag after Load
	FileExtension string    `json:"file_extension"` // ".py"
	MediaTypes    []string  `json:"media_types"`    // of a request body that is the code
	WarmUp        []string  `json:"warm_up"`        // modules that waiting sandboxes have imported, the most wanted first
	PackageLock   string    `json:"packages"`       // file name of the lock that Packages is read from
	Notes         []string  `json:"notes"`          // what a user should know, a sentence each
	Packages      []Package `json:"-"`              // what was asked for, not what that needs in turn
}

// Package is one installed library.
type Package struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// Load returns the embedded environments, the default one first.
func Load() ([]Environment, error) {
	e, err := load(embedded, Default)
	if err != nil {
		return nil, err
	}
	return []Environment{e}, nil
}

func load(files fs.FS, name string) (Environment, error) {
	var e Environment
	raw, err := fs.ReadFile(files, path.Join(name, "environment.json"))
	if err != nil {
		return e, fmt.Errorf("environment %s: %w", name, err)
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&e); err != nil {
		return e, fmt.Errorf("environment %s: environment.json: %w", name, err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return e, fmt.Errorf("environment %s: environment.json: more than one value", name)
	}
	tag, err := hash(files, name, harness)
	if err != nil {
		return e, fmt.Errorf("environment %s: %w", name, err)
	}
	e.Name, e.Image = name, e.Image+":"+tag
	e.Packages, err = packages(files, name, e.PackageLock)
	if err != nil {
		return e, fmt.Errorf("environment %s: %w", name, err)
	}
	return e, nil
}

// hash is over the names and contents of all files below the folders, cut to
// the 16 hex digits that a tag needs to be unique.
func hash(files fs.FS, folders ...string) (string, error) {
	h := sha256.New()
	for _, folder := range folders {
		err := fs.WalkDir(files, folder, func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			content, err := fs.ReadFile(files, name)
			if err != nil {
				return err
			}
			fmt.Fprintf(h, "%d %s %d\n", len(name), name, len(content))
			h.Write(content)
			return nil
		})
		if err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(h.Sum(nil))[:16], nil
}

// packages reads the versions of the direct requirements: the names in
// <lock>'s neighbour with the ending .in, the versions in the lock itself,
// both in the format of pip's requirements files.
func packages(files fs.FS, folder, lock string) ([]Package, error) {
	if lock == "" {
		return nil, nil
	}
	locked, err := requirements(files, path.Join(folder, lock))
	if err != nil {
		return nil, err
	}
	direct, err := requirements(files, path.Join(folder, strings.TrimSuffix(lock, path.Ext(lock))+".in"))
	if err != nil {
		return nil, err
	}
	version := map[string]string{}
	for _, p := range locked {
		version[p.Name] = p.Version
	}
	var out []Package
	for _, p := range direct {
		v, ok := version[p.Name]
		if !ok {
			return nil, fmt.Errorf("%s is not in %s", p.Name, lock)
		}
		out = append(out, Package{p.Name, v})
	}
	return out, nil
}

// requirements reads the "name==version" or "name" at the start of each entry
// of a pip requirements file; names are normalised as in PEP 503.
func requirements(files fs.FS, name string) ([]Package, error) {
	raw, err := fs.ReadFile(files, name)
	if err != nil {
		return nil, err
	}
	var out []Package
	lines := bufio.NewScanner(bytes.NewReader(raw))
	for lines.Scan() {
		entry, _, _ := strings.Cut(lines.Text(), " ")
		entry = strings.TrimSuffix(strings.TrimSpace(entry), ";")
		if entry == "" || entry[0] == '#' || entry[0] == '-' {
			continue
		}
		name, version, _ := strings.Cut(entry, "==")
		name, _, _ = strings.Cut(name, "[")
		out = append(out, Package{strings.ToLower(strings.ReplaceAll(name, "_", "-")), version})
	}
	return out, lines.Err()
}
