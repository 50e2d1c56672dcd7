package mcp

import (
	"context"
	"io"
	"time"

	"notebox/agent/tool"
)

// Service is what the tools call, for one caller: the executor of this process (Local), or a
// notebox elsewhere (API). What a model may read of an error is a *Refusal.
type Service interface {
	// About says what there is for the caller.
	About(ctx context.Context) (About, error)
	// Run runs code, and returns the reply of the native API. said hears what the installer
	// of packages and the program put out meanwhile.
	Run(ctx context.Context, e Execution, said func(string)) (reply []byte, err error)
	OpenSession(ctx context.Context, r SessionRequest) (*OpenedSession, error)
	CloseSession(ctx context.Context, id string) error
	// ListFiles lists what is in a folder of a session, and below it.
	ListFiles(ctx context.Context, session, folder string) (FileList, error)
	// ReadFile returns a file, whose Content must be closed.
	ReadFile(ctx context.Context, session, path string) (*File, error)
	WriteFile(ctx context.Context, session, path, content string) (*FileEntry, error)
}

// Refusal is an error that is for the model. Its Status is that of the native API.
type Refusal struct {
	Status int
	Detail string
}

func (r *Refusal) Error() string { return r.Detail }

// About is what there is for a caller. A model is told of its Ask by NewServer.
type About struct {
	tool.About
	Sessions bool // are offered
}

// Execution is what a call runs. Its JSON is the body of POST /v1/execute.
type Execution struct {
	Code     string  `json:"code"`
	Language string  `json:"language,omitempty"`
	Session  string  `json:"session,omitempty"`
	Timeout  float64 `json:"timeout,omitempty"` // seconds

	Dependencies []string `json:"dependencies,omitempty"`
}

// SessionRequest is what a session is opened with. Its JSON is the body of POST /v1/sessions.
type SessionRequest struct {
	Language     string   `json:"language,omitempty"`
	TTL          float64  `json:"ttl,omitempty"` // seconds
	Dependencies packages `json:"dependencies,omitempty"`
}

// OpenedSession is what is told of a session.
type OpenedSession struct {
	ID          string    `json:"id"`
	Language    string    `json:"language"`
	ExpiresAt   time.Time `json:"expires_at"`
	IdleSeconds float64   `json:"idle_seconds"`
}

// FileList is what a folder has.
type FileList struct {
	Files []FileEntry `json:"files"`
	More  bool        `json:"more"` // than there are in Files
}

// FileEntry is a file or folder of a session.
type FileEntry struct {
	Path       string    `json:"path"`
	Kind       string    `json:"kind"`
	Bytes      int64     `json:"bytes"`
	MediaType  *string   `json:"media_type"` // nil: it is no file
	ModifiedAt time.Time `json:"modified_at"`
}

// File is the content of a file of a session.
type File struct {
	MediaType string
	Size      int64 // bytes
	Content   io.ReadCloser
}
