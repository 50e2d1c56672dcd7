package native

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/labstack/echo/v4"

	"notebox/executor/problem"
	"notebox/server/web"
)

// FilesPrefix is where stored files are served; storage.Link writes it too.
const FilesPrefix = "/v1/files/"

// serveFile answers GET /v1/files/…: the signature in the URL is the permission.
func (s *handler) serveFile(c echo.Context) error {
	key, ok := fileKey(c.Request().URL)
	if !ok {
		return problem.NotFound()
	}
	return s.ServeStored(c, key)
}

// fileKey reads the key from the path as it was sent. Each component is
// unescaped once and by itself: one that then holds a separator, or would lead
// elsewhere, is no component of a key.
func fileKey(u *url.URL) (string, bool) {
	parts, ok := web.PathAfter(u, FilesPrefix)
	key := strings.Join(parts, "/")
	return key, ok && !strings.Contains(key, `\`)
}

// dropInput answers DELETE /v1/files/{id}.
func (s *handler) dropInput(c echo.Context) error {
	ctx, owner, id := c.Request().Context(), web.Owner(c), c.Param("*")
	switch found, err := s.Executor.Drop(ctx, owner, id); {
	case err != nil:
		return err
	case !found:
		return problem.NotFound()
	}
	return c.NoContent(http.StatusNoContent)
}
