package native

import (
	"net/http"
	"net/url"
	"slices"
	"unicode/utf8"

	"notebox/executor/intake"
	"notebox/executor/problem"
	"notebox/server/body"
)

// readCode takes a body that is the code itself, or a notebook; what else there is to say
// stands in the query.
func (s *handler) readCode(r *http.Request, mediaType string, query url.Values, work *intake.Workspace) (*request, error) {
	if err := s.Bodies.Fits(r); err != nil { // before the query, whatever is wrong with that
		return nil, err
	}
	req := &request{mediaType: mediaType}
	for _, f := range req.fields() {
		if query.Has(f.Name) && slices.Contains(rawQuery, f.Name) {
			if err := f.Set([]byte(query.Get(f.Name))); err != nil {
				return nil, err
			}
		}
	}
	return req, s.Bodies.Text(r, work, func(raw []byte) error {
		switch {
		case len(raw) == 0:
			return body.Empty()
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
