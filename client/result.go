package client

import "encoding/json"

// Result is what became of a run. Everything in it but the URLs is what an untrusted
// program wrote.
type Result struct {
	ID        string     `json:"id"`
	Status    string     `json:"status"` // "ok", else why the run ended
	Text      string     `json:"text"`   // all output in order
	Hint      string     `json:"hint"`   // for a status other than ok: what to change
	Error     *Exception `json:"error"`  // nil if the code raised nothing
	Images    []Image    `json:"images"`
	Files     []Stored   `json:"files"`
	Skipped   []Skipped  `json:"skipped"`
	Notebook  Link       `json:"notebook"` // the executed .ipynb
	Truncated bool       `json:"truncated"`
	Usage     Usage      `json:"usage"`

	// Raw is the whole answer as it came, in JSON: it has all outputs too.
	Raw json.RawMessage `json:"-"`
}

// Exception is the one that ended a run.
type Exception struct {
	Name      string `json:"name"`
	Message   string `json:"message"`
	Traceback string `json:"traceback"`
	Cell      int    `json:"cell"`
	Line      int    `json:"line"`
}

// Image is one that a run showed.
type Image struct {
	Name      string `json:"name"`
	MediaType string `json:"media_type"`
	Bytes     int64  `json:"bytes"`
	Width     int    `json:"width"`  // pixels
	Height    int    `json:"height"` // pixels
	URL       string `json:"url"`
	Error     string `json:"error"` // why it could not be stored
}

// Stored is a file that a run created or changed.
type Stored struct {
	Path      string `json:"path"` // in the sandbox
	Name      string `json:"name"`
	MediaType string `json:"media_type"`
	Bytes     int64  `json:"bytes"`
	SHA256    string `json:"sha256"`
	URL       string `json:"url"`
	Error     string `json:"error"` // why it could not be stored
}

// Skipped is a file, or a part of an output, that was not kept.
type Skipped struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
}

// Link leads to something stored.
type Link struct {
	URL string `json:"url"`
}

// Usage is what a run took.
type Usage struct {
	QueueMS         int64 `json:"queue_ms"`
	WallMS          int64 `json:"wall_ms"`
	CPUMS           int64 `json:"cpu_ms"`
	PeakMemoryBytes int64 `json:"peak_memory_bytes"`
}

func readResult(raw []byte) (*Result, error) {
	r := &Result{Raw: raw}
	if err := json.Unmarshal(raw, r); err != nil {
		return nil, unread(err)
	}
	return r, nil
}

// Environments are what a notebox runs for a key.
type Environments struct {
	Environments []Environment `json:"environments"`
	Limits       Limits        `json:"limits"`
}

// Environment is one language.
type Environment struct {
	Language     string    `json:"language"`
	Aliases      []string  `json:"aliases"`
	Available    *bool     `json:"available"` // nil, of an older notebox: it is
	DisplayName  string    `json:"display_name"`
	Notes        []string  `json:"notes"`
	Packages     []Package `json:"packages"`
	Dependencies struct {
		Notation string   `json:"notation"` // "": none can be installed
		Allowed  []string `json:"allowed"`
	} `json:"dependencies"`
}

// Package is one that an environment has.
type Package struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// Limits are those of a run.
type Limits struct {
	TimeoutSeconds    float64 `json:"timeout_seconds"`
	MaxTimeoutSeconds float64 `json:"max_timeout_seconds"`
	Network           bool    `json:"network"`
	Sessions          *bool   `json:"sessions"` // nil, of an older notebox: it has them
}

// Pool is what a notebox has of sandboxes.
type Pool struct {
	Size      int `json:"size"` // how many are to be warm
	Warm      int `json:"warm"`
	Starting  int `json:"starting"`
	Running   int `json:"running"`
	Removing  int `json:"removing"`
	Sessions  int `json:"sessions"`  // open, whether or not they run
	Sandboxes int `json:"sandboxes"` // all that exist: starting, warm, running, of sessions, being removed
}
