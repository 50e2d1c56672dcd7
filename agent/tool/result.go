package tool

import (
	"encoding/json"
	"fmt"
	"slices"
)

// Result is what a run left, as POST /v1/execute answers it: that answer can be
// decoded into one. Everything in it but the URLs is what an untrusted program wrote.
type Result struct {
	Status string  `json:"status"` // "ok", else why the run ended
	Text   string  `json:"text"`
	Hint   string  `json:"hint"`
	Error  *Raised `json:"error"`
	Images []Image `json:"images"`
	Files  []File  `json:"files"`
}

// Raised is the exception that ended a run.
type Raised struct {
	Name      string `json:"name"`
	Message   string `json:"message"`
	Traceback string `json:"traceback"`
	Line      int    `json:"line"`
}

// Image is one that a run showed.
type Image struct {
	Name      string `json:"name"`
	MediaType string `json:"media_type"`
	URL       string `json:"url"`
	Data      []byte `json:"data,omitempty"`
	Error     string `json:"error,omitempty"`
}

// File is one that a run wrote.
type File struct {
	Path  string `json:"path"`
	Bytes int64  `json:"bytes"`
	URL   string `json:"url"`
	Error string `json:"error,omitempty"`
}

// ReadResult decodes an answer of POST /v1/execute.
func ReadResult(answer []byte) (Result, error) {
	var r Result
	if err := json.Unmarshal(answer, &r); err != nil {
		return r, fmt.Errorf("result: %w", err)
	}
	return r, nil
}

// notInstalled are the names of failures of package dependencies.
var notInstalled = []string{"Unresolvable", "TooLarge", "TooSlow", "Unusable", "TooNoisy", "Crashed"}

// notInstalled reports whether the run did not begin, as the packages in dependencies could
// not be had. What a program raises has a traceback.
func (r Result) notInstalled() bool {
	if r.Error == nil || r.Error.Traceback != "" {
		return false
	}
	return slices.Contains(notInstalled, r.Error.Name)
}

// Failed reports whether there is something to correct.
func (r Result) Failed() bool { return r.Status != "ok" }
