package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
)

// workspacePrefix names the folders in Config.TempDir that are ours to remove.
const workspacePrefix = "request-"

// spoolMemory is how many bytes of a text are kept in memory while the rest is
// still on its way; a client that sends slowly holds no more. Most code fits.
const spoolMemory = 64 << 10

// errWorkspace marks a failure of our own disk, as against one of the client's
// body that was to be written to it.
var errWorkspace = errors.New("workspace")

// workspace is a folder for the files of one request. It exists from the first
// file on, until remove. It takes one of Config.MaxIntake's places, which the request
// keeps until leave.
type workspace struct {
	parent string
	owner  string                           // of the request
	enter  func() (leave func(), err error) // nil: it takes no place
	log    *slog.Logger

	mu    sync.Mutex
	left  func() // gives the place back; nil if there is none
	dir   string
	files int
}

// Clear removes the files of a request, and gives its place back.
func (w *workspace) Clear(ctx context.Context) {
	w.leave()
	if err := w.remove(); err != nil {
		w.log.ErrorContext(ctx, "a request's temporary folder is left", "error", err)
	}
}

// take takes the request's place, if it has none.
func (w *workspace) take() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.takeLocked()
}

func (w *workspace) takeLocked() (err error) {
	if w.left == nil && w.enter != nil {
		w.left, err = w.enter()
	}
	return err
}

// leave gives the place back. It may be called again, and the files stay.
func (w *workspace) leave() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.left != nil {
		w.left()
		w.left = nil
	}
}

// sweepWorkspaces removes what an earlier process left in parent, and makes
// sure that parent exists.
func sweepWorkspaces(parent string) error {
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return err
	}
	entries, err := os.ReadDir(parent)
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), workspacePrefix) {
			errs = append(errs, os.RemoveAll(filepath.Join(parent, e.Name())))
		}
	}
	return errors.Join(errs...)
}

// create opens a new file. Its name is a number: no name from a request ever
// reaches the host's file system.
func (w *workspace) create() (*os.File, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.dir == "" {
		if err := w.takeLocked(); err != nil {
			return nil, err
		}
		dir, err := os.MkdirTemp(w.parent, workspacePrefix)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errWorkspace, err)
		}
		w.dir = dir
	}
	w.files++
	name := filepath.Join(w.dir, strconv.Itoa(w.files))
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errWorkspace, err)
	}
	return f, nil
}

// remove deletes the folder with all that is in it.
func (w *workspace) remove() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.dir == "" {
		return nil
	}
	return os.RemoveAll(w.dir)
}

// save streams r into a new file.
func (w *workspace) save(r io.Reader) (path string, size int64, err error) {
	f, err := w.create()
	if err != nil {
		return "", 0, err
	}
	size, err = io.Copy(workspaceWriter{f}, r)
	if closed := f.Close(); err == nil && closed != nil {
		err = fmt.Errorf("%w: %w", errWorkspace, closed)
	}
	return f.Name(), size, err
}

// workspaceWriter marks errors of writing; those of reading are the client's.
type workspaceWriter struct{ w io.Writer }

func (w workspaceWriter) Write(p []byte) (int, error) {
	n, err := w.w.Write(p)
	if err != nil {
		err = fmt.Errorf("%w: %w", errWorkspace, err)
	}
	return n, err
}

// spool is a text: in memory while it is small, else in a file.
type spool struct {
	small []byte
	path  string
	size  int64
}

// spool reads r to its end.
func (w *workspace) spool(r io.Reader) (*spool, error) {
	small, err := io.ReadAll(io.LimitReader(r, spoolMemory))
	if err != nil || len(small) < spoolMemory {
		return &spool{small: small, size: int64(len(small))}, err
	}
	path, size, err := w.save(io.MultiReader(bytes.NewReader(small), r))
	return &spool{path: path, size: size}, err
}

func (s *spool) bytes() ([]byte, error) {
	if s.path == "" {
		return s.small, nil
	}
	return os.ReadFile(s.path)
}
