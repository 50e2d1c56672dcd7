package native

import (
	"context"
	"fmt"
	"mime/multipart"
	"net/http"

	"github.com/labstack/echo/v4"

	"notebox/executor"
	"notebox/executor/problem"
	"notebox/server/body"
	"notebox/server/web"
)

// upload is a POST /v1/files that is being read.
type upload struct {
	ctx  context.Context
	kept *executor.Keeping
}

// keepInputs answers POST /v1/files: each part goes to the store as it arrives, through
// neither memory nor disk. All are kept or none: only when the form is whole, they are
// made known. A store that fails is a 503, and the client's to send again: it has the
// files, and a copy of them here would be one for the case of an outage alone.
func (s *handler) keepInputs(c echo.Context) error {
	r := c.Request()
	mediaType, params, err := body.TypeOf(r)
	if err != nil {
		return err
	}
	if mediaType != body.FormType {
		return body.UnsupportedMedia("Content-Type: files are sent as %s", body.FormType)
	}
	leave, err := s.Intake.Enter(web.Owner(c)) // drivers hold some MB of what they send
	if err != nil {
		return err
	}
	defer leave()
	u := &upload{r.Context(), s.Executor.Keep(web.Owner(c))}
	whole := false
	defer func() {
		if !whole { // by an error, or by a panic
			u.kept.Undo(r.Context())
		}
	}()
	if err := s.Bodies.Parts(r, params["boundary"], u.take); err != nil {
		return err
	}
	kept, err := u.kept.Publish(r.Context())
	if err != nil {
		return err
	}
	whole = true
	return web.WriteJSON(c, http.StatusCreated, echo.MIMEApplicationJSON, kept)
}

// take stores one part.
func (u *upload) take(part *multipart.Part) error {
	name, filename, isFile, err := body.PartName(part)
	if err != nil {
		return err
	}
	if name != "files" {
		return problem.Malformed(problem.Printable(problem.Cut(name)), "there is no such field; each part is a file, and is called files")
	}
	field := fmt.Sprintf("files[%d]", u.kept.Len())
	if !isFile {
		return problem.Malformed(field, "has no file name in its Content-Disposition")
	}
	if u.kept.Len() == executor.MaxInputs {
		return problem.Unfit("files", "there are more than %d", executor.MaxInputs)
	}
	clean, why := executor.CleanName(filename)
	if why != "" {
		return problem.Malformed(field+".name", "%s", why)
	}
	whole := &executor.WatchedReader{Reader: part}
	err = u.kept.Put(u.ctx, clean, whole)
	if whole.Failed != nil {
		return body.Problem(whole.Failed, body.NotAForm)
	}
	return err
}
