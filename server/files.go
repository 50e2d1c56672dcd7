package server

import (
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/labstack/echo/v4"

	"notebox/storage"
)

// filesPrefix is where stored files are served; storage.Link writes it too.
const filesPrefix = "/v1/files/"

// filePolicy keeps what is served from acting as a page of this service, also
// where a browser shows it: no script, no form, no request to anywhere.
const filePolicy = "sandbox; default-src 'none'"

// serveFile answers GET /v1/files/…: the signature in the URL is the permission.
func (s *Server) serveFile(c echo.Context) error {
	r, h := c.Request(), c.Response().Header()
	key, ok := fileKey(r.URL)
	if !ok {
		return notFound()
	}
	switch err := s.store.Verify(key, r.URL.Query()); {
	case errors.Is(err, storage.ErrExpired):
		return forbidden("this link has expired")
	case err != nil:
		return forbidden("this link is not valid: it was changed, or it is not of this service")
	}
	file, err := s.store.Get(r.Context(), key)
	if errors.Is(err, storage.ErrNotFound) {
		return notFound()
	}
	if err != nil {
		return unreadable(withoutKey(err, key))
	}
	defer file.Close()
	h.Set(echo.HeaderContentType, contentType(file.MediaType))
	h.Set(echo.HeaderContentDisposition, file.Disposition())
	h.Set(echo.HeaderContentSecurityPolicy, filePolicy)
	h.Set("Cross-Origin-Resource-Policy", "cross-origin") // images are shown in chats
	h.Set(echo.HeaderCacheControl, "private, max-age=3600")
	if file.ETag != "" {
		h.Set("ETag", file.ETag)
	}
	w := &lateHeader{ResponseWriter: c.Response()}
	content := &servedContent{Reader: file}
	http.ServeContent(w, r, "", file.ModTime, content)
	switch {
	case w.sent && content.err != nil: // the client notices by the length
		s.log.WarnContext(r.Context(), "a file was not sent in full", "error", content.err)
	case w.refused():
		for _, name := range []string{echo.HeaderContentDisposition, "ETag", echo.HeaderLastModified} {
			h.Del(name)
		}
		return &problem{status: w.status, text: "the Range header does not fit the file"}
	case content.err != nil:
		for _, name := range []string{echo.HeaderContentDisposition, "ETag", echo.HeaderLastModified, "Content-Range", "Accept-Ranges"} {
			h.Del(name)
		}
		return unreadable(content.err)
	default:
		w.send()
	}
	return nil
}

// unreadable is a store that does not give a file.
func unreadable(err error) error {
	if storage.Temporary(err) {
		return &problem{status: http.StatusServiceUnavailable, text: "the store of files does not answer", retryAfter: readyFor, cause: err}
	}
	return err
}

// servedContent remembers why http.ServeContent could not read on.
type servedContent struct {
	*storage.Reader
	err error
}

func (c *servedContent) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	if err != nil && err != io.EOF {
		c.err = err
	}
	return n, err
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

// contentType says for texts that they are UTF-8; browsers guess otherwise.
func contentType(mediaType string) string {
	if strings.HasPrefix(mediaType, "text/") || mediaType == "application/json" {
		return mediaType + "; charset=utf-8"
	}
	return mediaType
}

// fileKey reads the key from the path as it was sent. Each component is
// unescaped once and by itself: one that then holds a separator, or would lead
// elsewhere, is no component of a key.
func fileKey(u *url.URL) (string, bool) {
	escaped, ok := strings.CutPrefix(u.EscapedPath(), filesPrefix)
	if !ok {
		return "", false
	}
	parts := strings.Split(escaped, "/")
	for i, part := range parts {
		plain, err := url.PathUnescape(part)
		if err != nil || plain == "" || plain == "." || plain == ".." || strings.ContainsAny(plain, "/\\\x00") {
			return "", false
		}
		parts[i] = plain
	}
	return strings.Join(parts, "/"), true
}
