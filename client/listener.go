package client

import "encoding/json"

// Listener is told of a run while it goes on, from the goroutine of Execute. Each func may be
// nil.
type Listener struct {
	Started func(id string)   // the request was accepted
	Install func(text string) // of Run.Dependencies
	Output  func(Output)
	File    func(Stored) // is stored, and can be fetched
}

// Output is one entry of a run's outputs.
type Output struct {
	Cell int    `json:"cell"` // index in the notebook's cells
	Type string `json:"type"` // stream, display, result or error
	Name string `json:"name"` // of a stream stdout or stderr, of an error the exception's class

	Text          string `json:"text"`           // of a stream
	ReplacedLines int    `json:"replaced_lines"` // how many lines at the end of this stream Text takes the place of, the one without a newline included

	Data      map[string]json.RawMessage `json:"data"` // of a display or result: its forms by media type
	Message   string                     `json:"message"`
	Traceback string                     `json:"traceback"`
}

// Plain is what a display or result is as text, "" if it has none.
func (o Output) Plain() string {
	var text string
	_ = json.Unmarshal(o.Data["text/plain"], &text) // none, or none that is text
	return text
}

// Telling is a Listener that passes on what the program writes, and before it what is said of
// installing. It is nil if tell is.
func Telling(tell func(text string)) *Listener {
	if tell == nil {
		return nil
	}
	return &Listener{Install: tell, Output: func(o Output) {
		if o.Type == "stream" && o.Text != "" {
			tell(o.Text)
		}
	}}
}

// event tells l of one event, whose data is JSON.
func (l *Listener) event(name string, data []byte) error {
	switch name {
	case "started":
		return tell(data, l.Started, func(s struct{ ID string }) string { return s.ID })
	case "install":
		return tell(data, l.Install, func(s struct{ Text string }) string { return s.Text })
	case "output":
		return tell(data, l.Output, func(o Output) Output { return o })
	case "file":
		return tell(data, l.File, func(f Stored) Stored { return f })
	}
	return nil // one that this client does not know
}

func tell[T, U any](data []byte, to func(U), of func(T) U) error {
	if to == nil {
		return nil
	}
	var it T
	if err := json.Unmarshal(data, &it); err != nil {
		return unread(err)
	}
	to(of(it))
	return nil
}
