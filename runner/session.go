package runner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// Sessions opens sandboxes that live on between runs, and finds them again.
type Sessions interface {
	// Open returns a session whose kernel is up. It is an *Error of CodeFull if
	// there is no room for one more, of CodeShare if the owner has MaxOwned
	// open, of CodeEnv if no kernel starts with Env.
	Open(ctx context.Context, spec SessionSpec) (Session, error)
	// Find returns an owner's session. It is ErrNoSession if the owner never had
	// one of that id, and a *GoneError if it had one and that is over.
	Find(owner, id string) (Session, error)
	// List returns an owner's sessions that are open, the oldest first.
	List(owner string) []SessionInfo
}

// Session is one sandbox with a live kernel and its /mnt/data, of one owner. Its
// methods may be called at any time and at once; all but Info return a *GoneError
// if the session is over.
type Session interface {
	Info() SessionInfo
	// Run is Runner.Run in this session. Runs of a session go one after another, in
	// the order in which they were asked for; one that waits does not count as
	// running for the service. Of the Spec, Environment, Network and the container's
	// part of Limits are not looked at, as they are the session's own, and Env must
	// be empty. Its Inputs replace files of the same name.
	//
	// If a run has to be ended (time, output, cancelled), its kernel is
	// interrupted first, and lives on if it heeds that.
	Run(ctx context.Context, spec Spec, events Sink) (*Outcome, error)
	// Interrupt sends SIGINT to what runs, if anything does.
	Interrupt(ctx context.Context) error
	// Restart ends every process of the session's user, and returns when a new
	// kernel is up. Files stay. What runs ends as killed; what waits runs then.
	Restart(ctx context.Context) error
	// Close ends the session. What runs or waits ends as cancelled. It returns when
	// no process is left.
	Close(ctx context.Context) error
	Files
}

// Files is /mnt/data of a session, read and written with the rights of its user,
// also while code runs. Paths are slash-separated, relative to /mnt/data, and
// not cleaned by the caller; what cannot be done is a *FileError.
type Files interface {
	// List returns what a folder ("" is /mnt/data) holds, in the order of the paths;
	// all that is below it if recursive. more says that there is more than
	// MaxListed.
	List(ctx context.Context, path string, recursive bool) (files []FileInfo, more bool, err error)
	// Read opens a regular file. Read of the content fails if the file is changed
	// so that its size is not met.
	Read(ctx context.Context, path string) (FileInfo, io.ReadCloser, error)
	// Write replaces a file or makes it, with its folders, all at once: who reads
	// meanwhile sees the old content or the whole new one.
	Write(ctx context.Context, path string, content io.Reader) (FileInfo, error)
	// Delete removes a file, a link, or a folder with all that is in it.
	Delete(ctx context.Context, path string) error
	// Move renames a file or folder, makes the folders of its new path, and replaces
	// a file that is there only if overwrite.
	Move(ctx context.Context, from, to string, overwrite bool) (FileInfo, error)
}

// MaxSessionWaiting is how many runs wait in one session: they go one after another, and who
// sends more has lost count.
const MaxSessionWaiting = 32

// MaxListed is how many entries Files.List returns: what a person or a model can read.
const MaxListed = 10_000

// SessionSpec is what a session is opened with.
type SessionSpec struct {
	ID          string // of the session; unguessable
	Owner       string // whose it is; never a secret
	Environment Environment
	Inputs      []Input           // put into /mnt/data at its begin
	Env         map[string]string // environment variables of its kernels and commands
	Network     Network           // what its programs reach; nil: nothing
	Limits      Limits            // of its container; Timeout, Output, Files and FileSize are each run's own
	TTL         time.Duration     // of the session, whatever goes on in it
	Idle        time.Duration     // without a call until it ends
	MaxOwned    int               // sessions that Owner may have open, this one included; 0 is no bound
	// Note is the caller's own, and comes back with SessionInfo.Note, also after a
	// restart of the service: what its protocol has to know. At most 4 KiB.
	Note map[string]string
	// Ended is called when a session that was opened is over in this process, and its
	// sandbox with it; not if it goes on in a later one. May be nil.
	Ended func()
}

// SessionInfo is what is known of a session.
type SessionInfo struct {
	ID, Owner      string
	Environment    string // its name
	Network        bool   // its programs reach something
	Created        time.Time
	Expires        time.Time     // at the latest; by its TTL
	Idle           time.Duration // without a call until it ends
	LastUsed       time.Time     // the end of the last call that used it; now while one goes on
	Running        bool          // a run has its kernel
	Waiting        int           // runs that wait for it
	KernelRestarts int           // for whatever cause
	Note           map[string]string
}

// FileInfo is an entry of /mnt/data.
type FileInfo struct {
	Path     string    // relative to /mnt/data; hostile, valid UTF-8
	Kind     FileKind  //
	Size     int64     // bytes; of a regular file
	Modified time.Time // as the user's programs may have set it
}

// FileKind says what an entry of a folder is.
type FileKind string

// The kinds of entries. Only regular files can be read.
const (
	FileRegular FileKind = "file"
	FileFolder  FileKind = "directory"
	FileLink    FileKind = "symlink"
	FileOther   FileKind = "other" // a FIFO, a socket, a device
)

// ErrNoSession is that the owner never had the session.
var ErrNoSession = errors.New("there is no such session")

// GoneReason says how a session came to its end.
type GoneReason string

// The ends of a session.
const (
	GoneClosed  GoneReason = "closed"  // its owner closed it
	GoneExpired GoneReason = "expired" // its TTL went by
	GoneIdle    GoneReason = "idle"    // nobody used it for its idle time
	GoneEvicted GoneReason = "evicted" // room was short, and it had been idle for longest
	GoneLost    GoneReason = "lost"    // its sandbox ended, or could not be found again after a restart of the service
	GoneService GoneReason = "service" // the service that had it is not there any more, or knows nothing of it
)

// GoneError is a session that is over. It is remembered for a while, and then
// the session is one that never was.
type GoneError struct {
	Reason GoneReason
	At     time.Time // zero: not known
	Err    error     // the cause, for the log; may be nil
}

func (e *GoneError) Error() string { return "the session is over: " + string(e.Reason) }

func (e *GoneError) Unwrap() error { return e.Err }

// ElsewhereError is a session that another service has, which is to be asked instead.
type ElsewhereError struct{ Service string } // its address, HOST:PORT

func (e *ElsewhereError) Error() string { return "the session is at another service" }

// FileCode says what kind of refusal a FileError is.
type FileCode string

// What can be wrong with a call of Files.
const (
	FileNotFound FileCode = "not_found" // there is no such file
	FileExists   FileCode = "exists"    // there is one, and it is not to be replaced
	FileNotPlain FileCode = "not_plain" // not a regular file; or on the way to it, something that is no folder
	FileNoRoom   FileCode = "no_room"   // /mnt/data is full
	FileRefused  FileCode = "refused"   // not a path within /mnt/data, or without permission
	FileBusy     FileCode = "busy"      // it was changed meanwhile, or took too long
)

// FileError is a call of Files that could not be done, by the state of /mnt/data.
type FileError struct {
	Code    FileCode
	Path    string // as it was asked for
	Message string // public
}

func (e *FileError) Error() string { return fmt.Sprintf("%q: %s", e.Path, e.Message) }
