package dify

import (
	"fmt"
	"net/http"
	"strings"
)

// InvalidError is a request that is not of the schema, or that asks for what cannot be.
type InvalidError struct{ Details []Detail }

// Detail is one thing that is wrong with a request, as FastAPI writes it.
type Detail struct {
	Loc   []any  `json:"loc"` // where: "body", and the field
	Msg   string `json:"msg"`
	Type  string `json:"type"`            // what kind of error, in pydantic's words
	Input any    `json:"input,omitempty"` // what was sent, if it is short
}

func (e *InvalidError) Error() string {
	var all []string
	for _, d := range e.Details {
		where := ""
		for _, part := range d.Loc {
			where += fmt.Sprint(part) + ": "
		}
		all = append(all, where+d.Msg)
	}
	return strings.Join(all, "; ")
}

// The types of details, as pydantic calls them.
const (
	typeMissing = "missing"
	typeString  = "string_type"
	typeObject  = "model_attributes_type"
	typeJSON    = "json_invalid"
	typeValue   = "value_error"
)

// invalid is an InvalidError about one field.
func invalid(field, format string, args ...any) error {
	return &InvalidError{[]Detail{{Loc: []any{"body", field}, Msg: fmt.Sprintf(format, args...), Type: typeValue}}}
}

// Errors of this protocol are told by few statuses. statusOf is what another one of the
// service's is here: what is over is not found, and what is wrong is unprocessable.
func statusOf(status int) int {
	switch status {
	case http.StatusGone:
		return http.StatusNotFound
	case http.StatusBadRequest, http.StatusConflict, http.StatusUnsupportedMediaType:
		return http.StatusUnprocessableEntity
	}
	return status
}

// Failure is the status and the body of an error: {"detail": …}. text is public; field is
// where the error is in the request, or empty. Of an InvalidError, err, the details are taken.
func Failure(status int, field, text string, err *InvalidError) (int, any) {
	type body struct {
		Detail any `json:"detail"`
	}
	if err != nil {
		return http.StatusUnprocessableEntity, body{err.Details}
	}
	status = statusOf(status)
	if status == http.StatusUnprocessableEntity {
		loc := []any{"body"}
		if field != "" {
			loc = append(loc, field)
		}
		return status, body{[]Detail{{Loc: loc, Msg: text, Type: typeValue}}}
	}
	if field != "" {
		text = field + ": " + text
	}
	return status, body{text}
}
