package environments

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"path"
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

// modules are what goes into an image of the harness: its programs and its package.
var modules = []string{harness + "/*.py", harness + "/harness/*.py", harness + "/harness/*/*.py"}

// hashOf lists the files that go into an image, with the hash of each. Folders in a folder
// do not: they are tests. Of the harness it is the modules.
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
	if folder == harness {
		for _, pattern := range modules {
			found, err := fs.Glob(files, pattern)
			if err != nil {
				return nil, err
			}
			if len(found) == 0 { // Glob passes over what it cannot read
				return nil, fmt.Errorf("%s: %w", pattern, fs.ErrNotExist)
			}
			names = append(names, found...)
		}
		return names, nil
	}
	entries, err := fs.ReadDir(files, folder)
	for _, entry := range entries {
		if !entry.IsDir() {
			names = append(names, path.Join(folder, entry.Name()))
		}
	}
	return names, err
}
