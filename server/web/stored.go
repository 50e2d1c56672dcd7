package web

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"notebox/executor"
	"notebox/executor/problem"
	"notebox/storage"
	"strings"
	"sync"
	"time"

	"github.com/labstack/echo/v4"
)

// FilePolicy keeps what is served from acting as a page of this service, also
// where a browser shows it: no script, no form, no request to anywhere.
const FilePolicy = "sandbox; default-src 'none'"

// MaxRanges of one request are answered, each of which is a request to a cloud's store:
// readers of documents ask for a few. Of more, the whole file is the answer, as
// RFC 9110, section 14.2 lets it be.
const MaxRanges = 16

// ServeStored answers with the object key, if the request's signature is one for it.
func (k *Kit) ServeStored(c echo.Context, key string) error {
	r := c.Request()
	switch err := k.Store.Verify(key, r.URL.Query()); {
	case errors.Is(err, storage.ErrExpired):
		return problem.Forbidden("this link has expired")
	case err != nil:
		return problem.Forbidden("this link is not valid: it was changed, or it is not of this service")
	}
	k.Known(r.Context())
	return k.SendStored(c, key, "private, max-age=3600")
}

// SendStored answers with the object key, to who may have it. cache is how long.
func (k *Kit) SendStored(c echo.Context, key, cache string) error {
	r, h := c.Request(), c.Response().Header()
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	after := k.Pace.Stall
	stall := time.AfterFunc(after, func() { cancel(executor.ErrStalled) })
	file, err := k.Store.Get(ctx, key)
	stall.Stop()
	if errors.Is(err, storage.ErrNotFound) {
		return problem.NotFound()
	}
	if err != nil {
		return unreadable(ctx, executor.WithoutKey(err, key))
	}
	content := &servedContent{file: file, stall: stall, after: after}
	defer content.Close()
	if strings.Count(r.Header.Get("Range"), ",") >= MaxRanges {
		r.Header.Del("Range")
	}
	describe(h, file)
	h.Set(echo.HeaderCacheControl, cache)
	w := &lateHeader{ResponseWriter: c.Response()}
	http.ServeContent(w, r, "", file.ModTime, content)
	unread := content.failure()
	switch {
	case w.sent && unread != nil: // the client notices by the length
		k.Log.WarnContext(r.Context(), "a file was not sent in full", "error", unread)
	case w.refused():
		for _, name := range []string{echo.HeaderContentDisposition, "ETag", echo.HeaderLastModified} {
			h.Del(name)
		}
		return &problem.Error{Status: problem.Status(w.status), Text: "the Range header does not fit the file"}
	case unread != nil:
		for _, name := range []string{echo.HeaderContentDisposition, "ETag", echo.HeaderLastModified, "Content-Range", "Accept-Ranges"} {
			h.Del(name)
		}
		return unreadable(ctx, unread)
	default:
		w.send()
	}
	return nil
}

// describe says what a file is, and that it is no page of this service.
func describe(h http.Header, file *storage.Reader) {
	h.Set(echo.HeaderContentType, ContentType(file.MediaType))
	h.Set(echo.HeaderContentDisposition, file.Disposition())
	h.Set(echo.HeaderContentSecurityPolicy, FilePolicy)
	h.Set("Cross-Origin-Resource-Policy", "cross-origin") // images are shown in chats
	if file.ETag != "" {
		h.Set("ETag", file.ETag)
	}
}

// unreadable is a store that does not give a file.
func unreadable(ctx context.Context, err error) error {
	if storage.Temporary(err) || errors.Is(context.Cause(ctx), executor.ErrStalled) {
		return &problem.Error{Status: http.StatusServiceUnavailable, Text: "the store of files does not answer", RetryAfter: storeRetry, Cause: err}
	}
	return err
}

// servedContent remembers why http.ServeContent could not read on. If it sends several
// ranges, it reads in a goroutine that it does not wait for when the client has left.
type servedContent struct {
	file  io.ReadSeekCloser
	stall *time.Timer // it goes while the store is read
	after time.Duration

	mu     sync.Mutex
	closed bool
	err    error
}

func (c *servedContent) Read(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return 0, fs.ErrClosed
	}
	c.stall.Reset(c.after)
	n, err := c.file.Read(p)
	c.stall.Stop()
	if err != nil && err != io.EOF {
		c.err = err
	}
	return n, err
}

func (c *servedContent) Seek(offset int64, whence int) (int64, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return 0, fs.ErrClosed
	}
	return c.file.Seek(offset, whence)
}

// Close waits for the Read that goes on; those after it fail.
func (c *servedContent) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	return c.file.Close()
}

func (c *servedContent) failure() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// lateHeader sends the header with the first bytes of the body, so that a file that
// cannot be read is an error and not an empty 200, and keeps http.ServeContent's own
// errors, which are plain text, to itself.
type lateHeader struct {
	http.ResponseWriter
	status int
	sent   bool
}

func (w *lateHeader) refused() bool {
	return w.status >= http.StatusBadRequest && w.status != http.StatusPreconditionFailed
}

func (w *lateHeader) WriteHeader(status int) { w.status = status }

func (w *lateHeader) Write(p []byte) (int, error) {
	if w.refused() {
		return len(p), nil
	}
	w.send()
	return w.ResponseWriter.Write(p)
}

func (w *lateHeader) send() {
	if !w.sent {
		w.sent = true
		w.ResponseWriter.WriteHeader(w.status)
	}
}

// ContentType says for texts that they are UTF-8; browsers guess otherwise.
func ContentType(mediaType string) string {
	if strings.HasPrefix(mediaType, "text/") || mediaType == "application/json" {
		return mediaType + "; charset=utf-8"
	}
	return mediaType
}

// PathAfter returns the components of a path below a prefix, unescaped.
func PathAfter(u *url.URL, prefix string) ([]string, bool) {
	escaped, ok := strings.CutPrefix(u.EscapedPath(), prefix)
	if !ok {
		return nil, false
	}
	parts := strings.Split(escaped, "/")
	for i, part := range parts {
		plain, err := url.PathUnescape(part)
		if err != nil || !executor.IsComponent(plain) {
			return nil, false
		}
		parts[i] = plain
	}
	return parts, true
}

// storeRetry is when to come back where the store does not answer.
const storeRetry = 2 * time.Second
