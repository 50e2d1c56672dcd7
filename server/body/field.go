package body

import (
	"errors"
	"math"
	"strconv"
	"strings"

	"notebox/executor/problem"
)

// Field is one of a request that may come as the part of a form, or in the query.
type Field struct {
	Name string
	Set  func(raw []byte) error
}

// Fields are those of one request.
type Fields []Field

// TextField is a text.
func TextField(name string, to **Text) Field {
	return Field{name, func(raw []byte) error { *to = new(Text(raw)); return nil }}
}

// JSONField is JSON text.
func JSONField(name string, to any) Field {
	return Field{name, func(raw []byte) error { return DecodeJSON(name, raw, to) }}
}

// SecondsField is a number.
func SecondsField(name string, to **Seconds) Field {
	return Field{name, func(raw []byte) error {
		f, err := strconv.ParseFloat(string(raw), 64)
		if err != nil && !errors.Is(err, strconv.ErrRange) {
			return problem.Malformed(name, "must be a number")
		}
		if math.IsNaN(f) {
			return problem.Unfit(name, "must be a number of seconds above 0")
		}
		*to = new(Seconds(f))
		return nil
	}}
}

// BoolField is a truth value.
func BoolField(name string, to **bool) Field {
	return Field{name, func(raw []byte) error {
		switch strings.ToLower(string(raw)) {
		case "true", "1":
			*to = new(true)
		case "false", "0":
			*to = new(false)
		default:
			return problem.Malformed(name, "must be true or false")
		}
		return nil
	}}
}
