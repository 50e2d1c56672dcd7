package native

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"notebox/executor"
	"notebox/executor/intake"
	"notebox/executor/problem"
	"notebox/server/body"

	"github.com/go-json-experiment/json/jsontext"
)

// request is a call of /v1/execute as it was written, in whichever form. A nil
// field was not given; null is as good as not given.
type request struct {
	Code         *body.Text     `json:"code"`
	Cells        body.Cells     `json:"cells"`
	Notebook     jsontext.Value `json:"notebook"`
	Entrypoint   *body.Text     `json:"entrypoint"`
	Language     *body.Text     `json:"language"`
	Files        body.Files     `json:"files"`
	Env          body.Variables `json:"env"`
	Dependencies body.Packages  `json:"dependencies"`
	Network      *bool          `json:"network"`
	Timeout      *body.Seconds  `json:"timeout"`
	Session      *body.Text     `json:"session"`
	StopOnError  *bool          `json:"stop_on_error"`

	inputs     executor.Inputs // Files, and the file parts of a form
	mediaType  string          // of the raw form; else empty
	linkImages bool            // ?images=url
}

// order is what the request asks for.
func (req *request) order() *executor.Order {
	return &executor.Order{
		Code: (*string)(req.Code), Notebook: req.Notebook, Entrypoint: (*string)(req.Entrypoint), Cells: body.Strings(req.Cells),
		Language: (*string)(req.Language), MediaType: req.mediaType, Inputs: req.inputs, Env: req.Env.Strings(),
		Dependencies: body.Strings(req.Dependencies), Network: req.Network, Timeout: (*float64)(req.Timeout),
		Session: (*string)(req.Session), StopOnError: req.StopOnError, LinkImages: req.linkImages,
	}
}

// readRequest decodes the body in whichever form it is.
func (s *handler) readRequest(r *http.Request, work *intake.Workspace) (*executor.Order, error) {
	mediaType, params, err := body.TypeOf(r)
	if err != nil {
		return nil, err
	}
	if mediaType == "" {
		return nil, body.UnsupportedMedia("Content-Type: is missing or malformed; %s", s.formsTaken())
	}
	if charset := strings.ToLower(params["charset"]); !slices.Contains([]string{"", "utf-8", "utf8", "us-ascii"}, charset) {
		return nil, body.UnsupportedMedia("Content-Type: the only charset is utf-8")
	}
	query, err := url.ParseQuery(r.URL.RawQuery) // r.URL.Query drops what is malformed
	if err != nil {
		return nil, problem.Malformed("query", "is malformed")
	}
	var req *request
	switch {
	case mediaType == "application/json":
		req = new(request)
		err = s.Bodies.Object(r, work, req, func() error { return req.Files.MoveTo(&req.inputs, work) })
	case mediaType == body.FormType:
		req, err = s.readForm(r, params["boundary"], work)
	case mediaType == notebookType || s.isCode(mediaType):
		req, err = s.readCode(r, mediaType, query, work)
	default:
		return nil, body.UnsupportedMedia("Content-Type: %s is not supported; %s", problem.Quote(mediaType), s.formsTaken())
	}
	if err != nil {
		return nil, err
	}
	if err := req.readQuery(query); err != nil {
		return nil, err
	}
	return req.order(), nil
}

const notebookType = "application/x-ipynb+json" // a notebook, as Jupyter calls it

func (s *handler) isCode(mediaType string) bool {
	if mediaType == "text/plain" {
		return true
	}
	for _, e := range s.Environments {
		if slices.Contains(e.MediaTypes, mediaType) {
			return true
		}
	}
	return false
}

func (s *handler) formsTaken() string {
	types := []string{"application/json", "multipart/form-data", "text/plain", notebookType}
	for _, e := range s.Environments {
		types = append(types, e.MediaTypes...)
	}
	slices.Sort(types[2:])
	return "supported are " + strings.Join(slices.Compact(types), ", ")
}

// rawQuery are the fields that stand in the query if the body is the code itself.
var rawQuery = []string{"language", "timeout", "stop_on_error", "session"}

// readQuery takes the query's "images", the one parameter of every form, and
// refuses what no form knows: a typing error must not be a silent default.
func (req *request) readQuery(query url.Values) error {
	for name, values := range query {
		raw := req.mediaType != "" && slices.Contains(rawQuery, name)
		switch {
		case name != "images" && !raw:
			return problem.Malformed("query", "there is no parameter %s", problem.Quote(name))
		case len(values) > 1:
			return problem.Malformed("query", "the parameter %s is there more than once", problem.Quote(name))
		}
	}
	switch images := query.Get("images"); images {
	case "url":
		req.linkImages = true
	case "", "data":
	default:
		return problem.Unfit("images", `must be "url", or "data", which is the default`)
	}
	return nil
}

// fields are those of a form, in the order in which errors in them are told.
func (req *request) fields() body.Fields {
	return body.Fields{
		body.TextField("code", &req.Code), body.JSONField("cells", &req.Cells), body.JSONField("notebook", &req.Notebook),
		body.TextField("entrypoint", &req.Entrypoint), body.TextField("language", &req.Language), body.JSONField("files", &req.Files),
		body.JSONField("env", &req.Env), body.JSONField("dependencies", &req.Dependencies), body.BoolField("network", &req.Network),
		body.SecondsField("timeout", &req.Timeout), body.TextField("session", &req.Session), body.BoolField("stop_on_error", &req.StopOnError),
	}
}

// readForm takes a form whose parts have the names of the JSON's fields. cells,
// env, notebook and dependencies are JSON text. A part "files" with a file name
// is a file; one without is JSON text as the field files is. Files go to the
// workspace as they arrive, texts are looked at when all has arrived.
func (s *handler) readForm(r *http.Request, boundary string, work *intake.Workspace) (*request, error) {
	req := new(request)
	f := &body.Form{Of: s.Bodies, Work: work, Fields: req.fields(), Inputs: &req.inputs}
	if err := f.Read(r, boundary); err != nil {
		return nil, err
	}
	return req, req.Files.MoveTo(&req.inputs, work)
}
