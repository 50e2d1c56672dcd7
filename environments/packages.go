package environments

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// PackageNames are those of the environment's packages.
func (e *Environment) PackageNames() (names []string) {
	for _, p := range e.Packages {
		names = append(names, p.Name)
	}
	return names
}

// Package is one installed library.
type Package struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// packages reads the versions of what was asked for, and not of what that needs in turn.
// A lock is one of pip's requirements files, with what is asked for in its neighbour with
// the ending .in, or npm's package-lock.json, which has both.
func packages(files fs.FS, folder, lock string) ([]Package, error) {
	switch {
	case lock == "":
		return nil, nil
	case path.Ext(lock) == ".json":
		return npmPackages(files, path.Join(folder, lock))
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

// npmPackages reads the direct dependencies of a package-lock.json, lockfileVersion 2 or
// 3 (npm's documentation, "package-lock.json").
func npmPackages(files fs.FS, name string) ([]Package, error) {
	raw, err := fs.ReadFile(files, name)
	if err != nil {
		return nil, err
	}
	var lock struct {
		Packages map[string]struct {
			Version      string            `json:"version"`
			Dependencies map[string]string `json:"dependencies"`
		} `json:"packages"`
	}
	if err := json.Unmarshal(raw, &lock); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	var out []Package
	for wanted := range lock.Packages[""].Dependencies {
		p, ok := lock.Packages["node_modules/"+wanted]
		if !ok {
			return nil, fmt.Errorf("%s is not in %s", wanted, path.Base(name))
		}
		out = append(out, Package{wanted, p.Version})
	}
	slices.SortFunc(out, func(a, b Package) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}
