package notebook

import (
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// reading is what one walk over outputs gathers: over a whole notebook, or over
// the outputs that are streamed.
type reading struct {
	limits Limits
	name   func(content, blobKind) string
	live   bool // whether there are display ids, which nbformat does not keep

	outputs []Output
	pending *pendingStream
	failure *Exception
	dropped []Dropped

	read      int  // outputs looked at
	blobs     int  // so far
	lost      int  // entries that dropped had no room for
	surplus   int  // outputs over the limit
	truncated bool // by a limit
}

// pendingStream is a stream to which the next output may still add. Its text is
// raw: a progress bar's parts make sense only together.
type pendingStream struct {
	cell int
	name string
	text strings.Builder
}

// cell reads the outputs of one cell of the executed notebook.
func (r *reading) cell(i int, raw jsontext.Value) {
	head, outputs, err := readCell(i, raw)
	if err != nil {
		r.drop(i, "", "the cell %v", err)
		return
	}
	most := readPerOutput * r.limits.MaxOutputs
	if outputs == nil || r.read > most {
		return
	}
	err = elements(outputs, lenient, func(_ int, raw jsontext.Value) error {
		if r.read++; r.read > most {
			r.cut(i, "", "only the first %d outputs were read", most)
			return errStop
		}
		r.output(head, raw)
		return nil
	})
	if err != nil {
		r.drop(i, "", "the list of outputs %v", err)
	}
	r.flush()
	if r.failure == nil && !head.mayRaise {
		r.failure = r.exceptionGroup(head)
	}
}

// output reads one output.
func (r *reading) output(head cellHead, raw jsontext.Value) {
	if raw.Kind() != jsontext.KindBeginObject { // not worth a decoder: there may be millions
		r.drop(head.index, "", "the output is no object")
		return
	}
	var fields outputFields
	err := members(raw, lenient, func(name string, value jsontext.Value) error {
		fields.set(name, value)
		return nil
	})
	if err != nil {
		r.drop(head.index, "", "the output %v", err)
		return
	}
	kind, _ := unquote(fields.outputType)
	switch kind {
	case "stream":
		r.streamOutput(head.index, fields)
	case "display_data":
		r.display(head.index, TypeDisplay, fields)
	case "execute_result":
		r.display(head.index, TypeResult, fields)
	case "error":
		r.errorOutput(head, fields)
	default:
		r.drop(head.index, "", "the output is of the unknown type %q", clip(kind))
	}
}

// outputFields are the fields of nbformat's outputs that are read, of all types.
type outputFields struct {
	outputType, name, text, data, transient, ename, evalue, traceback jsontext.Value
}

func (f *outputFields) set(name string, value jsontext.Value) {
	switch name {
	case "output_type":
		f.outputType = value
	case "name":
		f.name = value
	case "text":
		f.text = value
	case "data":
		f.data = value
	case "transient":
		f.transient = value
	case "ename":
		f.ename = value
	case "evalue":
		f.evalue = value
	case "traceback":
		f.traceback = value
	}
}

func (r *reading) streamOutput(cell int, fields outputFields) {
	name, _ := unquote(fields.name)
	if name != "stdout" && name != "stderr" {
		r.drop(cell, "", "the stream is named %q, neither stdout nor stderr", clip(name))
		return
	}
	text, ok := multiline(fields.text)
	if !ok {
		r.drop(cell, "", "the text of %s is no string", name)
		return
	}
	if p := r.pending; p == nil || p.cell != cell || p.name != name {
		r.flush()
		r.pending = &pendingStream{cell: cell, name: name}
	}
	r.pending.text.WriteString(text)
}

func (r *reading) display(cell int, kind OutputType, fields outputFields) {
	bundle := r.bundle(cell, fields.data)
	if len(bundle) == 0 {
		return
	}
	out := Output{Cell: cell, Type: kind, Data: bundle}
	if id, ok := unquote(lookup(fields.transient, "display_id")); r.live && ok && len(id) <= maxDisplayID {
		out.DisplayID = id
	}
	r.add(out)
}

func (r *reading) errorOutput(head cellHead, fields outputFields) {
	name, _ := multiline(fields.ename)
	message, _ := multiline(fields.evalue)
	out := Output{
		Cell:      head.index,
		Type:      TypeError,
		Name:      clip(Plain(name)),
		Message:   r.clamp(head.index, "", "the exception's message", Plain(message), r.limits.MaxErrorBytes),
		Traceback: r.clamp(head.index, "", "the traceback", Plain(joinFrames(fields.traceback)), r.limits.MaxErrorBytes),
	}
	r.add(out)
	// IPython's showtraceback sends an error too and goes on, so that of several
	// the last one ended the cell.
	if !head.mayRaise && (r.failure == nil || r.failure.Cell == head.index) {
		r.failure = &Exception{
			Name:      out.Name,
			Message:   out.Message,
			Traceback: out.Traceback,
			Cell:      out.Cell,
			Line:      line(out, head),
		}
	}
}

// add appends an output, after the stream that came before it.
func (r *reading) add(out Output) {
	r.flush()
	if len(r.outputs) == r.limits.MaxOutputs {
		r.surplus++
		return
	}
	r.outputs = append(r.outputs, out)
}

// flush ends the pending stream.
func (r *reading) flush() {
	p := r.pending
	if p == nil {
		return
	}
	r.pending = nil
	text := r.clamp(p.cell, "", "the text of "+p.name, Plain(p.text.String()), r.limits.MaxTextBytes)
	if text != "" {
		r.add(Output{Cell: p.cell, Type: TypeStream, Name: p.name, Text: text})
	}
}

// drop records what is not passed on. The reason must hold no text of the
// user's that is longer than a line.
func (r *reading) drop(cell int, mediaType, reason string, args ...any) {
	if len(r.dropped) == maxDropped {
		r.lost++
		return
	}
	r.dropped = append(r.dropped, Dropped{Cell: cell, MediaType: mediaType, Reason: fmt.Sprintf(reason, args...)})
}

// cut records what a limit keeps out.
func (r *reading) cut(cell int, mediaType, reason string, args ...any) {
	r.truncated = true
	r.drop(cell, mediaType, reason, args...)
}

// result returns what was gathered.
func (r *reading) result() *Result {
	r.flush()
	if r.surplus > 0 {
		r.cut(r.outputs[len(r.outputs)-1].Cell, "", "%d more outputs follow, the limit is %d", r.surplus, r.limits.MaxOutputs)
	}
	if r.lost > 0 {
		last := slices.MaxFunc(r.dropped, func(a, b Dropped) int { return a.Cell - b.Cell })
		r.dropped = append(r.dropped, Dropped{Cell: last.Cell, Reason: fmt.Sprintf("%d more were dropped", r.lost)})
	}
	return &Result{Outputs: r.outputs, Error: r.failure, Dropped: r.dropped, Truncated: r.truncated}
}
