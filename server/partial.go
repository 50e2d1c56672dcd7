package server

import (
	"encoding/json"
	"maps"
	"slices"

	"notebox/runner"
)

const (
	// partialSlack is how much more than the output limit is kept of a run's
	// events, in bytes: the limit counts contents, not their JSON.
	partialSlack = 1 << 20
	// eventOverhead is counted for each event, which costs its keeping too.
	eventOverhead = 64
)

// partial keeps a run's outputs as they happen. It is what is left where the
// sandbox died before it could send the executed notebook.
type partial struct {
	notebook []byte // as it was sent in
	cells    map[int]*partialCell
	left     int64 // bytes that may still be kept
	cut      bool  // something was not kept
}

type partialCell struct {
	outputs []json.RawMessage
	updates map[string]int // index of the last update of a display, by its id
}

func newPartial(spec runner.Spec) *partial {
	return &partial{notebook: spec.Notebook, cells: map[int]*partialCell{}, left: 2*spec.Limits.Output + partialSlack}
}

// add takes one event, whose output is hostile.
func (p *partial) add(e runner.Event) {
	if e.Kind == runner.EventClear {
		delete(p.cells, e.Cell)
		return
	}
	// What is cleared or replaced counts on: the bound is on work as well.
	if p.left -= int64(len(e.Output)) + eventOverhead; p.left < 0 || !json.Valid(e.Output) {
		p.cut = true
		return
	}
	cell := p.cells[e.Cell]
	if cell == nil {
		cell = &partialCell{updates: map[string]int{}}
		p.cells[e.Cell] = cell
	}
	if e.Kind == runner.EventUpdate {
		// Which display is updated is not known, as nbformat does not keep its id;
		// of its updates the last one counts.
		id := displayID(e.Output)
		if i, ok := cell.updates[id]; ok {
			cell.outputs[i] = e.Output
			return
		}
		cell.updates[id] = len(cell.outputs)
	}
	cell.outputs = append(cell.outputs, e.Output)
}

func displayID(output []byte) string {
	var o struct {
		Transient struct {
			DisplayID string `json:"display_id"`
		} `json:"transient"`
	}
	_ = json.Unmarshal(output, &o) // an output without an id has the empty one
	return o.Transient.DisplayID
}

// executed is the notebook with the outputs so far, or nil where there are none.
func (p *partial) executed() []byte {
	var book map[string]json.RawMessage
	var cells []map[string]json.RawMessage
	if len(p.cells) == 0 || json.Unmarshal(p.notebook, &book) != nil || json.Unmarshal(book["cells"], &cells) != nil {
		return nil
	}
	for _, i := range slices.Sorted(maps.Keys(p.cells)) {
		if i >= 0 && i < len(cells) && string(cells[i]["cell_type"]) == `"code"` {
			cells[i]["outputs"] = mustJSON(p.cells[i].outputs)
		}
	}
	book["cells"] = mustJSON(cells)
	return mustJSON(book)
}

// mustJSON encodes what consists of valid JSON.
func mustJSON(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return raw
}
