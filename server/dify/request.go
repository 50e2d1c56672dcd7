package dify

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// param is a field of a request; all are strings.
type param struct {
	name     string
	required bool
	fallback string // if it is not given; null is as good
}

// Fields are those of a request, by name.
type Fields map[string]string

// maxEchoed bounds what an error repeats of a request, in bytes.
const maxEchoed = 200

// quote repeats a caller's text in an error, in ASCII, cut to a sensible length.
func quote(s string) string {
	if len(s) > maxEchoed {
		s = strings.ToValidUTF8(s[:maxEchoed], "") + "…"
	}
	return strconv.Quote(s)
}

// lenient reads what the wrapper reads, except for text that is not UTF-8, which would
// come out as other text.
var lenient = json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(false))

// Decode reads the body of the call. isJSON is whether its Content-Type says that it is.
func (c Call) Decode(raw []byte, isJSON bool) (Fields, error) {
	switch empty := len(bytes.TrimSpace(raw)) == 0; {
	case empty && !slices.ContainsFunc(c.params, func(p param) bool { return p.required }):
		raw, isJSON = []byte("{}"), true
	case empty:
		return nil, &InvalidError{[]Detail{{Loc: []any{"body"}, Msg: "Field required", Type: typeMissing}}}
	}
	if !isJSON {
		return nil, &InvalidError{[]Detail{{Loc: []any{"body"}, Type: typeObject,
			Msg: "Input should be a JSON object, sent with the Content-Type application/json"}}}
	}
	fields := members{call: c}
	if err := json.Unmarshal(raw, &fields, lenient); err != nil {
		return nil, notJSON(err)
	}
	if fields.given == nil {
		return nil, &InvalidError{[]Detail{{Loc: []any{"body"}, Msg: "Input should be a JSON object", Type: typeObject}}}
	}
	out := Fields{}
	var wrong []Detail
	for _, p := range c.params {
		value, given := fields.given[p.name]
		var text string
		switch {
		case !given && p.required:
			wrong = append(wrong, Detail{Loc: []any{"body", p.name}, Msg: "Field required", Type: typeMissing, Input: echoed(raw)})
		case !given, !p.required && value.Kind() == jsontext.KindNull:
			out[p.name] = p.fallback
		case value.Kind() != jsontext.KindString:
			wrong = append(wrong, Detail{Loc: []any{"body", p.name}, Msg: "Input should be a valid string", Type: typeString, Input: echoed(value)})
		default:
			if err := json.Unmarshal(value, &text); err != nil {
				return nil, notJSON(err)
			}
			out[p.name] = text
		}
	}
	if wrong != nil {
		return nil, &InvalidError{wrong}
	}
	return out, nil
}

// members are those of an object that are fields of a call. Others are passed over, and
// not kept: there may be millions.
type members struct {
	call  Call
	given map[string]jsontext.Value // nil if it was no object
}

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (m *members) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	if dec.PeekKind() != jsontext.KindBeginObject {
		return dec.SkipValue()
	}
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	for m.given = map[string]jsontext.Value{}; dec.PeekKind() != jsontext.KindEndObject; {
		token, err := dec.ReadToken()
		if err != nil {
			return err
		}
		name := token.String()
		value, err := dec.ReadValue()
		if err != nil {
			return err
		}
		if slices.ContainsFunc(m.call.params, func(p param) bool { return p.name == name }) {
			m.given[name] = value.Clone()
		}
	}
	_, err := dec.ReadToken()
	return err
}

// echoed is what was sent, or nothing if that is long.
func echoed(value jsontext.Value) any {
	if len(value) > maxEchoed {
		return nil
	}
	return value
}

func notJSON(err error) error {
	var syntactic *jsontext.SyntacticError
	var semantic *json.SemanticError
	switch {
	case errors.As(err, &semantic):
		return &InvalidError{[]Detail{{Loc: []any{"body"}, Msg: "Input should be a JSON object", Type: typeObject}}}
	case errors.As(err, &syntactic):
		return &InvalidError{[]Detail{{Loc: []any{"body", syntactic.ByteOffset}, Type: typeJSON,
			Msg: fmt.Sprintf("JSON decode error: %s", syntactic.Err)}}}
	}
	return &InvalidError{[]Detail{{Loc: []any{"body"}, Msg: "JSON decode error", Type: typeJSON}}}
}
