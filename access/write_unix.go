//go:build unix

package access

import (
	"errors"
	"os"
	"syscall"
)

// keepOwner gives a new file the user and group of the one that it replaces, if
// there is one: a keys file that root adds to must stay readable to the service.
func keepOwner(old, replacement string) error {
	was, err := os.Stat(old)
	if errors.Is(err, os.ErrNotExist) {
		return nil
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
