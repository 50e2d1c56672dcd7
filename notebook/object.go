package notebook

import (
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// object is a JSON object whose members keep their order and their bytes.
type object []member

type member struct {
	name  string
	value jsontext.Value
}

// exact reads what a caller sent: broken UTF-8 and lone surrogates are refused.
// Duplicate names are refused by readObject, where they would be ambiguous; the
// option only keeps jsontext from remembering each name of each inner object.
var exact = []jsontext.Options{jsontext.AllowDuplicateNames(true)}

// readObject returns the members of raw, which stands at field. The error is an
// *InvalidError.
func readObject(field string, raw jsontext.Value) (object, error) {
	var o object
	seen := map[string]bool{}
	err := members(raw, exact, func(name string, value jsontext.Value) error {
		if seen[name] {
			return invalid(field, "has the field %q twice", clip(name))
		}
		if len(o) == maxMembers {
			return invalid(field, "has more than %d fields", maxMembers)
		}
		seen[name] = true
		o = append(o, member{name, value})
		return nil
	})
	if err != nil {
		return nil, invalidJSON(field, err)
	}
	return o, nil
}

// get returns the value of name, nil if there is none.
func (o object) get(name string) jsontext.Value {
	for _, m := range o {
		if m.name == name {
			return m.value
		}
	}
	return nil
}

// set returns o with name's value replaced or, if there is none, added.
func (o object) set(name string, value jsontext.Value) object {
	for i, m := range o {
		if m.name == name {
			o[i].value = value
			return o
		}
	}
	return append(o, member{name, value})
}

// without returns o without the members of these names.
func (o object) without(names ...string) object {
	return slices.DeleteFunc(o, func(m member) bool { return slices.Contains(names, m.name) })
}

// appendTo appends o as JSON.
func (o object) appendTo(dst []byte) []byte {
	dst = append(dst, '{')
	for i, m := range o {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(quote(dst, m.name), ':')
		dst = append(dst, m.value...)
	}
	return append(dst, '}')
}

// quote appends s, which is valid UTF-8, as a JSON string.
func quote(dst []byte, s string) []byte {
	dst, _ = jsontext.AppendQuote(dst, s) // fails on broken UTF-8 alone
	return dst
}
