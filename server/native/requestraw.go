package native

import (
	"net/http"
	"net/url"
	"unicode/utf8"

	"notebox/executor/intake"
	"notebox/executor/problem"
	"notebox/server/body"
)

// readCode takes a body that is the code itself, or a notebook; what else there is to say
// stands in the query.
func (s *handler) readCode(r *http.Request, mediaType string, query url.Values, work *intake.Workspace) (*request, error) {
	if r.ContentLength > s.MaxBody {
		return nil, problem.TooLarge("", "the body is larger than %d bytes", s.MaxBody)
	}
	req := &request{mediaType: mediaType}
	var err error
	if query.Has("language") {
		req.Language = new(body.Text(query.Get("language")))
	}
	if query.Has("timeout") {
		if req.Timeout, err = body.ParseSeconds("timeout", query.Get("timeout")); err != nil {
			return nil, err
		}
	}
	if query.Has("stop_on_error") {
		if req.StopOnError, err = body.ParseBool("stop_on_error", query.Get("stop_on_error")); err != nil {
			return nil, err
		}
	}
	if query.Has("session") {
		req.Session = new(body.Text(query.Get("session")))
	}
	sent, err := work.Spool(http.MaxBytesReader(nil, r.Body, s.MaxBody))
	if err != nil {
		return nil, body.Problem(err, body.NotWhole)
	}
	return req, s.Bodies.WithText(r, work, sent, func(raw []byte) error {
		switch {
		case len(raw) == 0:
			return problem.Malformed("", "the body is empty")
		case mediaType == notebookType:
			req.Notebook = raw // which Adopt checks
		case !utf8.Valid(raw):
			return problem.Malformed("code", "is not valid UTF-8")
		default:
			req.Code = new(body.Text(raw))
		}
		return nil
	})
}
