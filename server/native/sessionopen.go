package native

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"notebox/executor"
	"notebox/executor/intake"
	"notebox/server/body"
	"notebox/server/web"
)

// sessionRequest is a POST /v1/sessions as it was written, in whichever form. A nil
// field was not given.
type sessionRequest struct {
	Language *body.Text     `json:"language"`
	TTL      *body.Seconds  `json:"ttl"`
	Idle     *body.Seconds  `json:"idle"`
	Files    body.Files     `json:"files"`
	Env      body.Variables `json:"env"`
	Network  *bool          `json:"network"`

	Dependencies body.Packages `json:"dependencies"`

	inputs executor.Inputs // Files, and the file parts of a form
}

// fields are those of a form, in the order in which errors in them are told.
func (req *sessionRequest) fields() body.Fields {
	return body.Fields{
		body.TextField("language", &req.Language), body.SecondsField("ttl", &req.TTL), body.SecondsField("idle", &req.Idle),
		body.JSONField("files", &req.Files), body.JSONField("env", &req.Env), body.JSONField("dependencies", &req.Dependencies),
		body.BoolField("network", &req.Network),
	}
}

// readSessionRequest decodes the body in either form; one without a body asks for
// nothing but the defaults.
func (s *handler) readSessionRequest(r *http.Request, work *intake.Workspace) (*sessionRequest, error) {
	if _, err := body.Query(r); err != nil {
		return nil, err
	}
	mediaType, params, err := body.TypeOf(r)
	if err != nil {
		return nil, err
	}
	req := new(sessionRequest)
	switch {
	case r.ContentLength == 0:
		return req, nil
	case mediaType == "application/json":
		err = s.Bodies.Object(r, work, req, func() error { return req.Files.MoveTo(&req.inputs, work) })
	case mediaType == body.FormType:
		f := &body.Form{Of: s.Bodies, Work: work, Fields: req.fields(), Inputs: &req.inputs}
		err = f.Read(r, params["boundary"])
	default:
		err = body.UnsupportedMedia("Content-Type: a session is opened with application/json, %s, or no body", body.FormType)
	}
	if err != nil {
		return nil, err
	}
	return req, req.Files.MoveTo(&req.inputs, work)
}

// openSession answers POST /v1/sessions.
func (s *handler) openSession(c echo.Context) error {
	caller, r := web.Caller(c), c.Request()
	if err := s.Executor.MayOpenSession(caller); err != nil {
		return err // before its body is read
	}
	work := s.Intake.Workspace(caller.Owner())
	defer work.Clear(r.Context())
	req, err := s.readSessionRequest(r, work)
	if err != nil {
		return err
	}
	session, err := s.Executor.OpenSession(r.Context(), caller, &executor.SessionOrder{
		Language: (*string)(req.Language), TTL: (*float64)(req.TTL), Idle: (*float64)(req.Idle), Inputs: req.inputs,
		Env: req.Env.Strings(), Dependencies: body.Strings(req.Dependencies), Network: req.Network, Work: work,
	})
	if err != nil {
		return err
	}
	info := session.Info()
	web.NoteSession(c, info.ID)
	c.Response().Header().Set(echo.HeaderLocation, sessionsPath+"/"+info.ID)
	return web.Fresh(c, http.StatusCreated, aboutSession(info))
}
