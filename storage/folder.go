package storage

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"syscall"
)

// errSwept says that a sweep removed a temporary file before its writer had locked it.
var errSwept = errors.New("temporary file was swept away")

// folderTemporary is how fileblob ends the name of a file that is being written.
// validKey lets no object end in ".tmp".
var folderTemporary = regexp.MustCompile(`\.[0-9a-f]{16}\.tmp$`)

// folder is what a file:// store needs beyond the portable API: contents that are on
// the disk before they are visible, and nothing left by writers that died.
type folder struct {
	path string
}

// temporary is the file that a Put writes, until it is renamed. Its lock, which ends
// with the process, is on a descriptor of its own: fileblob closes the other before
// it renames.
type temporary struct {
	file *os.File
}

// hold locks the file that fileblob has just made. as is that of BeforeWrite.
func (t *temporary) hold(as func(any) bool) error {
	var made *os.File
	if !as(&made) {
		return errors.New("fileblob did not give its file")
	}
	file, err := os.Open(made.Name())
	if errors.Is(err, fs.ErrNotExist) {
		return errSwept
	}
	if err != nil {
		return err
	}
	// If a file system has no locks, a sweep gets none either and removes nothing.
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) || unlinked(file) {
		_ = file.Close()
		return errSwept
	}
	t.file = file
	return nil
}

// sync puts the content on the disk before it gets its name. Without that, a power cut
// soon after can leave an object of the right name with nothing in it. The folder is not
// synced after the rename: it would cost as much again, and a link that leads nowhere
// after a power cut does no harm, where one that leads to half a file would.
func (t *temporary) sync() error {
	if t.file == nil {
		return nil
	}
	return t.file.Sync()
}

// name gives the content of t the name of key, if no file has it: see putNewFile.
func (f *folder) name(t *temporary, key string) error {
	if err := t.sync(); err != nil {
		return err
	}
	err := os.Link(t.file.Name(), filepath.Join(f.path, filepath.FromSlash(key)))
	if errors.Is(err, fs.ErrExist) {
		return ErrExists
	}
	return err
}

func (t *temporary) release() {
	if t.file != nil {
		_ = t.file.Close()
	}
}

// sweep removes the temporary files that no living process holds. It looks at nothing
// outside the folders that this package makes: people point a store at folders that
// hold other things too. What it cannot read or remove, the next sweep meets again.
func (f *folder) sweep(ctx context.Context) {
	for _, ours := range []string{runsPrefix, inputsPrefix, recordsPrefix} {
		_ = filepath.WalkDir(filepath.Join(f.path, ours), func(path string, entry fs.DirEntry, err error) error {
			if ctx.Err() != nil {
				return fs.SkipAll
			}
			if err == nil && entry.Type().IsRegular() && folderTemporary.MatchString(entry.Name()) {
				removeUnlocked(path)
			}
			return nil
		})
	}
}

// list calls yield for each object below the folder that key names. It is not
// bucket.List, which walks the whole tree for each page and fails where a file is removed
// meanwhile.
func (f *folder) list(ctx context.Context, key string, yield func(key string) bool) error {
	dir, err := os.Open(filepath.Join(f.path, filepath.FromSlash(key)))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }()
	for {
		entries, err := dir.ReadDir(listPage)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		for _, entry := range entries {
			if err := ctx.Err(); err != nil {
				return err
			}
			below := key + "/" + entry.Name()
			switch {
			case entry.IsDir():
				if err := f.list(ctx, below, yield); err != nil {
					return err
				}
			case entry.Type().IsRegular() && validKey(below) && !yield(below):
				return errStopped
			}
		}
	}
}

// removeUnlocked removes the file at path if nobody holds its lock, and holds the lock
// itself while it does, so that a writer that comes now learns of it in hold.
func removeUnlocked(path string) {
	file, err := os.Open(path)
	if err != nil {
		return
	}
	defer func() { _ = file.Close() }()
	if syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		return
	}
	_ = os.Remove(path)
}

// unlinked reports whether no name is left for an open file.
func unlinked(file *os.File) bool {
	info, err := file.Stat()
	if err != nil {
		return true
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && stat.Nlink == 0
}
