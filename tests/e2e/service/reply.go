package service

import (
	"encoding/json"
	"time"
)

// Reply is that of POST /v1/execute, with every field by its name.
type Reply struct {
	ID       string   `json:"id"`
	Status   string   `json:"status"`
	Text     string   `json:"text"`
	Outputs  []Output `json:"outputs"`
	Images   []Image  `json:"images"`
	Files    []File   `json:"files"`
	Skipped  []Skipped
	Error    *Exception `json:"error"`
	Hint     string     `json:"hint"`
	Notebook struct{ URL string }
	Session  *struct {
		ID              string    `json:"id"`
		ExpiresAt       time.Time `json:"expires_at"`
		KernelRestarted bool      `json:"kernel_restarted"`
	} `json:"session"`
	Install *struct {
		Packages []struct{ Name, Version string }
		Seconds  float64
		Cached   bool
	} `json:"install"`
	ExitCode  *int `json:"exit_code"`
	Truncated bool `json:"truncated"`
	Usage     struct {
		QueueMS         int64 `json:"queue_ms"`
		WallMS          int64 `json:"wall_ms"`
		CPUMS           int64 `json:"cpu_ms"`
		PeakMemoryBytes int64 `json:"peak_memory_bytes"`
	} `json:"usage"`
}

// Output is one of a cell.
type Output struct {
	Cell      int                        `json:"cell"`
	Type      string                     `json:"type"`
	Name      string                     `json:"name"`
	Text      string                     `json:"text"`
	Message   string                     `json:"message"`
	Traceback string                     `json:"traceback"`
	Data      map[string]json.RawMessage `json:"data"`
}

// Skipped is what was not stored or not passed on.
type Skipped struct {
	Path, Reason string
	Retry        bool
}

// Image is one among the outputs.
type Image struct {
	Name          string
	MediaType     string `json:"media_type"`
	Bytes         int
	Width, Height int
	URL           string
	Data          []byte // base64 in JSON
	Error         string
	Retry         bool
}

// File is one that a run left.
type File struct {
	Path, Name string
	MediaType  string `json:"media_type"`
	Bytes      int
	SHA256     string
	URL        string
	ExpiresAt  time.Time `json:"expires_at"`
	Error      string
	Retry      bool
}

// Exception is what code raised.
type Exception struct {
	Name, Message, Traceback string
	Cell, Line               int
}
