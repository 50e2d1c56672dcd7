package ask

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"notebox/agent"
	"notebox/executor"
	"notebox/executor/intake"
	"notebox/executor/problem"
	"notebox/server/body"
)

// maxAsked bounds a question itself, without its files, in bytes.
const maxAsked = 1 << 20

// question is a POST /run as it was written, in either form.
type question struct {
	Input jsontext.Value `json:"input"` // what is no string is as good as not given
	Files body.Files     `json:"files"`

	inputs executor.Inputs // Files, and the file parts of a form
}

// text is what is asked, "" if it is not given.
func (q *question) text() (asked string) {
	_ = json.Unmarshal(q.Input, &asked)
	return strings.TrimSpace(asked)
}

// missingInput is what existing tools of this kind answer, and their clients look for. detail
// is what else is wrong.
type missingInput struct{ detail string }

func (m *missingInput) Error() string { return "Missing input field" }

func (m *missingInput) body() map[string]string {
	body := map[string]string{"error": m.Error()}
	if m.detail != "" {
		body["detail"] = m.detail
	}
	return body
}

// readQuestion decodes the body: a form, or JSON whatever its Content-Type says, as existing
// clients send it. Its error is a *missingInput if nothing is asked.
func (s *handler) readQuestion(r *http.Request, work *intake.Workspace) (*question, error) {
	if _, err := body.Query(r); err != nil {
		return nil, err
	}
	mediaType, params, err := body.TypeOf(r)
	if err != nil {
		return nil, err
	}
	q := new(question)
	if mediaType == body.FormType {
		f := &body.Form{Of: s.Bodies, Work: work, Inputs: &q.inputs, Fields: body.Fields{
			{Name: "input", Set: func(raw []byte) (err error) { q.Input, err = jsontext.AppendQuote(nil, raw); return err }},
			body.JSONField("files", &q.Files),
		}}
		err = f.Read(r, params["boundary"])
	} else {
		err = s.readQuestionJSON(r, work, q)
	}
	switch {
	case err != nil:
		return nil, err
	case q.text() == "":
		return nil, &missingInput{}
	case len(q.Input) > maxAsked:
		return nil, problem.TooLarge("input", "is larger than %d bytes", maxAsked)
	}
	return q, q.Files.MoveTo(&q.inputs, work)
}

func (s *handler) readQuestionJSON(r *http.Request, work *intake.Workspace, q *question) error {
	if r.ContentLength == 0 {
		return nil
	}
	return s.Bodies.Text(r, work, func(raw []byte) error {
		if len(bytes.TrimSpace(raw)) == 0 {
			return nil
		}
		err := body.DecodeJSON("", raw, q)
		if err != nil && json.Valid(raw) {
			asked := question{}
			if _ = json.Unmarshal(raw, &struct{ Input *jsontext.Value }{&asked.Input}); asked.text() == "" {
				return &missingInput{err.Error()}
			}
		}
		return err
	})
}

// given are the files of a question, as an agent has them.
func (s *handler) given(ctx context.Context, owner string, all *executor.Inputs, work *intake.Workspace) (files []agent.File, err error) {
	room := s.Limits.DataSize
	if err := all.Check(room); err != nil {
		return nil, err
	}
	if _, err := s.Executor.Gather(ctx, owner, all, room, work); err != nil {
		return nil, err
	}
	for _, in := range all.List {
		files = append(files, agent.File{Name: in.Name, Size: in.Size, Open: in.Open})
	}
	return files, nil
}
