//go:build unix

package access

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
)

// keepOwner gives a new file the user and group of the file that it replaces: a keys file that root
// changes must stay readable to the service. If there is no such file, root gives the new one to the
// owner of its folder, who is the service; other users may give nothing away.
func keepOwner(old, replacement string) error {
	was, err := os.Stat(old)
	if errors.Is(err, os.ErrNotExist) {
		if os.Geteuid() != 0 {
			return nil
		}
		was, err = os.Stat(filepath.Dir(old))
	}
	if err != nil {
		return err
	}
	is, err := os.Stat(replacement)
	if err != nil {
		return err
	}
	a, known := was.Sys().(*syscall.Stat_t)
	b, too := is.Sys().(*syscall.Stat_t)
	if !known || !too || a.Uid == b.Uid && a.Gid == b.Gid {
		return nil
	}
	return os.Chown(replacement, int(a.Uid), int(a.Gid))
}

// isOthers reports whether a file belongs to another user than this process's.
func isOthers(info os.FileInfo) bool {
	stat, known := info.Sys().(*syscall.Stat_t)
	return known && int(stat.Uid) != os.Geteuid()
}
