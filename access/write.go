package access

import (
	"errors"
	"os"
	"path/filepath"
)

// writeFile writes a file of mode 0600 so that a reader finds the old one or the
// whole new one, also after a crash.
func writeFile(path string, content []byte) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*") // of mode 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	_, err = f.Write(content)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err = keepOwner(path, f.Name()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
