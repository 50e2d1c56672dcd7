package record

import (
	"encoding/json"
	"fmt"
	"strings"

	"notebox/notebook"
)

// Run is the record of one run. No list in it is null.
type Run struct {
	Title    string          `json:"title"`
	Language string          `json:"language"`
	Cells    []Cell          `json:"cells"`
	Images   []Image         `json:"images"`
	Files    []File          `json:"files"` // that it made
	Skipped  []Skipped       `json:"skipped"`
	Error    *Exception      `json:"error"`
	Status   string          `json:"status"`
	Hint     string          `json:"hint"`
	Usage    json.RawMessage `json:"usage"`
	Widgets  json.RawMessage `json:"widgets,omitempty"` // the state in which the run left them
	Notes    []string        `json:"notes"`             // what is not as it came out, for people
}

// Cell is one cell with what it put out.
type Cell struct {
	Kind    string            `json:"kind"` // "code", "markdown"
	Text    string            `json:"text"`
	Outputs []json.RawMessage `json:"outputs"` // as a reply has them, without addresses
}

// Image is one that the run showed.
type Image struct {
	Name      string `json:"name"`
	MediaType string `json:"media_type"`
	Bytes     int64  `json:"bytes"`
	Width     int    `json:"width"`
	Height    int    `json:"height"`
	Data      []byte `json:"data,omitempty"`  // base64; none where it is too large, or was not stored
	Error     string `json:"error,omitempty"` // why it could not be stored
}

// File is one that the run created or changed.
type File struct {
	Path      string `json:"path"` // in the sandbox
	MediaType string `json:"media_type"`
	Bytes     int64  `json:"bytes"`
	Error     string `json:"error,omitempty"` // why it could not be stored
}

// Skipped is what the run produced and the reply does not have.
type Skipped struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
}

// Exception is what the code raised. Cell counts those with code.
type Exception struct {
	Name      string `json:"name"`
	Message   string `json:"message"`
	Traceback string `json:"traceback"`
	Cell      int    `json:"cell"`
	Line      int    `json:"line"`
}

// Bounds are of what one record holds. A field that is 0 bounds nothing.
type Bounds struct {
	Text   int64 // bytes of code, outputs and the state of widgets, as JSON
	Images int64 // bytes of all images
}

// reply is what is read of a run's reply, or of result.json.
type reply struct {
	Language  string // of result.json alone
	Status    string
	Hint      string
	Truncated bool
	Outputs   []json.RawMessage
	Images    []Image
	Files     []File
	Skipped   []Skipped
	Error     *Exception
	Usage     json.RawMessage
}

// New makes the record of a run from its executed notebook and its reply, which may lack the
// bytes of images: image gets those; nil, if there are none to get. An image that it has not
// is left out.
func New(executed, answer []byte, image func(name string) ([]byte, error), b Bounds) (*Run, error) {
	cells, widgets, err := notebook.Sources(executed, notebook.Limits{MaxBytes: int64(len(executed))})
	if err != nil {
		return nil, fmt.Errorf("record: the notebook: %w", err)
	}
	var from reply
	if err := json.Unmarshal(answer, &from); err != nil {
		return nil, fmt.Errorf("record: the reply: %w", err)
	}
	run := &Run{
		Language: from.Language, Cells: []Cell{}, Images: []Image{}, Files: append([]File{}, from.Files...),
		Skipped: append([]Skipped{}, from.Skipped...), Status: from.Status, Hint: from.Hint, Usage: from.Usage, Notes: []string{},
	}
	room := newRoom(b.Text)
	if run.Language == "" {
		run.Language = notebook.Language(executed)
	}
	places := run.sources(cells, room)
	kept := tracebacks(from.Outputs, room)
	run.outputs(from.Outputs, kept, places, room)
	if room.take(int64(len(widgets))) {
		run.Widgets = widgets
	} else {
		run.note("The state of its widgets is larger than this page may be.")
	}
	if err := run.images(from.Images, image, newRoom(b.Images)); err != nil {
		return nil, err
	}
	run.failure(from.Error, cells)
	if from.Truncated {
		run.note("The run put out more than it may, so that the output is cut.")
	}
	run.Title = run.title()
	return run, nil
}

func (r *Run) note(format string, args ...any) {
	r.Notes = append(r.Notes, fmt.Sprintf(format, args...))
}

// sources fills the cells. It returns the index in Cells by that in the notebook; -1 is none.
func (r *Run) sources(cells []notebook.Source, room *room) (places []int) {
	cut := false
	for _, c := range cells {
		if c.Kind != "code" && c.Kind != "markdown" {
			places = append(places, -1)
			continue
		}
		text := c.Text
		if !room.take(int64(len(text))) {
			text, cut = notebook.Shorten(text, room.rest()), true
		}
		places = append(places, len(r.Cells))
		r.Cells = append(r.Cells, Cell{c.Kind, text, []json.RawMessage{}})
	}
	if cut {
		r.note("The code is longer than this page may be, so that it is cut.")
	}
	return places
}

// failure names the cell of the exception as the page counts.
func (r *Run) failure(e *Exception, cells []notebook.Source) {
	if e == nil {
		return
	}
	at := *e
	r.Error = &at
	at.Cell = -1
	at.Message, at.Traceback = notebook.Shorten(e.Message, maxFailure), notebook.Shorten(e.Traceback, maxFailure)
	if e.Cell < 0 || e.Cell >= len(cells) || cells[e.Cell].Kind != "code" {
		return
	}
	for _, c := range cells[:e.Cell+1] {
		if c.Kind == "code" {
			at.Cell++
		}
	}
}

// images fills the list, and gets what is missing of it.
func (r *Run) images(all []Image, get func(string) ([]byte, error), room *room) error {
	left := 0
	for _, i := range all {
		switch {
		case i.Error != "":
			i.Data = nil
		case !room.take(max(i.Bytes, int64(len(i.Data)))):
			i.Data = nil
			left++
		case i.Data == nil && get != nil:
			var err error
			if i.Data, err = get(i.Name); err != nil {
				return fmt.Errorf("record: image: %w", err)
			}
		}
		r.Images = append(r.Images, i)
	}
	if left > 0 {
		r.note("Images that are not shown, as they are larger than this page may be: %d.", left)
	}
	return nil
}

// maxTitle bounds a title, in characters: what a tab and a chat show.
const maxTitle = 80

// title is the first heading, or else the first line of code.
func (r *Run) title() string {
	for _, c := range r.Cells {
		for line := range strings.Lines(c.Text) {
			text, heading := strings.CutPrefix(strings.TrimSpace(line), "#")
			if strings.HasPrefix(text, "!") { // names an interpreter
				continue
			}
			text = oneLine(strings.TrimPrefix(strings.TrimLeft(text, "#"), "//"), maxTitle)
			if text != "" && (c.Kind == "code" || heading) {
				return text
			}
		}
	}
	return "A run"
}
