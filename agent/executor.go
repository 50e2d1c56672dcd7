package agent

import (
	"context"
	"errors"
	"io"
	"time"

	"notebox/agent/tool"
)

// Executor runs code.
type Executor interface {
	// Execute returns what became of a run, whatever the code did. A *tool.CallError
	// is for the model: what it sent cannot be run. Any other error ends the question:
	// the service failed, or refuses.
	Execute(ctx context.Context, r Run) (*tool.Result, error)
}

// Sessions is an Executor that can keep a sandbox between runs.
type Sessions interface {
	Executor
	// OpenSession starts one with files in /mnt/data.
	OpenSession(ctx context.Context, language string, files []File) (id string, err error)
	// CloseSession ends one; that it is gone already is no error.
	CloseSession(ctx context.Context, id string) error
}

// ErrNoSession is Execute's error for a session that has ended.
var ErrNoSession = errors.New("the session has ended")

// Run is code to be executed.
type Run struct {
	Language string
	Code     string
	Timeout  time.Duration // 0: the service's default
	Files    []File        // to be put in /mnt/data before
	Session  string        // to run in; "": a sandbox of its own
	// Dependencies are packages to be installed, in the language's notation; never of a
	// run in a session. That they cannot be had is for the model too.
	Dependencies []string
	// Tell is called with what the program puts out, and before it what is said of
	// installing, as it comes, from the goroutine of Execute. It may be nil; not every Executor calls it.
	Tell func(text string)
}

// File is one for /mnt/data.
type File struct {
	Name string // relative to /mnt/data, may have folders
	Size int64  // bytes
	Open func() (io.ReadCloser, error)
}
