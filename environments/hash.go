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

// hashOf lists the files that go into an image, with the hash of each. Folders in a folder
// do not: they are tests. Of the harness it is the modules.
func hashOf(files fs.FS, folders ...string) ([]byte, error) {
	var out []byte
	for _, folder := range folders {
		entries, err := fs.ReadDir(files, folder)
		if err != nil {
			return nil, err
		}
		for _, entry := range entries {
			name := path.Join(folder, entry.Name())
			if entry.IsDir() || folder == harness && path.Ext(name) != ".py" {
				continue
			}
			content, err := fs.ReadFile(files, name)
			if err != nil {
				return nil, err
			}
			out = fmt.Appendf(out, "%d %s %x\n", len(name), name, sha256.Sum256(content))
		}
	}
	return out, nil
}
