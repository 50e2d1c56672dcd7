package notebook

import "github.com/go-json-experiment/json/jsontext"

// cellHead is what there is to know of a cell besides its outputs.
type cellHead struct {
	index    int
	count    string         // its execution count; "" if it has none
	source   jsontext.Value // nil if it has none
	mayRaise bool           // an error of it is expected and ended nothing
}

// readCell reads one cell of an executed notebook. outputs is nil if it has
// none, as a cell that is no code has.
func readCell(i int, raw jsontext.Value) (head cellHead, outputs jsontext.Value, err error) {
	head.index = i
	var kind string
	err = members(raw, lenient, func(name string, value jsontext.Value) error {
		switch name {
		case "cell_type":
			kind, _ = unquote(value)
		case "execution_count":
			if value.Kind() == jsontext.KindNumber {
				head.count = string(value)
			}
		case "source":
			head.source = value
		case "metadata":
			head.mayRaise = tagged(value, "raises-exception")
		case "outputs":
			outputs = value
		}
		return nil
	})
	if kind != "code" {
		outputs = nil
	}
	return head, outputs, err
}

// tagged reports whether a cell's metadata holds the tag.
func tagged(metadata jsontext.Value, tag string) bool {
	found := false
	_ = elements(lookup(metadata, "tags"), lenient, func(_ int, value jsontext.Value) error {
		text, ok := unquote(value)
		found = found || ok && text == tag
		return nil
	})
	return found
}
