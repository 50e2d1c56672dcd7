package storage

import (
	"errors"
	"io"
	"os"
)

const (
	// replayMemory is what is kept of a content in memory; most files are smaller.
	replayMemory = 1 << 20
	// replayBytes is what is kept in all, on the disk. What is larger comes once: storing
	// it again would take longer than short outages last.
	replayBytes = 512 << 20
)

var errNotKept = errors.New("storage: the content cannot be read again")

// Replay returns content so that Put can begin anew with it after a short outage: what
// is read of it is kept, in memory and beyond that in a file of dir, which has no name
// and is gone with the process. It must be closed.
//
// A folder has no such outages, and memory none at all: there, nothing is kept.
func (s *Store) Replay(content io.Reader, dir string) io.ReadCloser {
	if s.cloud == nil {
		return io.NopCloser(content)
	}
	return &replay{from: content, dir: dir}
}

// replay is a stream that can be read again from its start. If the disk has no room
// for it, it goes on as one that cannot.
type replay struct {
	from   io.Reader
	dir    string
	err    error // from's last
	memory []byte
	file   *os.File // holds all that is kept, once memory does not
	kept   int64
	at     int64
	passed bool // more was read than is kept
}

func (r *replay) Read(p []byte) (int, error) {
	if r.at < r.kept {
		n, err := r.again(p[:min(int64(len(p)), r.kept-r.at)])
		r.at += int64(n)
		return n, err
	}
	if r.err != nil {
		return 0, r.err
	}
	n, err := r.from.Read(p)
	r.err = err
	if n > 0 && !r.passed {
		r.passed = !r.keep(p[:n])
	}
	r.at += int64(n)
	return n, err
}

func (r *replay) again(p []byte) (int, error) {
	if r.file != nil {
		return r.file.ReadAt(p, r.at)
	}
	return copy(p, r.memory[r.at:]), nil
}

func (r *replay) keep(p []byte) bool {
	switch {
	case r.kept+int64(len(p)) > replayBytes:
		return false
	case r.file == nil && len(r.memory)+len(p) <= replayMemory:
		r.memory = append(r.memory, p...)
	case r.file == nil && !r.spill():
		return false
	default:
		if _, err := r.file.WriteAt(p, r.kept); err != nil {
			return false
		}
	}
	r.kept += int64(len(p))
	return true
}

// spill moves what is in memory to a file.
func (r *replay) spill() bool {
	file, err := os.CreateTemp(r.dir, "replay-")
	if err != nil {
		return false
	}
	if os.Remove(file.Name()) != nil {
		_ = file.Close()
		return false
	}
	if _, err := file.Write(r.memory); err != nil {
		_ = file.Close()
		return false
	}
	r.file, r.memory = file, nil
	return true
}

// Seek goes to the start, or tells where it stands.
func (r *replay) Seek(offset int64, whence int) (int64, error) {
	switch {
	case offset == 0 && whence == io.SeekCurrent:
		return r.at, nil
	case offset == 0 && whence == io.SeekStart && !r.passed:
		r.at = 0
		return 0, nil
	}
	return 0, errNotKept
}

func (r *replay) Close() error {
	r.memory = nil
	if r.file == nil {
		return nil
	}
	return r.file.Close()
}
