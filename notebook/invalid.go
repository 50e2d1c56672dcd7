package notebook

import (
	"errors"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
)

// InvalidError says what is wrong with a notebook or with code. Its text holds
// nothing of ours and may be shown to the caller.
type InvalidError struct {
	Field  string // where, such as "cells[3].source"; "" for the notebook as a whole
	Reason string // what, such as "is a number, want a string or a list of strings"
}

func (e *InvalidError) Error() string {
	if e.Field == "" {
		return "the notebook " + e.Reason
	}
	return e.Field + " " + e.Reason
}

func invalid(field, format string, args ...any) error {
	return &InvalidError{Field: field, Reason: fmt.Sprintf(format, args...)}
}

// invalidJSON makes an InvalidError of what reading field returned.
func invalidJSON(field string, err error) error {
	if known := new(InvalidError); errors.As(err, &known) {
		return err
	}
	if syntax := new(jsontext.SyntacticError); errors.As(err, &syntax) {
		return invalid(field, "is not valid JSON: %v at byte %d", syntax.Err, syntax.ByteOffset)
	}
	return invalid(field, "%v", err)
}

// clip shortens what is quoted of the caller's in an error or a reason.
func clip(s string) string {
	const most = 128 // bytes: a name, not a text
	if len(s) <= most {
		return s
	}
	return head(s, most) + "…"
}
