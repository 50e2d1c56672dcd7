package notebook

import (
	"encoding/json"

	"github.com/go-json-experiment/json/jsontext"
)

// Source is one cell as its author wrote it.
type Source struct {
	Kind string // nbformat's cell_type: "code", "markdown", "raw"
	Text string
}

// widgetState is the media type of the state of a notebook's widgets, which nbconvert leaves
// in the metadata.
const widgetState = "application/vnd.jupyter.widget-state+json"

// Sources returns the cells of an executed notebook, by the indices that Output.Cell has, and
// the state in which a run left its widgets, nil if there is none. Of limits, MaxBytes and
// MaxTextBytes count. The error is an *InvalidError, as that of Decode.
func Sources(executed []byte, limits Limits) (cells []Source, widgets json.RawMessage, err error) {
	d := NewDecoder(limits)
	list, err := d.cells(executed)
	if err != nil {
		return nil, nil, err
	}
	err = elements(list, lenient, func(i int, raw jsontext.Value) error {
		if i == MaxCells {
			return errStop
		}
		cells = append(cells, sourceOf(raw))
		return nil
	})
	if err != nil {
		return nil, nil, invalidJSON("cells", err)
	}
	state := lookup(lookup(lookup(withoutNaN(executed), "metadata"), "widgets"), widgetState)
	if state != nil {
		r := &reading{limits: d.limits}
		if datum, ok := r.jsonDatum(0, widgetState, state); ok {
			widgets = datum.JSON
		}
	}
	return cells, widgets, nil
}

// sourceOf reads one cell; what is none has no kind.
func sourceOf(raw jsontext.Value) (s Source) {
	_ = members(raw, lenient, func(name string, value jsontext.Value) error {
		switch name {
		case "cell_type":
			s.Kind, _ = unquote(value)
		case "source":
			s.Text, _ = multiline(value)
		}
		return nil
	})
	return s
}
