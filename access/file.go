package access

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"
)

const (
	// watchEvery is how often the keys file is looked at. A change counts when it has
	// stood still from one look to the next, so that a file that is being written is
	// not read in half: two to three seconds after the last write.
	watchEvery = time.Second
	// othersMayRead and othersMayWrite are the bits of a file's mode that say so.
	othersMayRead  = 0o044
	othersMayWrite = 0o022
	anybodyWrites  = 0o002
	groupMayRead   = 0o040
)

// file is a keys file that is followed.
type file struct {
	path   string
	taken  os.FileInfo // when it was read; nil: it is to be read again
	still  os.FileInfo // at the last look
	digest [sha256.Size]byte
	ill    string // what the last look found wrong; "" where all is well
	unkept bool   // the ledger could not be written
}

// Open returns the Keys of a file; Watch follows it. A file without a key is an
// error, unless o.Await, and so is one that anybody may write to.
func Open(path string, o Options) (*Keys, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("API keys: %w", err)
	}
	if o.Await {
		if err := create(path); err != nil {
			return nil, fmt.Errorf("API keys: %s: %w", path, withoutPath(err))
		}
	}
	entries, digest, mode, err := readFile(path)
	if err != nil && !(o.Await && errors.Is(err, ErrNoKey)) {
		return nil, fmt.Errorf("API keys: %s: %w", path, err)
	}
	k, err := New(entries, o)
	if err != nil {
		return nil, err
	}
	// taken stays nil: a change at this very moment may not show in the file's times.
	k.file = &file{path: path, digest: digest}
	k.warnOfMode(mode)
	return k, nil
}

// create makes an empty file if there is none. The service owns the file, and keeps it when root's
// notebox key replaces it. A file that is there is not opened: it may be read-only.
func create(path string) error {
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

func readFile(path string) (entries []Entry, digest [sha256.Size]byte, mode os.FileMode, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, digest, 0, withoutPath(err)
	}
	mode = info.Mode()
	if isOthers(info) {
		mode &^= groupMayRead // as this process does, of a file that a cluster mounts for it
	}
	if !mode.IsRegular() { // a FIFO would be waited for, a device has no end
		return nil, digest, mode, errors.New("it is not a regular file")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, digest, mode, withoutPath(err)
	}
	defer f.Close()
	if runtime.GOOS != "windows" && mode&anybodyWrites != 0 {
		return nil, digest, mode, errors.New("anybody may write to it; make it of mode 0600")
	}
	raw, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, digest, mode, withoutPath(err)
	}
	entries, err = Parse(bytes.NewReader(raw))
	return entries, sha256.Sum256(raw), mode, err
}

// withoutPath is what an operation on a file met; who reports it names the file.
func withoutPath(err error) error {
	if e := (*os.PathError)(nil); errors.As(err, &e) {
		return e.Err
	}
	return err
}

func (k *Keys) warnOfMode(mode os.FileMode) {
	if runtime.GOOS != "windows" && mode&(othersMayRead|othersMayWrite) != 0 {
		k.log.Warn("the API keys file may be read or written by others; make it of mode 0600", "file", k.file.path, "mode", fmt.Sprintf("%#o", mode.Perm()))
	}
}

// Watch follows the file, writes what the day has used, and speaks to the Store, until ctx ends.
func (k *Keys) Watch(ctx context.Context) {
	var counting sync.WaitGroup
	defer counting.Wait()
	counting.Go(func() { k.counter.watch(ctx) })
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		k.look()
		k.keep()
	}
}

// look reads the file if it was changed and stands still. It is what Watch does,
// and not for two at one time.
func (k *Keys) look() {
	f := k.file
	if f == nil {
		return
	}
	now, err := os.Stat(f.path)
	if err != nil {
		f.taken, f.still = nil, nil
		k.illness(withoutPath(err))
		return
	}
	if f.taken != nil && same(f.taken, now) {
		return
	}
	if f.still == nil || !same(f.still, now) {
		f.still = now
		return
	}
	entries, digest, mode, err := readFile(f.path)
	if after, e := os.Stat(f.path); e != nil || !same(now, after) {
		f.still = nil // it is being written: at the next look
		return
	}
	f.taken = now
	if errors.Is(err, ErrNoKey) && k.Len() == 0 {
		return
	}
	if err != nil {
		k.illness(err)
		return
	}
	recovered := f.ill != ""
	f.ill = ""
	if digest == f.digest && !recovered {
		return
	}
	f.digest = digest
	k.set(entries)
	k.log.Info("API keys are read again", "file", f.path, "callers", len(entries))
	k.warnOfMode(mode)
}

// illness logs what is wrong with the file, once.
func (k *Keys) illness(err error) {
	if k.file.ill == err.Error() {
		return
	}
	k.file.ill = err.Error()
	k.log.Error("the API keys file is not taken; the keys from before stay", "file", k.file.path, "error", err)
}

// keep writes the ledger, and logs once if that does not work.
func (k *Keys) keep() {
	err := k.counter.save()
	if err != nil && (k.file == nil || !k.file.unkept) {
		k.log.Error("the CPU time that API keys have used today is not kept", "error", err)
	}
	if k.file != nil {
		k.file.unkept = err != nil
	}
}

// same reports whether a file is the one that it was: editors replace it (another
// inode), or write to it (another time, and mostly another size).
func same(a, b os.FileInfo) bool {
	return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size() && a.Mode() == b.Mode()
}
