package executor

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"sync"

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
// Its methods may be called at once, as who waits for a run no longer looks at it.
type partial struct {
	mu       sync.Mutex
	notebook []byte // as it was sent in
	cells    map[int]*partialCell
	displays map[string]map[int][]int // indexes of outputs, by display id and cell
	left     int64                    // bytes that may still be kept
	cut      bool                     // something was not kept
}

type partialCell struct {
	outputs []json.RawMessage
	ids     []string // of the displays among them
}

func newPartial(spec runner.Spec) *partial {
	return &partial{
		notebook: spec.Notebook,
		cells:    map[int]*partialCell{},
		displays: map[string]map[int][]int{},
		left:     2*spec.Limits.Output + partialSlack,
	}
}

// add takes one event, whose output is hostile.
func (p *partial) add(e runner.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if e.Kind == runner.EventClear {
		p.clear(e.Cell)
		return
	}
	// What is cleared or replaced counts on: the bound is on work as well.
	if p.left -= int64(len(e.Output)) + eventOverhead; p.left < 0 || !json.Valid(e.Output) {
		p.cut = true
		return
	}
	output, id := withoutTransient(e.Output)
	// As nbclient does it, what is displayed under an id that is there updates too.
	updated := id == "" || p.update(id, output)
	if updated && e.Kind == runner.EventUpdate {
		return
	}
	// What updates a display that is not known here counts as one: what comes of
	// a sandbox that died should rather be more than less.
	cell := p.cells[e.Cell]
	if cell == nil {
		cell = &partialCell{}
		p.cells[e.Cell] = cell
	}
	if id != "" {
		if p.displays[id] == nil {
			p.displays[id] = map[int][]int{}
		}
		p.displays[id][e.Cell] = append(p.displays[id][e.Cell], len(cell.outputs))
		cell.ids = append(cell.ids, id)
	}
	cell.outputs = append(cell.outputs, output)
}

func (p *partial) clear(i int) {
	if cell := p.cells[i]; cell != nil {
		for _, id := range cell.ids {
			delete(p.displays[id], i)
		}
		delete(p.cells, i)
	}
}

// update replaces all that is displayed under id, in any cell, and reports
// whether anything is.
func (p *partial) update(id string, output json.RawMessage) bool {
	for i, places := range p.displays[id] {
		for _, place := range places {
			if p.left -= eventOverhead; p.left < 0 {
				p.cut = true
				return true
			}
			p.cells[i].outputs[place] = output
		}
	}
	return len(p.displays[id]) > 0
}

// withoutTransient splits from an output what nbformat does not keep: the id of
// a display that may be updated.
func withoutTransient(output json.RawMessage) (json.RawMessage, string) {
	var o map[string]json.RawMessage
	if !bytes.Contains(output, []byte(`"transient"`)) || json.Unmarshal(output, &o) != nil {
		return output, ""
	}
	var transient struct {
		DisplayID string `json:"display_id"`
	}
	_ = json.Unmarshal(o["transient"], &transient) // another type than expected is no id
	delete(o, "transient")
	return mustJSON(o), transient.DisplayID
}

// executed is the notebook with the outputs so far, or nil if there are none.
func (p *partial) executed() []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
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
