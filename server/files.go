package server

import (
	"errors"
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
		return withoutKey(err, key)
	}
	defer file.Close()
	h.Set(echo.HeaderContentType, contentType(file.MediaType))
	h.Set(echo.HeaderContentDisposition, file.Disposition())
	h.Set(echo.HeaderContentSecurityPolicy, filePolicy)
	h.Set("Cross-Origin-Resource-Policy", "cross-origin") // images are shown in chats
	h.Set(echo.HeaderCacheControl, "private, max-age=3600")
	h.Set("ETag", file.ETag)
	w := &refusable{ResponseWriter: c.Response()}
	http.ServeContent(w, r, "", file.ModTime, file)
	if w.refused != 0 {
		h.Del(echo.HeaderContentDisposition)
		return &problem{status: w.refused, text: "the Range header does not fit the file"}
	}
	return nil
}

// refusable holds back http.ServeContent's own errors, which are plain text.
type refusable struct {
	http.ResponseWriter
	refused int
}

func (w *refusable) WriteHeader(status int) {
	if status >= http.StatusBadRequest && status != http.StatusPreconditionFailed {
		w.refused = status
		return
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *refusable) Write(p []byte) (int, error) {
	if w.refused != 0 {
		return len(p), nil
	}
	return w.ResponseWriter.Write(p)
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
