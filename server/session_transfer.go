package server

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"path"
	"time"

	"github.com/labstack/echo/v4"

	"notebox/executor"
	"notebox/executor/problem"
	"notebox/runner"
	"notebox/server/body"
	"notebox/storage"
)

// sniffed is how many bytes of a file its type is told by.
const sniffed = 512

// transferRetry is when to come back to a service that has too many files under way.
const transferRetry = 2 * time.Second

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
		return nil, problem.Malformed("", "the body is empty")
	}
	return raw, nil
}

// readSessionFile answers GET and HEAD /v1/sessions/{id}/files/{path}.
func (s *Server) readSessionFile(c echo.Context) error {
	return s.withFiles(c, func(session runner.Session) error {
		r := c.Request()
		name, ok := sessionPathOf(r.URL, c.Param("id"))
		if !ok {
			return problem.NotFound()
		}
		ctx, cancel := context.WithCancelCause(r.Context())
		defer cancel(nil)
		after := s.pace.stall
		stall := time.AfterFunc(after, func() { cancel(executor.ErrStalled) })
		defer stall.Stop()
		info, content, err := session.Read(ctx, name)
		if err != nil {
			return stalled(ctx, err)
		}
		defer content.Close()
		direct(c)
		file := bufio.NewReaderSize(&stallingReader{content, stall, after}, sniffed)
		head, err := file.Peek(int(min(sniffed, max(0, info.Size))))
		if err != nil || info.Size < 0 {
			return stalled(ctx, &runner.FileError{Code: runner.FileBusy, Path: name, Message: "it was changed while it was read"})
		}
		describeSessionFile(c.Response().Header(), info, head)
		c.Response().WriteHeader(http.StatusOK)
		if r.Method == http.MethodHead {
			return nil
		}
		if _, err := io.CopyN(c.Response(), file, info.Size); err != nil { // the client notices by the length
			if unsent := (*unsentError)(nil); errors.As(err, &unsent) {
				return err
			}
			s.log.LogAttrs(r.Context(), slog.LevelInfo, "a session's file was not sent in full", append(who(c), slog.Any("error", err))...)
		}
		return nil
	})
}

// describeSessionFile says what a file is, and that it is no page of this service.
func describeSessionFile(h http.Header, info runner.FileInfo, head []byte) {
	name := path.Base(info.Path)
	h.Set(echo.HeaderContentType, contentType(storage.MediaType(name, head)))
	h.Set(echo.HeaderContentDisposition, storage.Object{Name: name}.Disposition()) // of no type: a download
	h.Set(echo.HeaderContentSecurityPolicy, filePolicy)
	h.Set(echo.HeaderCacheControl, "no-store")
	h.Set(echo.HeaderContentLength, fmt.Sprint(info.Size))
	h.Set(echo.HeaderLastModified, modified(info).Format(http.TimeFormat))
}

// stalled is the error of a sandbox that was waited for; it did not answer where the
// cause of ctx says so.
func stalled(ctx context.Context, err error) error {
	if context.Cause(ctx) == executor.ErrStalled {
		return &problem.Error{Status: http.StatusGatewayTimeout, Text: "the sandbox did not answer in time", Cause: err}
	}
	return err
}

// stallingReader lets a timer go while it is read.
type stallingReader struct {
	io.Reader
	stall *time.Timer
	after time.Duration
}

func (r *stallingReader) Read(p []byte) (int, error) {
	r.stall.Reset(r.after)
	defer r.stall.Stop()
	return r.Reader.Read(p)
}

// writeSessionFile answers PUT /v1/sessions/{id}/files/{path}: the body, of whatever
// type, is the content. A body that is not whole leaves nothing.
func (s *Server) writeSessionFile(c echo.Context) error {
	return s.withFiles(c, func(session runner.Session) error {
		r := c.Request()
		if _, _, err := body.TypeOf(r); err != nil { // of an encoding
			return err
		}
		name, ok := sessionPathOf(r.URL, c.Param("id"))
		if !ok {
			return problem.Malformed("path", "is no path within %s", executor.DataDir)
		}
		if _, why := executor.CleanName(name); why != "" {
			return problem.Malformed("path", "%s", why)
		}
		most := min(s.maxUpload, s.dataSizeOf(session))
		if r.ContentLength > most {
			return problem.TooLarge("", "the body is larger than %d bytes", most)
		}
		whole := &executor.WatchedReader{Reader: http.MaxBytesReader(nil, r.Body, most)}
		timed, steady, stop := executor.WatchStall(r.Context(), whole, s.pace.stall)
		defer stop()
		isNew := isMissing(timed, session, name)
		written, err := session.Write(timed, name, steady)
		switch {
		case whole.Failed != nil:
			return body.Problem(whole.Failed, body.NotWhole)
		case err != nil:
			return stalled(timed, err)
		case isNew:
			return fresh(c, http.StatusCreated, aboutFile(written))
		}
		return fresh(c, http.StatusOK, aboutFile(written))
	})
}

// isMissing is whether there is no such file at this moment.
func isMissing(ctx context.Context, session runner.Session, name string) bool {
	_, content, err := session.Read(ctx, name)
	if err == nil {
		_ = content.Close() // nothing was read
	}
	var failed *runner.FileError
	return errors.As(err, &failed) && failed.Code == runner.FileNotFound
}
