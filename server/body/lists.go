package body

import (
	"errors"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"notebox/executor"
	"notebox/executor/problem"
	"notebox/notebook"
)

// maxDependencies is above what package dependencies takes, which says so better.
const maxDependencies = 1000

// These are the lists of requests. Decoding stops at a list's limit: an entry of three
// bytes is a hundred in memory.
type (
	Files     []File
	Cells     []Text
	Packages  []Text
	Variables map[Text]Text
)

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (l *Files) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	return decodeList(dec, (*[]File)(l), executor.MaxInputs, "files")
}

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (l *Cells) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	return decodeList(dec, (*[]Text)(l), notebook.MaxCells, "cells")
}

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (l *Packages) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	return decodeList(dec, (*[]Text)(l), maxDependencies, problem.PackagesField)
}

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (v *Variables) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	if given, err := open(dec, jsontext.KindBeginObject, "must be an object"); !given {
		return err
	}
	for *v = (Variables{}); dec.PeekKind() != jsontext.KindEndObject; {
		if len(*v) == executor.MaxEnv {
			return problem.Unfit("env", "there are more than %d variables", executor.MaxEnv)
		}
		var name, value Text
		if err := json.UnmarshalDecode(dec, &name); err != nil {
			return err
		}
		if err := json.UnmarshalDecode(dec, &value); err != nil {
			return err
		}
		(*v)[name] = value
	}
	_, err := dec.ReadToken()
	return err
}

// Strings are the variables as strings; nil for none.
func (v Variables) Strings() map[string]string {
	if v == nil {
		return nil
	}
	out := make(map[string]string, len(v))
	for name, value := range v {
		out[string(name)] = string(value)
	}
	return out
}

// decodeList decodes a list of at most so many entries; null is none.
func decodeList[T any](dec *jsontext.Decoder, list *[]T, most int, field string) error {
	if given, err := open(dec, jsontext.KindBeginArray, "must be a list"); !given {
		return err
	}
	for *list = []T{}; dec.PeekKind() != jsontext.KindEndArray; {
		if len(*list) == most {
			return problem.Unfit(field, "there are more than %d", most)
		}
		var one T
		if err := json.UnmarshalDecode(dec, &one); err != nil {
			return err
		}
		*list = append(*list, one)
	}
	_, err := dec.ReadToken()
	return err
}

// open reads the beginning of a list or object; given is false for null.
func open(dec *jsontext.Decoder, begin jsontext.Kind, otherwise string) (given bool, err error) {
	switch kind := dec.PeekKind(); kind {
	case begin:
		_, err = dec.ReadToken()
		return err == nil, err
	default:
		if err = dec.SkipValue(); err == nil && kind != jsontext.KindNull {
			err = errors.New(otherwise)
		}
		return false, err
	}
}
