package intake

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

// workspacePrefix names the folders in the Intake's own that are ours to remove.
const workspacePrefix = "request-"

// SpoolMemory is how many bytes of a text are kept in memory while the rest is
// still on its way; a client that sends slowly holds no more. Most code fits.
const SpoolMemory = 64 << 10

// ErrWorkspace marks a failure of our own disk, as against one of the client's
// body that was to be written to it.
var ErrWorkspace = errors.New("workspace")

// Workspace is a folder for the files of one request. It exists from the first
// file on, until Remove. It takes one of the Intake's places, which the request
// keeps until Leave.
type Workspace struct {
	parent string
	Owner  string                           // of the request
	enter  func() (leave func(), err error) // nil: it takes no place
	log    *slog.Logger

	mu    sync.Mutex
	left  func() // gives the place back; nil if there is none
	dir   string
	files int
}

// Clear removes the files of a request, and gives its place back.
func (w *Workspace) Clear(ctx context.Context) {
	w.Leave()
	if err := w.Remove(); err != nil {
		w.log.ErrorContext(ctx, "a request's temporary folder is left", "error", err)
	}
}

// Take takes the request's place, if it has none.
func (w *Workspace) Take() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.takeLocked()
}

func (w *Workspace) takeLocked() (err error) {
	if w.left == nil && w.enter != nil {
		w.left, err = w.enter()
	}
	return err
}

// Leave gives the place back. It may be called again, and the files stay.
func (w *Workspace) Leave() {
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

// Create opens a new file. Its name is a number: no name from a request ever
// reaches the host's file system.
func (w *Workspace) Create() (*os.File, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.dir == "" {
		if err := w.takeLocked(); err != nil {
			return nil, err
		}
		dir, err := os.MkdirTemp(w.parent, workspacePrefix)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrWorkspace, err)
		}
		w.dir = dir
	}
	w.files++
	name := filepath.Join(w.dir, strconv.Itoa(w.files))
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrWorkspace, err)
	}
	return f, nil
}

// Remove deletes the folder with all that is in it.
func (w *Workspace) Remove() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.dir == "" {
		return nil
	}
	return os.RemoveAll(w.dir)
}

// Save streams r into a new file.
func (w *Workspace) Save(r io.Reader) (path string, size int64, err error) {
	f, err := w.Create()
	if err != nil {
		return "", 0, err
	}
	size, err = io.Copy(workspaceWriter{f}, r)
	if closed := f.Close(); err == nil && closed != nil {
		err = fmt.Errorf("%w: %w", ErrWorkspace, closed)
	}
	return f.Name(), size, err
}

// workspaceWriter marks errors of writing; those of reading are the client's.
type workspaceWriter struct{ w io.Writer }

func (w workspaceWriter) Write(p []byte) (int, error) {
	n, err := w.w.Write(p)
	if err != nil {
		err = fmt.Errorf("%w: %w", ErrWorkspace, err)
	}
	return n, err
}

// Spool is a text: in memory while it is small, else in a file.
type Spool struct {
	small []byte
	path  string
	Size  int64
}

// Spool reads r to its end.
func (w *Workspace) Spool(r io.Reader) (*Spool, error) {
	small, err := io.ReadAll(io.LimitReader(r, SpoolMemory))
	if err != nil || len(small) < SpoolMemory {
		return &Spool{small: small, Size: int64(len(small))}, err
	}
	path, size, err := w.Save(io.MultiReader(bytes.NewReader(small), r))
	return &Spool{path: path, Size: size}, err
}

// Bytes is the text.
func (s *Spool) Bytes() ([]byte, error) {
	if s.path == "" {
		return s.small, nil
	}
	return os.ReadFile(s.path)
}
