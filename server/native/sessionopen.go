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

// sessionParts are the parts of a form that are fields, in the order in which errors in
// them are told.
var sessionParts = []string{"language", "ttl", "idle", "files", "env", "dependencies", "network"}

func (req *sessionRequest) setPart(name string, raw []byte) (err error) {
	switch name {
	case "language":
		req.Language = new(body.Text(raw))
	case "ttl":
		req.TTL, err = body.ParseSeconds(name, string(raw))
	case "idle":
		req.Idle, err = body.ParseSeconds(name, string(raw))
	case "files":
		err = body.DecodeJSON(name, raw, &req.Files)
	case "env":
		err = body.DecodeJSON(name, raw, &req.Env)
	case "dependencies":
		err = body.DecodeJSON(name, raw, &req.Dependencies)
	case "network":
		req.Network, err = body.ParseBool(name, string(raw))
	}
	return err
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
		err = s.Bodies.Object(r, work, req, func() error { return req.takeFiles(work) })
	case mediaType == body.FormType:
		f := &body.Form{Of: s.Bodies, Work: work, Names: sessionParts, Inputs: &req.inputs, Set: req.setPart}
		err = f.Read(r, params["boundary"])
	default:
		err = body.UnsupportedMedia("Content-Type: a session is opened with application/json, %s, or no body", body.FormType)
	}
	if err != nil {
		return nil, err
	}
	return req, req.takeFiles(work)
}

// takeFiles moves Files to the inputs.
func (req *sessionRequest) takeFiles(work *intake.Workspace) error {
	err := body.TakeFiles(&req.inputs, req.Files, work)
	req.Files = nil
	return err
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
