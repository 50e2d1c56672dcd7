package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"mime/multipart"
	"net/http"
	"path"
	"time"

	"github.com/labstack/echo/v4"
	"golang.org/x/sync/errgroup"

	"notebox/executor/problem"
	"notebox/storage"
)

// upload is a POST /v1/files that is being read.
type upload struct {
	server *Server
	ctx    context.Context
	owner  string
	made   time.Time
	kept   []keptInput
	begun  []string // the ids of all that may be in the store
}

// keepInputs answers POST /v1/files: each part goes to the store as it arrives, through
// neither memory nor disk. All are kept or none: only when the form is whole, they are
// made known. A store that fails is a 503, and the client's to send again: it has the
// files, and a copy of them here would be one for the case of an outage alone.
func (s *Server) keepInputs(c echo.Context) error {
	r := c.Request()
	mediaType, params, err := contentOf(r)
	if err != nil {
		return err
	}
	if mediaType != formType {
		return unsupportedMedia("Content-Type: files are sent as %s", formType)
	}
	leave, err := s.intake.Enter(ownerOf(c)) // drivers hold some MB of what they send
	if err != nil {
		return err
	}
	defer leave()
	u := &upload{server: s, ctx: r.Context(), owner: ownerOf(c), made: s.now()}
	whole := false
	defer func() {
		if !whole { // by an error, or by a panic
			u.undo()
		}
	}()
	if err := s.readParts(r, params["boundary"], u.take); err != nil {
		return err
	}
	if err := u.publish(); err != nil {
		return err
	}
	whole = true
	return writeJSON(c, http.StatusCreated, echo.MIMEApplicationJSON, u.kept)
}

// take stores one part.
func (u *upload) take(part *multipart.Part) error {
	name, filename, isFile, err := partName(part)
	if err != nil {
		return err
	}
	if name != "files" {
		return problem.Malformed(problem.Printable(problem.Cut(name)), "there is no such field; each part is a file, and is called files")
	}
	field := fmt.Sprintf("files[%d]", len(u.kept))
	if !isFile {
		return problem.Malformed(field, "has no file name in its Content-Disposition")
	}
	if len(u.kept) == maxInputs {
		return problem.Unfit("files", "there are more than %d", maxInputs)
	}
	clean, why := cleanName(filename)
	if why != "" {
		return problem.Malformed(field+".name", "%s", why)
	}
	id, err := inputID(u.made)
	if err != nil {
		return err
	}
	key, _ := inputKey(u.owner, id, storage.PartContent)
	u.begun = append(u.begun, id)
	whole := &watchedReader{Reader: part}
	timed, steady, stop := watchStall(u.ctx, whole, u.server.pace.stall)
	defer stop()
	object, err := u.server.store.Put(timed, key, steady, path.Base(clean))
	switch {
	case err == nil:
		u.kept = append(u.kept, u.server.executor.about(id, clean, u.made, object))
		return nil
	case whole.failed != nil:
		return ofBody(err, notAForm)
	case context.Cause(timed) == errStalled:
		err = errors.Join(errStalled, err)
	}
	return u.failed(err)
}

// failed is what the client is told of a store that has not taken something.
func (u *upload) failed(err error) error {
	if u.ctx.Err() != nil {
		return u.ctx.Err()
	}
	text := "the files cannot be stored"
	if storage.Temporary(err) || errors.Is(err, errStalled) {
		text = errStoreAway.text
	}
	return &problem.Error{Status: http.StatusServiceUnavailable, Text: text, RetryAfter: readyFor, Cause: err}
}

// publish makes the inputs known.
func (u *upload) publish() error {
	ctx, cancel := context.WithTimeout(u.ctx, storeAllTime)
	defer cancel()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(inputsAtOnce)
	for _, known := range u.kept {
		group.Go(func() error {
			key, _ := inputKey(u.owner, known.ID, storage.PartAbout)
			raw, err := encodeJSON(known)
			if err == nil {
				_, err = u.server.store.Put(ctx, key, bytes.NewReader(raw), string(storage.PartAbout))
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return u.failed(err)
	}
	return nil
}

// undo removes what was stored. What it cannot remove is known to nobody, and goes with
// its time.
func (u *upload) undo() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(u.ctx), storeTime)
	defer cancel()
	group, ctx := errgroup.WithContext(ctx) // a store that fails once is not asked for each
	group.SetLimit(inputsAtOnce)
	for _, id := range u.begun {
		group.Go(func() error {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return u.server.executor.removeInput(ctx, u.owner, id)
		})
	}
	if err := group.Wait(); err != nil {
		u.server.log.Warn("files of an upload that failed are left in the store", "error", err)
	}
}
