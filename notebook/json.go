package notebook

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// MaxDepth bounds how deep objects and lists may nest in a caller's notebook
// and in one JSON output. Python's json and nbformat, through which both pass,
// give up somewhere under 1,000 levels; notebooks that people write stay under 30.
const MaxDepth = 256

// errStop ends a walk early and is no failure.
var errStop = errors.New("stop")

// lenient reads what an untrusted kernel wrote: duplicate names and broken
// UTF-8 or surrogates (read as U+FFFD) are no reason to lose the rest.
var lenient = []jsontext.Options{
	jsontext.AllowDuplicateNames(true),
	jsontext.AllowInvalidUTF8(true),
}

// members calls fn for each member of the JSON object raw, in order. Each value
// is a part of raw, not a copy. fn may return errStop.
func members(raw []byte, opts []jsontext.Options, fn func(name string, value jsontext.Value) error) error {
	return walk(raw, jsontext.KindBeginObject, opts, func(dec *jsontext.Decoder) error {
		name, err := dec.ReadToken()
		if err != nil {
			return err
		}
		text := name.String()
		value, err := next(dec, raw)
		if err != nil {
			return err
		}
		return fn(text, value)
	})
}

// elements calls fn for each element of the JSON list raw, as members does.
func elements(raw []byte, opts []jsontext.Options, fn func(i int, value jsontext.Value) error) error {
	i := -1
	return walk(raw, jsontext.KindBeginArray, opts, func(dec *jsontext.Decoder) error {
		value, err := next(dec, raw)
		if err != nil {
			return err
		}
		i++
		return fn(i, value)
	})
}

// walk calls item until the object or list that raw consists of is read. It
// also refuses what follows after it.
func walk(raw []byte, begin jsontext.Kind, opts []jsontext.Options, item func(*jsontext.Decoder) error) error {
	dec := jsontext.NewDecoder(bytes.NewBuffer(raw), opts...)
	tok, err := dec.ReadToken()
	if errors.Is(err, io.EOF) {
		return errors.New("is empty")
	}
	if err != nil {
		return err
	}
	if tok.Kind() != begin {
		return fmt.Errorf("is %s, want %s", kindName(tok.Kind()), kindName(begin))
	}
	for kind := dec.PeekKind(); kind != jsontext.KindEndObject && kind != jsontext.KindEndArray; kind = dec.PeekKind() {
		if err := item(dec); err != nil {
			if errors.Is(err, errStop) {
				return nil
			}
			return err
		}
	}
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	if _, err := dec.ReadToken(); !errors.Is(err, io.EOF) {
		return errors.New("has data after its end")
	}
	return nil
}

// next reads one value. The decoder's own slice is valid until its next call
// only, so the value is cut out of raw by its offset.
func next(dec *jsontext.Decoder, raw []byte) (jsontext.Value, error) {
	value, err := dec.ReadValue()
	if err != nil {
		return nil, err
	}
	end := int(dec.InputOffset())
	return jsontext.Value(raw[end-len(value) : end]), nil
}

// unquote returns the text of the JSON string v. Invalid UTF-8 and lone
// surrogates become U+FFFD.
func unquote(v jsontext.Value) (string, bool) {
	if v.Kind() != jsontext.KindString {
		return "", false
	}
	// The only error left in a string that was read before is broken UTF-8.
	text, _ := jsontext.AppendUnquote(nil, []byte(v))
	return string(text), true
}

// multiline returns nbformat's multiline_string, a string or a list of strings
// that is to be joined:
// https://nbformat.readthedocs.io/en/latest/format_description.html
func multiline(v jsontext.Value) (string, bool) {
	if v.Kind() != jsontext.KindBeginArray {
		return unquote(v)
	}
	var joined strings.Builder
	ok := true
	err := elements(v, lenient, func(_ int, part jsontext.Value) error {
		var text string
		if text, ok = unquote(part); !ok {
			return errStop
		}
		joined.WriteString(text)
		return nil
	})
	return joined.String(), ok && err == nil
}

// Shape is what raw JSON costs to read.
type Shape struct {
	Depth  int // how deep objects and lists nest
	Values int // values and names, or some more
	Names  int // the most names of objects that are open at one time: readers keep them to find one that is there twice
}

// ShapeOf measures raw. It needs little memory, no stack and no valid JSON, so that it can
// stand before every parser. Names of objects deeper than MaxDepth are not counted.
func ShapeOf(raw []byte) (s Shape) {
	var names [MaxDepth + 2]int // by level
	level, open, quoted := 0, 0, false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case c == '"':
			quoted = !quoted
		case quoted && c == '\\':
			i++
		case quoted:
		case c == '{' || c == '[':
			level++
			s.Depth = max(s.Depth, level)
			s.Values++
		case c == '}' || c == ']':
			if level >= 0 && level < len(names) {
				open -= names[level]
				names[level] = 0
			}
			level--
		case c == ',':
			s.Values++
		case c == ':':
			s.Values++
			if level >= 0 && level < len(names) {
				names[level]++
				open++
				s.Names = max(s.Names, open)
			}
		}
	}
	return s
}

// Depth returns how deep objects and lists nest in raw JSON, see ShapeOf.
func Depth(raw []byte) int { return ShapeOf(raw).Depth }

// withoutNaN returns raw with NaN, Infinity and -Infinity, which Python's json
// writes and JSON does not have, replaced by null. Without them it is raw itself.
func withoutNaN(raw []byte) []byte {
	if !bytes.Contains(raw, []byte("NaN")) && !bytes.Contains(raw, []byte("Infinity")) {
		return raw
	}
	var out []byte
	kept, quoted := 0, false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case c == '"':
			quoted = !quoted
		case quoted && c == '\\':
			i++
		case quoted:
		case c == 'N' || c == 'I' || c == '-':
			for _, word := range []string{"NaN", "-Infinity", "Infinity"} {
				if bytes.HasPrefix(raw[i:], []byte(word)) {
					out = append(append(out, raw[kept:i]...), "null"...)
					i += len(word) - 1
					kept = i + 1
					break
				}
			}
		}
	}
	return append(out, raw[kept:]...)
}

func kindName(k jsontext.Kind) string {
	switch k {
	case jsontext.KindBeginObject:
		return "an object"
	case jsontext.KindBeginArray:
		return "a list"
	case jsontext.KindString:
		return "a string"
	case jsontext.KindNumber:
		return "a number"
	case jsontext.KindTrue, jsontext.KindFalse:
		return "a boolean"
	default:
		return "null"
	}
}
