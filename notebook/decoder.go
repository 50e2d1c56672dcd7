package notebook

import "github.com/go-json-experiment/json/jsontext"

// Decoder decodes the outputs of one run: while it goes on, one by one with
// Output, Update and Clear, and in the end all of them with Decode. It is not for
// concurrent use.
type Decoder struct {
	limits Limits
	names  names
	single reading     // of one output at a time
	stream *liveStream // to which the next output may add; nil if none is
}

// NewDecoder returns a Decoder for one run.
func NewDecoder(limits Limits) *Decoder {
	d := &Decoder{limits: limits.withDefaults()}
	d.single = reading{limits: d.limits, name: d.names.give, live: true}
	return d
}

// Output decodes one output of the given cell as it happens: raw is what will
// stand in the executed notebook's outputs, and may have a display's id as the
// Jupyter protocol's messages do, transient.display_id. ok is false if
// nothing of it can be shown.
//
// A Blob in it has its final name: Decode gives the same bytes the same name.
//
// The text of a stream adds to the output before, if that is of the same cell
// and name, as adjacent ones are one in Decode's Result. It is resolved as there,
// so that a progress bar replaces its line: see Output.Replaced.
//
// What Limits keep out of a streamed output (they bound the blobs of all of them)
// is not reported here, and is counted anew in Decode.
func (d *Decoder) Output(cell int, raw []byte) (out Output, ok bool) {
	out, text := d.one(cell, raw)
	switch {
	case text != nil:
		return d.piece(text)
	case out.Type == "":
		return Output{}, false
	}
	d.stream = nil
	return out, true
}

// Update decodes an update_display_data of the given cell, as Output does: what
// is displayed under out.DisplayID, in any cell, now has out.Data.
func (d *Decoder) Update(cell int, raw []byte) (out Output, ok bool) {
	out, _ = d.one(cell, raw)
	return out, out.DisplayID != ""
}

// Clear takes a clear_output of the given cell.
func (d *Decoder) Clear(cell int) {
	if d.stream != nil && d.stream.cell == cell {
		d.stream = nil
	}
}

// one decodes one output. Of a stream it returns the raw text; of what is to be
// dropped, an Output without a type.
func (d *Decoder) one(cell int, raw []byte) (Output, *pendingStream) {
	r := &d.single
	r.outputs, r.pending, r.dropped, r.lost = nil, nil, nil, 0
	r.output(cellHead{index: cell, mayRaise: true}, withoutNaN(raw))
	if len(r.outputs) == 0 {
		return Output{}, r.pending
	}
	return r.outputs[0], nil
}

// piece makes an output of the next piece of a stream.
func (d *Decoder) piece(p *pendingStream) (Output, bool) {
	if d.stream == nil || d.stream.cell != p.cell || d.stream.name != p.name {
		d.stream = newLiveStream(p.cell, p.name)
	}
	text, replaced := d.stream.add(p.text.String())
	text = d.single.clamp(p.cell, "", "the text of "+p.name, text, d.limits.MaxTextBytes)
	if text == "" && replaced == 0 {
		return Output{}, false
	}
	return Output{Cell: p.cell, Type: TypeStream, Name: p.name, Text: text, Replaced: replaced}, true
}

// Decode decodes the executed notebook, after the last Output.
//
// Names are claimed by content and occurrence: of two equal images, the first
// has the name under which these bytes were first streamed, the second the next
// one, or a new one. What was streamed and then cleared or updated has no name
// in the Result.
//
// The error is an *InvalidError: executed is longer than the limit, is not JSON
// or not an nbformat 4 notebook. Decode may be called again, with another one.
func (d *Decoder) Decode(executed []byte) (*Result, error) {
	cells, err := d.cells(executed)
	if err != nil {
		return nil, err
	}
	r := &reading{limits: d.limits, name: d.names.clone().claim}
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
