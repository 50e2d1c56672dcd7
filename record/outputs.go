package record

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"unicode"

	"notebox/notebook"
)

// room is how much is left of a bound.
type room struct{ left int64 }

func newRoom(bound int64) *room {
	if bound == 0 {
		bound = math.MaxInt64
	}
	return &room{bound}
}

// take takes so much if it is there. Once something did not fit, small things still may.
func (r *room) take(n int64) bool {
	if n > r.left {
		return false
	}
	r.left -= n
	return true
}

// rest takes all that is left.
func (r *room) rest() int64 {
	n := r.left
	r.left = 0
	return n
}

// output is what is read of one output.
type output struct {
	Cell int                        `json:"cell"`
	Type string                     `json:"type"`
	Name string                     `json:"name,omitempty"`
	Text string                     `json:"text,omitempty"`
	Data map[string]json.RawMessage `json:"data,omitempty"`
}

// link is where a blob of an output is stored.
type link struct {
	Name *string `json:"name"`
	URL  *string `json:"url"`
}

// maxFailure bounds the traceback, and the message, of one exception, in bytes: the page
// shows no more of it.
const maxFailure = 64 << 10

// failure is an output that is an exception. A reader expects all of its fields.
type failure struct {
	Cell      int    `json:"cell"`
	Type      string `json:"type"`
	Name      string `json:"name"`
	Message   string `json:"message"`
	Traceback string `json:"traceback"`
}

// tracebacks takes room for the outputs that are exceptions, by their index in all, before
// other outputs have some, and for the last one first: why a run failed is what its reader
// wants first.
func tracebacks(all []json.RawMessage, room *room) map[int]json.RawMessage {
	kept := map[int]json.RawMessage{}
	for i, raw := range slices.Backward(all) {
		var o failure
		if json.Unmarshal(raw, &o) != nil || o.Type != string(notebook.TypeError) {
			continue
		}
		if len(raw) > maxFailure {
			o.Message, o.Traceback = notebook.Shorten(o.Message, maxFailure), notebook.Shorten(o.Traceback, maxFailure)
			raw, _ = json.Marshal(o) // strings alone
		}
		if room.take(escaped(raw)) {
			kept[i] = raw
		}
	}
	return kept
}

// escaped is how many bytes JSON, or a string, has in a record: it is in a page, so what is markup
// there is escaped (json.HTMLEscape).
func escaped(raw []byte) int64 {
	n := len(raw)
	for _, c := range []string{"<", ">", "&"} {
		n += bytes.Count(raw, []byte(c)) * (len(`\u003c`) - 1)
	}
	for _, c := range []string{"\u2028", "\u2029"} {
		n += bytes.Count(raw, []byte(c)) * (len(`\u2028`) - len(c))
	}
	return int64(n)
}

// shorten cuts a text so that it has at most so many bytes when it is escaped.
func shorten(text string, most int64) string {
	for size := most; ; size /= 2 {
		if cut := notebook.Shorten(text, size); size <= minStream || escaped([]byte(cut)) <= most {
			return cut
		}
	}
}

// outputs gives each cell what it put out. Those that are kept have their room.
func (r *Run) outputs(all []json.RawMessage, kept map[int]json.RawMessage, places []int, room *room) {
	lost, cut := 0, false
	for i, raw := range all {
		var o output
		if json.Unmarshal(raw, &o) != nil || o.Cell < 0 || o.Cell >= len(places) || places[o.Cell] < 0 {
			lost++
			continue
		}
		if o.Data != nil {
			raw = withoutAddresses(o)
		}
		switch {
		case kept[i] != nil:
			raw = kept[i]
		case room.take(escaped(raw)):
		case o.Type == string(notebook.TypeStream) && room.left > minStream:
			o.Text, cut = shorten(o.Text, room.rest()), true
			raw, _ = json.Marshal(o)
		default:
			lost++
			continue
		}
		cell := &r.Cells[places[o.Cell]]
		cell.Outputs = append(cell.Outputs, raw)
	}
	if cut {
		r.note("Text is cut: it is longer than this page may be.")
	}
	if lost > 0 {
		r.note("Outputs that are left out, as this page may not be larger: %d.", lost)
	}
}

// minStream is what must be left for the text of a stream to be cut, and not left out.
const minStream = 1 << 10

// withoutAddresses writes a display or a result with the names alone of what is stored.
func withoutAddresses(o output) json.RawMessage {
	for mediaType, value := range o.Data {
		var l link
		if isJSON(mediaType) || json.Unmarshal(value, &l) != nil || l.Name == nil || l.URL == nil {
			continue
		}
		none := ""
		o.Data[mediaType], _ = json.Marshal(link{l.Name, &none})
	}
	raw, _ := json.Marshal(o) // of what was read as JSON
	return raw
}

func isJSON(mediaType string) bool {
	return mediaType == "application/json" || strings.HasSuffix(mediaType, "+json")
}

// Has reports whether an output has a representation of this type.
func (r *Run) Has(mediaType string) bool {
	for _, c := range r.Cells {
		for _, raw := range c.Outputs {
			var o output
			if json.Unmarshal(raw, &o) == nil && o.Data[mediaType] != nil {
				return true
			}
		}
	}
	return false
}

// maxSummary bounds a summary, in characters: chats show three lines or so.
const maxSummary = 300

// Summary is the first lines that the run put out, or else of its code.
func (r *Run) Summary() string {
	var text strings.Builder
	for _, c := range r.Cells {
		for _, raw := range c.Outputs {
			var o output
			if json.Unmarshal(raw, &o) != nil || text.Len() > maxSummary*4 {
				continue
			}
			plain := ""
			if !o.hasPicture() { // whose text says only that there is one
				_ = json.Unmarshal(o.Data["text/plain"], &plain)
			}
			text.WriteString(head(o.Text+plain) + "\n")
		}
	}
	if r.Error != nil {
		text.WriteString(head(r.Error.Name + ": " + r.Error.Message))
	}
	if summary := oneLine(text.String(), maxSummary); summary != "" {
		return summary
	}
	for _, c := range r.Cells {
		text.WriteString(head(c.Text) + "\n")
	}
	return oneLine(text.String(), maxSummary)
}

func (o output) hasPicture() bool {
	for mediaType := range o.Data {
		if strings.HasPrefix(mediaType, "image/") {
			return true
		}
	}
	return false
}

// head is the beginning of a text, as much as any summary may need.
func head(text string) string { return text[:min(len(text), maxSummary*4)] }

// Picture is the first image that a browser shows anywhere, nil if there is none.
func (r *Run) Picture() *Image {
	for i := range r.Images {
		switch r.Images[i].MediaType {
		case "image/png", "image/jpeg", "image/gif", "image/webp":
			if r.Images[i].Error == "" {
				return &r.Images[i]
			}
		}
	}
	return nil
}

// oneLine is a text as it may stand in a line that others show: what is not printed, marks
// that turn the direction of writing among it, is a space.
func oneLine(text string, most int) string {
	words := strings.FieldsFunc(strings.ToValidUTF8(text, " "), func(c rune) bool { return !unicode.IsPrint(c) || c == ' ' })
	runes := []rune(strings.Join(words, " "))
	if len(runes) > most {
		return strings.TrimSpace(string(runes[:most-1])) + "…"
	}
	return string(runes)
}
