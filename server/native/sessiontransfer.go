package native

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"path"

	"github.com/labstack/echo/v4"

	"notebox/executor"
	"notebox/executor/problem"
	"notebox/runner"
	"notebox/server/body"
	"notebox/server/web"
	"notebox/storage"
)

// readSmall reads a body of a few bytes.
func readSmall(r *http.Request, most int64) ([]byte, error) {
	if r.ContentLength > most {
		return nil, problem.TooLarge("", "the body is larger than %d bytes", most)
	}
	raw, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, most))
	if err != nil {
		return nil, body.Problem(err, body.NotWhole)
	}
	if len(raw) == 0 {
		return nil, body.Empty()
	}
	return raw, nil
}

// readSessionFile answers GET and HEAD /v1/sessions/{id}/files/{path}.
func (s *handler) readSessionFile(c echo.Context) error {
	return s.withFiles(c, func(ctx context.Context, session *executor.Session) error {
		r := c.Request()
		name, ok := sessionPathOf(r.URL, c.Param("id"))
		if !ok {
			return problem.NotFound()
		}
		file, err := session.ReadFile(ctx, name)
		if err != nil {
			return err
		}
		defer file.Close()
		web.Direct(c)
		describeSessionFile(c.Response().Header(), file)
		c.Response().WriteHeader(http.StatusOK)
		if r.Method == http.MethodHead {
			return nil
		}
		if _, err := io.CopyN(c.Response(), file, file.Size); err != nil { // the client notices by the length
			if unsent := (*web.UnsentError)(nil); errors.As(err, &unsent) {
				return err
			}
			s.Log.LogAttrs(r.Context(), slog.LevelInfo, "a session's file was not sent in full", append(web.Who(c), slog.Any("error", err))...)
		}
		return nil
	})
}

// describeSessionFile says what a file is, and that it is no page of this service.
func describeSessionFile(h http.Header, file *executor.SessionFile) {
	name := path.Base(file.Path)
	h.Set(echo.HeaderContentType, web.ContentType(file.MediaType))
	h.Set(echo.HeaderContentDisposition, storage.Object{Name: name}.Disposition()) // of no type: a download
	h.Set(echo.HeaderContentSecurityPolicy, web.FilePolicy)
	h.Set(echo.HeaderCacheControl, "no-store")
	h.Set(echo.HeaderContentLength, fmt.Sprint(file.Size))
	h.Set(echo.HeaderLastModified, executor.ModifiedAt(file.FileInfo).Format(http.TimeFormat))
}

// writeSessionFile answers PUT /v1/sessions/{id}/files/{path}: the body, of whatever
// type, is the content. A body that is not whole leaves nothing.
func (s *handler) writeSessionFile(c echo.Context) error {
	return s.withFiles(c, func(ctx context.Context, session *executor.Session) error {
		r := c.Request()
		if _, _, err := body.TypeOf(r); err != nil { // of an encoding
			return err
		}
		name, ok := sessionPathOf(r.URL, c.Param("id"))
		if !ok {
			return problem.Malformed("path", "is no path within %s/", runner.DataFolder)
		}
		if _, why := executor.CleanName(name); why != "" {
			return problem.Malformed("path", "%s", why)
		}
		most := session.MaxFile()
		if r.ContentLength > most {
			return problem.TooLarge("", "the body is larger than %d bytes", most)
		}
		whole := &executor.WatchedReader{Reader: http.MaxBytesReader(nil, r.Body, most)}
		written, isNew, err := session.WriteFile(ctx, name, whole)
		switch {
		case whole.Failed != nil:
			return body.Problem(whole.Failed, body.NotWhole)
		case err != nil:
			return err
		case isNew:
			return web.Fresh(c, http.StatusCreated, written)
		}
		return web.Fresh(c, http.StatusOK, written)
	})
}
