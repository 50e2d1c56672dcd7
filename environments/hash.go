package environments

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// hash is over the names and contents of the files of the folders, cut to the 16 hex
// digits that a tag needs to be unique.
func hash(files fs.FS, folders ...string) (string, error) {
	content, err := hashOf(files, folders...)
	return digest(content), err
}

func digest(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])[:16]
}

// modules are what goes into an image of the harness and the supervisor: their programs and
// packages.
var modules = map[string][]string{
	harness:    {harness + "/*.py", harness + "/harness/*.py", harness + "/harness/*/*.py"},
	supervisor: {supervisor + "/*.go", supervisor + "/*/*.go"},
}

// hashOf lists the files that go into an image, with the hash of each. Folders in a folder
// do not: they are tests. Of the harness and the supervisor it is the modules.
func hashOf(files fs.FS, folders ...string) ([]byte, error) {
	var out []byte
	for _, folder := range folders {
		names, err := content(files, folder)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			raw, err := fs.ReadFile(files, name)
			if err != nil {
				return nil, err
			}
			out = fmt.Appendf(out, "%d %s %x\n", len(name), name, sha256.Sum256(raw))
		}
	}
	return out, nil
}

func content(files fs.FS, folder string) ([]string, error) {
	var names []string
	if patterns, own := modules[folder]; own {
		for _, pattern := range patterns {
			found, err := fs.Glob(files, pattern)
			if err != nil {
				return nil, err
			}
			if len(found) == 0 { // Glob passes over what it cannot read
				return nil, fmt.Errorf("%s: %w", pattern, fs.ErrNotExist)
			}
			names = append(names, found...)
		}
		return slices.DeleteFunc(names, func(name string) bool { return strings.HasSuffix(name, "_test.go") }), nil
	}
	entries, err := fs.ReadDir(files, folder)
	for _, entry := range entries {
		if !entry.IsDir() {
			names = append(names, path.Join(folder, entry.Name()))
		}
	}
	return names, err
}
