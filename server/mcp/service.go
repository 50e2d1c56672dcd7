package mcp

import (
	"context"

	"notebox/agent/tool"
	"notebox/client"
)

// Service is what the tools call, for one caller: the executor of this process (Local), or a
// notebox elsewhere (API). What a model may read of an error is a *Refusal.
type Service interface {
	// About says what there is for the caller.
	About(ctx context.Context) (About, error)
	// Run runs code, and returns the reply of the native API. said hears what the installer
	// of packages and the program put out meanwhile.
	Run(ctx context.Context, e Execution, said func(string)) (reply []byte, err error)
	OpenSession(ctx context.Context, r SessionRequest) (*client.Session, error)
	CloseSession(ctx context.Context, id string) error
	// ListFiles lists what is in a folder of a session, and below it.
	ListFiles(ctx context.Context, session, folder string) (client.FileList, error)
	// ReadFile returns a file, which must be closed.
	ReadFile(ctx context.Context, session, path string) (*client.Content, error)
	WriteFile(ctx context.Context, session, path, content string) (*client.FileEntry, error)
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

// Execution is what a call runs.
type Execution struct {
	Code         string
	Language     string
	Session      string
	Timeout      float64 // seconds
	Dependencies []string
}

// SessionRequest is what a session is opened with.
type SessionRequest struct {
	Language     string
	TTL          float64 // seconds
	Dependencies packages
}
