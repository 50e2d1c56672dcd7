package body

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"notebox/executor"
	"notebox/executor/fetch"
	"notebox/executor/intake"
	"notebox/executor/problem"
	"notebox/notebook"
)

// maxNesting bounds how deep lists and objects may nest in a request: what a
// notebook may, and the level that it is in.
const maxNesting = notebook.MaxDepth + 1

// maxNames bounds the names of an object of a request and of those that it is in: each is
// some 150 bytes until the object ends. The widest that people send have some thousands.
const maxNames = 50_000

// Reader reads bodies within these bounds.
type Reader struct {
	Intake    *intake.Intake
	MaxBody   int64 // bytes of JSON, code and text parts
	MaxUpload int64 // bytes of a form
}

// Object reads a body that is one JSON text into v; then is called where that was
// right, while the text is held.
func (b *Reader) Object(r *http.Request, work *intake.Workspace, v any, then func() error) error {
	return b.Text(r, work, func(raw []byte) error {
		if len(raw) == 0 {
			return Empty()
		}
		if err := DecodeJSON("", raw, v); err != nil {
			return err
		}
		return then()
	})
}

// Empty is the answer to a body without a byte.
func Empty() error { return problem.Malformed("", "the body is empty") }

// Fits refuses a body whose head says that it is larger than MaxBody.
func (b *Reader) Fits(r *http.Request) error {
	if r.ContentLength > b.MaxBody {
		return problem.TooLarge("", "the body is larger than %d bytes", b.MaxBody)
	}
	return nil
}

// Text calls fn with a body that is one text, in its turn. Until then it is on the disk.
func (b *Reader) Text(r *http.Request, work *intake.Workspace, fn func([]byte) error) error {
	if err := b.Fits(r); err != nil {
		return err
	}
	body, err := work.Spool(http.MaxBytesReader(nil, r.Body, b.MaxBody))
	if err != nil {
		return Problem(err, NotWhole)
	}
	return b.withText(r, work, body, fn)
}

// withText calls fn with the text of a spool, in its turn.
func (b *Reader) withText(r *http.Request, work *intake.Workspace, sp *intake.Spool, fn func([]byte) error) error {
	return b.Intake.InTurn(r.Context(), work.Owner, sp.Size, func() error {
		raw, err := sp.Bytes()
		if err != nil {
			return err
		}
		return fn(raw)
	})
}

// DecodeJSON reads one JSON text strictly into v. Every error names the field;
// within is the field that the text itself is of, or empty for a whole body.
func DecodeJSON(within string, raw []byte, v any) error {
	switch shape := notebook.ShapeOf(raw); {
	case shape.Depth > maxNesting:
		return problem.Malformed(within, "is nested deeper than %d levels", maxNesting)
	case shape.Names > maxNames:
		return problem.TooLarge(within, "an object has more than %d names, with those that it is in", maxNames)
	}
	err := json.Unmarshal(raw, v, jsonRules)
	if err == nil {
		return nil
	}
	var tooMany *problem.Error
	var syntactic *jsontext.SyntacticError
	var semantic *json.SemanticError
	switch {
	case errors.As(err, &tooMany):
		return tooMany
	case errors.As(err, &semantic):
		field := joinField(within, semantic.JSONPointer)
		switch {
		case errors.Is(err, json.ErrUnknownName):
			return problem.Malformed(field, "there is no such field")
		case semantic.GoType != nil && semantic.Err == nil:
			return problem.Malformed(field, "must be %s", jsonName(semantic))
		case semantic.Err != nil && semantic.GoType != nil && strings.HasPrefix(semantic.Err.Error(), "must be "):
			return problem.Malformed(field, "%s", semantic.Err)
		}
		return problem.Malformed(field, "is not of the right type")
	case errors.As(err, &syntactic):
		field := joinField(within, syntactic.JSONPointer)
		if errors.Is(err, jsontext.ErrDuplicateName) {
			return problem.Malformed(field, "is there more than once")
		}
		why := "is not valid JSON"
		if strings.Contains(syntactic.Err.Error(), "UTF-8") || strings.Contains(syntactic.Err.Error(), "surrogate") {
			why = "is not valid UTF-8, or has a lone surrogate"
		}
		return problem.Malformed(field, "%s (at byte %d)", why, syntactic.ByteOffset)
	}
	return problem.Malformed(within, "is not valid JSON")
}

// jsonName says what a field must be, for the Go types that requests have.
func jsonName(err *json.SemanticError) string {
	switch kind := err.GoType.Kind().String(); kind {
	case "bool":
		return "true or false"
	case "slice":
		return "a list"
	default:
		return "an object"
	}
}

// joinField writes a JSON pointer the way people write fields: files[2].name.
func joinField(within string, pointer jsontext.Pointer) string {
	var b strings.Builder
	b.WriteString(within)
	for token := range pointer.Tokens() {
		switch {
		case token != "" && strings.Trim(token, "0123456789") == "":
			fmt.Fprintf(&b, "[%s]", problem.Cut(token))
		case b.Len() == 0:
			b.WriteString(problem.Printable(problem.Cut(token)))
		default:
			b.WriteString("." + problem.Printable(problem.Cut(token)))
		}
	}
	return b.String()
}

// MoveTo moves the entries of files to the inputs, and leaves files empty. A form's file parts
// may be among the inputs already. Large entries go to the workspace: they would else be in
// memory while the run waits.
func (files *Files) MoveTo(inputs *executor.Inputs, work *intake.Workspace) error {
	entries := *files
	*files = nil
	for _, f := range entries {
		field := fmt.Sprintf("files[%d]", len(inputs.List))
		from := 0
		for _, given := range []*Text{f.Content, f.Text, f.URL, f.ID} {
			if given != nil {
				from++
			}
		}
		switch {
		case from != 1:
			return problem.Malformed(field, "must have exactly one of content, text, url and id")
		case f.URL != nil && *f.URL == "":
			return problem.Unfit(field+".url", "is empty")
		case f.ID != nil && *f.ID == "":
			return problem.Unfit(field+".id", "is empty")
		}
		name := ""
		switch {
		case f.Name != nil:
			name = string(*f.Name)
		case f.URL != nil:
			name = fetch.NameOf(string(*f.URL))
		}
		in, p := inputs.Add(field, name)
		if p != nil {
			return p
		}
		if f.URL != nil {
			in.URL = string(*f.URL)
			continue
		}
		if f.ID != nil {
			in.ID = string(*f.ID)
			continue
		}
		data, p := f.data(field)
		if p != nil {
			return p
		}
		if size := int64(len(data)); size <= intake.SpoolMemory && inputs.Held+size <= executor.MaxHeld {
			in.Data, in.Size = data, size
			inputs.Held += size
			continue
		}
		var err error
		if in.Path, in.Size, err = work.Save(bytes.NewReader(data)); err != nil {
			return err
		}
	}
	return nil
}

// data is what an entry itself holds.
func (f File) data(field string) ([]byte, *problem.Error) {
	if f.Text != nil {
		return []byte(*f.Text), nil
	}
	data, why := decodeBase64(string(*f.Content))
	if why != "" {
		return nil, problem.Malformed(field+".content", "%s", why)
	}
	return data, nil
}

// decodeBase64 takes the standard alphabet with its padding (RFC 4648, section
// 4) and nothing else; encoding/base64 would pass over line breaks.
func decodeBase64(s string) (data []byte, why string) {
	if strings.ContainsAny(s, "\r\n") {
		return nil, "is not base64: it has line breaks in it"
	}
	data, err := base64.StdEncoding.Strict().DecodeString(s)
	if err != nil {
		return nil, "is not base64 (the standard alphabet, with padding)"
	}
	return data, ""
}
