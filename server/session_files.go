package server

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"notebox/executor"
	"notebox/executor/problem"
	"notebox/runner"
	"notebox/server/body"
	"notebox/storage"
)

// maxListText bounds the paths in one list, in bytes: names are the user's code's, and
// ten thousand of the longest would be 40 MB.
const maxListText = 4 << 20

// sessionFile is an entry of a session's /mnt/data, as its owner sees it.
type sessionFile struct {
	Path       string          `json:"path"`
	Name       string          `json:"name"`
	Kind       runner.FileKind `json:"kind"`
	Bytes      int64           `json:"bytes"`
	MediaType  *string         `json:"media_type"` // by the name; null for what is no regular file
	ModifiedAt time.Time       `json:"modified_at"`
}

func aboutFile(f runner.FileInfo) sessionFile {
	entry := sessionFile{Path: executor.DataDir + f.Path, Name: path.Base(f.Path), Kind: f.Kind, ModifiedAt: modified(f)}
	if f.Kind == runner.FileRegular {
		entry.Bytes, entry.MediaType = max(0, f.Size), new(storage.NamedType(entry.Name))
	}
	return entry
}

// modified is the time that the user's programs have set, where JSON has it.
func modified(f runner.FileInfo) time.Time {
	t := f.Modified.UTC().Truncate(time.Millisecond)
	if t.Year() < 0 || t.Year() > 9999 {
		return time.Unix(0, 0).UTC()
	}
	return t
}

// sessionPathOf reads the path below /mnt/data from a request's, as it was sent. As in
// fileKey, each component is unescaped once and by itself. Names are what the user's
// code may have made: any bytes but NUL, as UTF-8.
func sessionPathOf(u *url.URL, id string) (string, bool) {
	parts, ok := pathAfter(u, sessionsPath+"/"+id+"/files/")
	return strings.Join(parts, "/"), ok
}

// isComponent is whether text is one component of a path that leads down.
func isComponent(text string) bool {
	return text != "" && text != "." && text != ".." && !strings.ContainsAny(text, "/\x00") && utf8.ValidString(text)
}

// givenPath reads a path of a body or a query, with or without /mnt/data before it; ""
// is /mnt/data.
func givenPath(field, given string) (string, error) {
	if given == "" || given+"/" == executor.DataDir || given == executor.DataDir {
		return "", nil
	}
	given = strings.TrimSuffix(strings.TrimPrefix(given, executor.DataDir), "/")
	for part := range strings.SplitSeq(given, "/") {
		if !isComponent(part) {
			return "", problem.Unfit(field, "is no path within %s", executor.DataDir)
		}
	}
	return given, nil
}

// withFiles calls do with the session of a request's path, within a place for it.
func (s *Server) withFiles(c echo.Context, do func(runner.Session) error) error {
	session, err := s.findSession(c)
	if err != nil {
		return err
	}
	leave, err := s.transfers.Enter(ownerOf(c))
	if err != nil {
		return err
	}
	defer outgoingOf(c).whenSent(leave)
	return do(session)
}

// listSessionFiles answers GET /v1/sessions/{id}/files.
func (s *Server) listSessionFiles(c echo.Context) error {
	query, err := body.Query(c.Request(), "path", "recursive")
	if err != nil {
		return err
	}
	folder, err := givenPath("path", query.Get("path"))
	if err != nil {
		return err
	}
	recursive := new(bool)
	if query.Has("recursive") {
		if recursive, err = body.ParseBool("recursive", query.Get("recursive")); err != nil {
			return err
		}
	}
	return s.withFiles(c, func(session runner.Session) error {
		return inTime(c.Request().Context(), sessionCallTime, func(ctx context.Context) error {
			found, more, err := session.List(ctx, folder, *recursive)
			if err != nil {
				return err
			}
			return fresh(c, http.StatusOK, listed(found, more))
		})
	})
}

type fileList struct {
	Files []sessionFile `json:"files"`
	More  bool          `json:"more"`
}

func listed(found []runner.FileInfo, more bool) fileList {
	list, left := fileList{Files: []sessionFile{}, More: more}, maxListText
	for _, f := range found {
		if left -= len(f.Path); left < 0 {
			list.More = true
			break
		}
		list.Files = append(list.Files, aboutFile(f))
	}
	return list
}

// deleteSessionFile answers DELETE /v1/sessions/{id}/files/{path}.
func (s *Server) deleteSessionFile(c echo.Context) error {
	return s.withFiles(c, func(session runner.Session) error {
		name, ok := sessionPathOf(c.Request().URL, c.Param("id"))
		if !ok {
			return problem.NotFound()
		}
		return inTime(c.Request().Context(), sessionCallTime, func(ctx context.Context) error {
			if err := session.Delete(ctx, name); err != nil {
				return err
			}
			return c.NoContent(http.StatusNoContent)
		})
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
func (s *Server) moveSessionFile(c echo.Context) error {
	r := c.Request()
	if _, err := body.Query(r); err != nil {
		return err
	}
	if mediaType, _, err := body.TypeOf(r); err != nil || mediaType != echo.MIMEApplicationJSON {
		return errors.Join(err, body.UnsupportedMedia("Content-Type: a move is application/json"))
	}
	return s.withFiles(c, func(session runner.Session) error {
		from, to, overwrite, err := readMove(r)
		if err != nil {
			return err
		}
		return inTime(r.Context(), sessionCallTime, func(ctx context.Context) error {
			moved, err := session.Move(ctx, from, to, overwrite)
			var failed *runner.FileError
			if errors.As(err, &failed) {
				return executor.OfSessionFile(map[bool]string{true: "from", false: "to"}[failed.Path == from], failed)
			}
			if err != nil {
				return err
			}
			return fresh(c, http.StatusOK, aboutFile(moved))
		})
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
	if from, err = givenPath("from", string(*req.From)); err == nil && from == "" {
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
