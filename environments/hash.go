package environments

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
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
		patterns := []string{folder + "/*"}
		if folder == harness {
			patterns = modules
		}
		for _, pattern := range patterns {
			names, err := fs.Glob(files, pattern)
			if err != nil {
				return nil, err
			}
			for _, name := range names {
				if info, err := fs.Stat(files, name); err != nil {
					return nil, err
				} else if info.IsDir() {
					continue
				}
				content, err := fs.ReadFile(files, name)
				if err != nil {
					return nil, err
				}
				out = fmt.Appendf(out, "%d %s %x\n", len(name), name, sha256.Sum256(content))
			}
		}
	}
	return out, nil
}
