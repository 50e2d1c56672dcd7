package notebook

import "github.com/go-json-experiment/json/jsontext"

// Decoder decodes the outputs of one run: while it goes on, one by one with
// Output, and in the end all of them with Decode. It is not for concurrent use.
type Decoder struct {
	limits Limits
	names  names
	stream reading
}

// NewDecoder returns a Decoder for one run.
func NewDecoder(limits Limits) *Decoder {
	d := &Decoder{limits: limits.withDefaults()}
	d.stream = reading{limits: d.limits, name: d.names.give}
	return d
}

// Output decodes one output of the given cell as it happens: raw is what will
// stand in the executed notebook's outputs. ok is false where nothing of it can
// be shown.
//
// A Blob in it has its final name: Decode gives the same bytes the same name. A
// stream's text is normalised by itself; the final Result has the whole of it,
// so that a progress bar is many lines here and one there. What Limits keep out
// of a streamed output (they bound the blobs of all of them) is not reported
// here, and is counted anew in Decode.
func (d *Decoder) Output(cell int, raw []byte) (out Output, ok bool) {
	r := &d.stream
	r.outputs, r.dropped, r.lost = nil, nil, 0
	r.output(cellHead{index: cell, mayRaise: true}, withoutNaN(raw))
	r.flush()
	if len(r.outputs) == 0 {
		return Output{}, false
	}
	return r.outputs[0], true
}

// Decode decodes the executed notebook, once and after the last Output.
//
// Names are claimed by content and occurrence: of two equal images, the first
// has the name under which these bytes were first streamed, the second the next
// one, or a new one. What was streamed and then cleared or updated has no name
// in the Result.
//
// The error is an *InvalidError: executed is longer than the limit, is not JSON
// or not an nbformat 4 notebook.
func (d *Decoder) Decode(executed []byte) (*Result, error) {
	cells, err := d.cells(executed)
	if err != nil {
		return nil, err
	}
	r := &reading{limits: d.limits, name: d.names.claim}
	err = elements(cells, lenient, func(i int, raw jsontext.Value) error {
		if i == MaxCells {
			r.cut(i, "", "the notebook has more than %d cells", MaxCells)
			return errStop
		}
		r.cell(i, raw)
		return nil
	})
	if err != nil {
		return nil, invalidJSON("cells", err)
	}
	return r.result(), nil
}

// Decode decodes an executed notebook that nothing was streamed of; see
// Decoder.Decode.
func Decode(executed []byte, limits Limits) (*Result, error) {
	return NewDecoder(limits).Decode(executed)
}

// cells returns the list of cells of the notebook raw.
func (d *Decoder) cells(raw []byte) (jsontext.Value, error) {
	if int64(len(raw)) > d.limits.MaxBytes {
		return nil, invalid("", "has %d bytes, the limit is %d", len(raw), d.limits.MaxBytes)
	}
	var major, cells jsontext.Value
	err := members(withoutNaN(raw), lenient, func(name string, value jsontext.Value) error {
		switch name {
		case "nbformat":
			major = value
		case "cells":
			cells = value
		}
		return nil
	})
	switch {
	case err != nil:
		return nil, invalidJSON("", err)
	case string(major) != "4":
		return nil, invalid("nbformat", "is %q, want 4", clip(string(major)))
	case cells.Kind() != jsontext.KindBeginArray:
		return nil, invalid("cells", "is not a list")
	}
	return cells, nil
}
