package native

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/labstack/echo/v4"

	"notebox/executor"
	"notebox/executor/problem"
	"notebox/runner"
	"notebox/server/body"
	"notebox/server/web"
)

// sessionPathOf reads the path below /mnt/data from a request's, as it was sent. As in
// fileKey, each component is unescaped once and by itself. Names are what the user's
// code may have made: any bytes but NUL, as UTF-8.
func sessionPathOf(u *url.URL, id string) (string, bool) {
	parts, ok := web.PathAfter(u, sessionsPath+"/"+id+"/files/")
	return strings.Join(parts, "/"), ok
}

// withFiles calls do with the session of a request's path, within a place for it.
func (s *handler) withFiles(c echo.Context, do func(context.Context, *executor.Session) error) error {
	return s.withSession(c, func(ctx context.Context, session *executor.Session) error {
		leave, err := session.EnterFiles()
		if err != nil {
			return err
		}
		defer web.OutgoingOf(c).WhenSent(leave)
		return do(ctx, session)
	})
}

// listSessionFiles answers GET /v1/sessions/{id}/files.
func (s *handler) listSessionFiles(c echo.Context) error {
	query, err := body.Query(c.Request(), "path", "recursive")
	if err != nil {
		return err
	}
	folder, err := executor.GivenPath("path", query.Get("path"))
	if err != nil {
		return err
	}
	recursive, err := flagOf(query, "recursive")
	if err != nil {
		return err
	}
	return s.withFiles(c, func(ctx context.Context, session *executor.Session) error {
		found, more, err := session.ListFiles(ctx, folder, recursive)
		if err != nil {
			return err
		}
		return web.Fresh(c, http.StatusOK, FileList{found, more})
	})
}

type FileList struct {
	Files []executor.FileEntry `json:"files"`
	More  bool                 `json:"more"`
}

// deleteSessionFile answers DELETE /v1/sessions/{id}/files/{path}.
func (s *handler) deleteSessionFile(c echo.Context) error {
	return s.withFiles(c, func(ctx context.Context, session *executor.Session) error {
		name, ok := sessionPathOf(c.Request().URL, c.Param("id"))
		if !ok {
			return problem.NotFound()
		}
		return done(c, session.DeleteFile(ctx, name))
	})
}

// moveRequest is the body of POST /v1/sessions/{id}/move.
type moveRequest struct {
	From      *body.Text `json:"from"`
	To        *body.Text `json:"to"`
	Overwrite *bool      `json:"overwrite"`
}

// maxMoveBytes is far above two paths of the longest, every character escaped.
const maxMoveBytes = 64 << 10

// moveSessionFile answers POST /v1/sessions/{id}/move.
func (s *handler) moveSessionFile(c echo.Context) error {
	r := c.Request()
	if _, err := body.Query(r); err != nil {
		return err
	}
	if mediaType, _, err := body.TypeOf(r); err != nil || mediaType != echo.MIMEApplicationJSON {
		return errors.Join(err, body.UnsupportedMedia("Content-Type: a move is application/json"))
	}
	return s.withFiles(c, func(ctx context.Context, session *executor.Session) error {
		from, to, overwrite, err := readMove(r)
		if err != nil {
			return err
		}
		moved, err := session.MoveFile(ctx, from, to, overwrite)
		var failed *runner.FileError
		if errors.As(err, &failed) {
			return executor.OfSessionFile(map[bool]string{true: "from", false: "to"}[failed.Path == from], failed)
		}
		if err != nil {
			return err
		}
		return web.Fresh(c, http.StatusOK, moved)
	})
}

func readMove(r *http.Request) (from, to string, overwrite bool, err error) {
	raw, err := readSmall(r, maxMoveBytes)
	if err != nil {
		return "", "", false, err
	}
	var req moveRequest
	if err := body.DecodeJSON("", raw, &req); err != nil {
		return "", "", false, err
	}
	switch {
	case req.From == nil:
		return "", "", false, problem.Malformed("from", "is missing")
	case req.To == nil:
		return "", "", false, problem.Malformed("to", "is missing")
	}
	if from, err = executor.GivenPath("from", string(*req.From)); err == nil && from == "" {
		err = problem.Unfit("from", "is /mnt/data itself, which stays where it is")
	}
	if err != nil {
		return "", "", false, err
	}
	to, why := executor.CleanName(string(*req.To))
	if why != "" {
		return "", "", false, problem.Unfit("to", "%s", why)
	}
	return from, to, req.Overwrite != nil && *req.Overwrite, nil
}
