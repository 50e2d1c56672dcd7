package dify

import (
	"context"
	"time"
)

// Sandboxes are those of the caller of one request. The errors of its methods, and of
// those of a Sandbox, are answered as they are; one with a sandbox that is over, or
// another caller's, says that there is none.
type Sandboxes interface {
	// Open returns the live sandbox of a conversation, which it makes where there is
	// none; for "" a new one each time. Calls at once get the same. language is the
	// sandbox's; "" is the default one, and a conversation has one for each.
	Open(ctx context.Context, conversation, language string) (Sandbox, error)
	Find(ctx context.Context, id string) (Sandbox, error)
	// Stop ends a sandbox. It reports whether there was one to end.
	Stop(ctx context.Context, id string) (found bool, err error)
}

// Sandbox is a live kernel with its files. Paths are relative to /mnt/data, and
// cleaned.
type Sandbox interface {
	Info() Info
	// Runs reports whether Run takes a language by that name.
	Runs(language string) bool
	Run(ctx context.Context, p Program) (*Result, error)
	Write(ctx context.Context, path, content string) error
	// Fetch gets a URL by the rules for what a service may reach, and writes it to
	// path. With the path "" the file is named by its source; written is the name.
	Fetch(ctx context.Context, url, path string) (written string, err error)
	// Link keeps a copy of a file and returns a URL that gives it, until it expires, to
	// everyone who has the URL.
	Link(ctx context.Context, path string) (url string, err error)
}

// Info is what is known of a sandbox.
type Info struct {
	ID               string    `json:"sandbox_id"`
	Status           string    `json:"status"` // StatusRunning: of others, nothing is known
	CreatedAt        time.Time `json:"created_at"`
	ExpiresAt        time.Time `json:"expires_at"`           // at the latest
	IdleSeconds      float64   `json:"idle_timeout_seconds"` // without a call until it ends
	WorkingDirectory string    `json:"working_directory"`
	Languages        []string  `json:"languages"`
	Network          bool      `json:"network"`
}

// StatusRunning is the status of every sandbox that can be asked.
const StatusRunning = "running"

// Program is what is to be run in a sandbox.
type Program struct {
	Source string
	Field  string // of the request that Source is from, for errors in it
	// Language is one that the sandbox runs; "" is its kernel's. Bash is a command beside
	// the kernel, where that is not bash itself.
	Language string
	// Interrupt is when the run is interrupted; what waits for its turn then is not
	// run. Answer is when Run returns at the latest, with what is known.
	Interrupt, Answer time.Time
}

// Result is what came of a Program.
type Result struct {
	// Text has stdout, stderr, results and traceback in order, then images and files as
	// lines with URLs. That a command failed, or variables are lost, is in it too.
	Text     string
	Images   []Image
	Files    []File
	ExitCode *int   // of a command that ended by itself
	Error    *Error // nil where all went well
	End      End
	Limit    time.Duration // after which it was interrupted, where that is not the protocol's
}

// End says how a run came to its end, as far as a sentence of this protocol is about it.
type End string

// The ends of a run.
const (
	EndSelf        End = ""            // by itself, or by a limit that Error.Message is about
	EndInterrupted End = "interrupted" // at Program.Interrupt
	EndNotBegun    End = "not_begun"   // its turn did not come before Program.Interrupt
	EndOpen        End = "open"        // at Program.Answer it had not ended, interrupted as it was
)

// Error is why a run did not go well.
type Error struct {
	Status  string `json:"status"`  // error, timeout, out_of_memory, killed, output_limit, cancelled
	Name    string `json:"name"`    // of an exception; may be empty
	Message string `json:"message"` // of the exception
	Hint    string `json:"hint"`    // one sentence for a model: what to change; may be empty
}

// Image is a picture that a run displayed.
type Image struct {
	Name      string `json:"name"`
	MediaType string `json:"media_type"`
	Bytes     int    `json:"bytes"`
	Width     int    `json:"width"`
	Height    int    `json:"height"`
	URL       string `json:"url"`
}

// File is one that a run created or changed.
type File struct {
	Path      string `json:"path"`
	Name      string `json:"name"`
	MediaType string `json:"media_type"`
	Bytes     int64  `json:"bytes"`
	URL       string `json:"url"`
}
