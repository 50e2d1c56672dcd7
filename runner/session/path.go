package session

import (
	"path"
	"strings"
	"unicode/utf8"

	"notebox/runner"
)

const (
	// maxName of a file or folder, bytes: the kernel's NAME_MAX.
	maxName = 255
	// maxPath of a file, bytes: the kernel's PATH_MAX.
	maxPath = 4096
)

// cleanPath returns the one way to write a path within /mnt/data, relative to that, ""
// for the folder itself. It takes relative paths and those that begin with /mnt/data.
func cleanPath(p string) (string, *runner.FileError) {
	refused := func(why string) (string, *runner.FileError) {
		return "", &runner.FileError{Code: runner.FileRefused, Path: p, Message: why}
	}
	switch {
	case len(p) > len(runner.DataFolder)+1+maxPath:
		return refused("the path is too long")
	case !utf8.ValidString(p):
		return refused("the path is not UTF-8")
	case strings.ContainsRune(p, 0):
		return refused("the path has a zero byte")
	}
	for name := range strings.SplitSeq(p, "/") {
		switch {
		case name == "..":
			return refused("the path has a component ..")
		case len(name) > maxName:
			return refused("a name in the path is too long")
		}
	}
	rest := p
	if strings.HasPrefix(p, "/") {
		below, ok := strings.CutPrefix(path.Clean(p)+"/", runner.DataFolder+"/")
		if !ok {
			return refused("the path is not below " + runner.DataFolder)
		}
		rest = below
	}
	clean := strings.TrimPrefix(path.Clean("/"+rest), "/")
	if len(clean) > maxPath {
		return refused("the path is too long")
	}
	return clean, nil
}

// cleanFile is cleanPath of a file or folder in /mnt/data, not of that itself.
func cleanFile(p string) (string, *runner.FileError) {
	clean, err := cleanPath(p)
	if err == nil && clean == "" {
		err = &runner.FileError{Code: runner.FileRefused, Path: p, Message: "the path is that of no file"}
	}
	return clean, err
}
