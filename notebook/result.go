package notebook

import "encoding/json"

// OutputType is the kind of an Output.
type OutputType string

// The kinds of Output: nbformat's stream, display_data, execute_result and
// error (https://nbformat.readthedocs.io/en/latest/format_description.html).
const (
	TypeStream  OutputType = "stream"
	TypeDisplay OutputType = "display"
	TypeResult  OutputType = "result"
	TypeError   OutputType = "error"
)

// Result is what an executed notebook says, made safe to pass on.
type Result struct {
	Outputs   []Output   // in the order in which they happened
	Error     *Exception // the first error that ended a cell; nil if none did
	Dropped   []Dropped  // what could not be passed on as it was
	Truncated bool       // whether any of Limits cut or dropped something
}

// Output is one output of a code cell. All its text is valid UTF-8. What a
// terminal would show (streams, errors, text/plain) is in the form that Plain
// gives; other textual types, such as text/html, are kept as they are.
type Output struct {
	Cell      int              // index in the notebook's cells
	Type      OutputType       //
	Name      string           // of the stream ("stdout", "stderr"), or of the exception's class
	Text      string           // of a stream
	Message   string           // of an error
	Traceback string           // of an error
	Data      map[string]Datum // MIME bundle of a display or result, by media type

	// The rest is of Decoder.Output and Update alone: a notebook has no such fields.
	DisplayID string // of a display or result that may be updated, else ""
	Replaced  int    // lines at the end of the stream so far that Text replaces
}

// Datum is one representation in a MIME bundle: exactly one field is set. JSON
// is valid for any encoder: UTF-8, no name twice, at most MaxDepth levels.
type Datum struct {
	Text *string         // a textual type
	JSON json.RawMessage // a JSON type, such as application/json or application/vnd.plotly.v1+json
	Blob *Blob           // a binary type, or SVG
}

// Blob is a part of a MIME bundle that is stored and linked instead of inlined.
type Blob struct {
	Name      string // "image_0.png", "output_0.pdf": unique in the result, each kind counted in order of appearance
	MediaType string // "image/png"
	Bytes     []byte
	Width     int // pixels; 0 if unknown
	Height    int
}

// Exception is an error that the user's code raised.
type Exception struct {
	Name      string // class
	Message   string
	Traceback string
	Cell      int // index in the notebook's cells
	Line      int // 1-based line of that cell; 0 if unknown
}

// Dropped is a part of an output that is not passed on, or was cut.
type Dropped struct {
	Cell      int
	MediaType string // "" if it is not a representation in a MIME bundle
	Reason    string // for people
}
