package web

import (
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"sync"

	"github.com/labstack/echo/v4"

	"notebox/executor/intake"
)

// keptKey is where a request's *Kept is in its echo.Context.
const keptKey = "kept"

// Kept is a request's body that is kept while it is read, for the case that the request has
// to be sent on: 64 KiB of it in memory, the rest on disk. The zero value keeps nothing.
type Kept struct {
	mu      sync.Mutex
	of      io.ReadCloser
	backlog Backlog
	over    bool // nothing is kept any more
	again   bool // it is read for the second time
}

// Keep keeps the body of a request from now on, in work. It must be closed.
func Keep(c echo.Context, work *intake.Workspace) *Kept {
	r := c.Request()
	if r.Body == nil || r.Body == http.NoBody {
		return new(Kept)
	}
	k := &Kept{of: r.Body, backlog: Backlog{Work: work}}
	r = r.WithContext(r.Context())
	r.Body = &keeping{k}
	c.SetRequest(r)
	c.Set(keptKey, k)
	return k
}

// ForgetBody has nothing kept of a request's body any more: it is not sent on.
func ForgetBody(c echo.Context) {
	if k, ok := c.Get(keptKey).(*Kept); ok {
		k.Close()
	}
}

// Again is r with its body from the begin. The handler must have returned that has read it.
func (k *Kept) Again(r *http.Request) *http.Request {
	if k.of == nil {
		return r
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.again = true
	r = r.WithContext(r.Context())
	r.Body = &resent{kept: k}
	return r
}

// Close forgets what was kept. It may be called again.
func (k *Kept) Close() {
	if k.of == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.over {
		k.over = true
		_ = k.backlog.Close() // a folder that is left is swept at the next start
	}
}

// keeping is the body for its first reader.
type keeping struct{ kept *Kept }

func (b *keeping) Read(p []byte) (int, error) {
	n, err := b.kept.of.Read(p)
	k := b.kept
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.over || k.again {
		return n, err
	}
	k.backlog.Add(p[:n])
	if full := k.backlog.Full; full != nil { // memory is no place for it
		err = fmt.Errorf("%w: %w", intake.ErrWorkspace, full)
	}
	return n, err
}

func (b *keeping) Close() error { return nil } // net/http closes the request's own

// resent is the body for its second reader: what was kept, and then the rest.
type resent struct {
	kept   *Kept
	left   []byte
	closed bool // under kept.mu
}

func (b *resent) Read(p []byte) (n int, err error) {
	k := b.kept
	k.mu.Lock()
	defer k.mu.Unlock()
	if b.closed || k.over {
		return 0, fs.ErrClosed
	}
	if len(b.left) == 0 {
		if b.left, err = k.backlog.Next(); err != nil {
			return 0, fmt.Errorf("%w: %w", intake.ErrWorkspace, err)
		}
	}
	if len(b.left) == 0 {
		return k.of.Read(p)
	}
	n = copy(p, b.left)
	b.left = b.left[n:]
	return n, nil
}

// Close implements io.Closer. It waits for a Read, as net/http's own body does.
func (b *resent) Close() error {
	b.kept.mu.Lock()
	defer b.kept.mu.Unlock()
	b.closed = true
	return nil
}
