package runner

import (
	"context"
	"errors"
	"io"
	"net"
)

// Engine starts sandboxes. Docker is one; a cluster is another. It knows
// nothing of notebooks.
type Engine interface {
	// Start returns a sandbox whose program runs and whose stream is open. When
	// it returns an error, or ctx ends, nothing is left behind: what cannot be
	// removed at once is removed in the background.
	Start(ctx context.Context, env Environment, limits Limits) (Sandbox, error)
	// Reap removes what an earlier process of this service left behind, and
	// returns how many sandboxes that were. It touches no other service's.
	Reap(ctx context.Context) (int, error)
	// Ready reports why a sandbox of env could not be started now, or nil. The error is
	// ErrNoImage if there is no image of it.
	Ready(ctx context.Context, env Environment) error
}

// Keeper is an Engine whose sandboxes can outlive this process.
type Keeper interface {
	Engine
	// Keep records that a sandbox is a session's, so that a later process of this
	// service can adopt it, before it reaps. It returns the name to adopt by. After an
	// error the sandbox has to be killed.
	Keep(ctx context.Context, s Sandbox) (name string, err error)
	// Adopt opens a new stream to a sandbox that was kept. What is under way on the
	// old one is lost, in the middle of whatever it was. The error is
	// ErrNoSandbox if this service has none of that name that runs. Reap leaves
	// what was adopted.
	Adopt(ctx context.Context, name string) (Sandbox, error)
}

// Host is an Engine that starts workers too: containers that many cells are in.
type Host interface {
	Keeper
	// StartWorker is Start of the supervisor of an environment's image. token is a secret
	// of the worker, which AttachWorker finds again.
	StartWorker(ctx context.Context, env Environment) (s Sandbox, token []byte, w Walls, err error)
	// AttachWorker opens a new stream to a worker of an earlier process of this service, by
	// its id. The error is ErrNoSandbox where this service has none of that name that runs.
	// Reap leaves it.
	AttachWorker(ctx context.Context, id string) (s Sandbox, token []byte, err error)
}

// Walls are what a worker is told of the cells that it is to make.
type Walls struct {
	FirstUser, Users int               // the ids that are the worker's alone
	Memory, Pids     int64             // limits of the worker itself, if its container has none
	Masked, ReadOnly []string          // files and folders
	Sysctls          map[string]string // of the cell's network
	Seccomp          []byte            // a profile in the form of Docker's
	Mounts           func(l Limits, user int) map[string]string
}

// ErrNoImage is that there is nothing to start sandboxes of an environment from.
var ErrNoImage = errors.New("there is no such image")

// ErrWithOthers is in an *Error if a sandbox ended because what it shared with others did,
// and another one can be had.
var ErrWithOthers = errors.New("what the sandbox shared with others has ended")

// ErrNoSandbox is that there is no sandbox to adopt.
var ErrNoSandbox = errors.New("there is no such sandbox")

// ErrInterrupted is in the cause of the context of a run if whoever cancels it waits for what the
// code has to say to that: it is interrupted before it is killed.
var ErrInterrupted = errors.New("interrupted")

// Sandbox is a byte stream to the program inside, and the means to end it. Close
// ends the stream alone: whether the program ends by that is its own affair.
// Read returns an *ExitError after the last byte of a program that ended, in an
// *Error if it was the sandboxes' host that ended it.
type Sandbox interface {
	io.ReadWriteCloser
	// ID is the sandbox's own name, for logs.
	ID() string
	// Kill ends every process of the sandbox and removes what there is of it.
	// It may be called more than once, also after the sandbox ended by itself.
	// It returns when nothing is left, or the error that prevents that.
	Kill(ctx context.Context) error
}

// Cell is a Sandbox that is one of many in a worker.
type Cell interface {
	Sandbox
	// Worker is the ID of its worker.
	Worker() string
}

// ExitError is the end of a sandbox that nobody asked for.
type ExitError struct {
	Code int    // the exit code; 128 + signal if a signal ended it, -1 if unknown
	Log  string // the last bytes that the program wrote to stderr; may be empty
}

func (e *ExitError) Error() string { return "the sandbox ended by itself" }

// Network is what the programs in a sandbox reach through its proxy.
type Network interface {
	// Serve answers the connections of one run, which are an HTTP proxy's, until
	// ctx ends or Accept fails. It returns when nothing of it goes on. The connections have the
	// methods CloseWrite and Reset beside those of net.Conn.
	Serve(ctx context.Context, run string, connections net.Listener)
	// CA returns certificates in PEM, which programs in the sandbox are to trust
	// beside those of its image; may be nil.
	CA() []byte
}
