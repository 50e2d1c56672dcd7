package runner

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"time"
)

// Runner executes a notebook in a sandbox that nobody used before and nobody
// will use again.
type Runner interface {
	// Run returns when no process of the run can run any more. A non-nil error means
	// that the service failed, never that the user's code did: that is a
	// Status of the outcome. The end of ctx cancels the run, which then still
	// yields an outcome with what it had produced. It is an *Error if a
	// caller can do something about it (full, not available).
	//
	// events is guaranteed to be non-nil; its methods are called one at a time
	// and never after Run has returned.
	Run(ctx context.Context, spec Spec, events Sink) (*Outcome, error)
}

// Spec is one run.
type Spec struct {
	ID          string            // of the run; for labels and logs
	Owner       string            // who asked, for fairness; never a secret
	Environment Environment       // the image to run in
	Notebook    []byte            // an nbformat 4 document, UTF-8 JSON
	Inputs      []Input           // put into /mnt/data before the run
	Env         map[string]string // environment variables of the kernel
	// Command is a line for bash, run as a process of its own beside the kernel: in a
	// session only. Notebook has one code cell then, which gets its outputs.
	Command     string
	StopOnError bool    // leave the cells after one that raised unrun
	Network     Network // what its programs reach; nil: nothing
	Limits      Limits
	WaitUntil   time.Time // when to give up waiting for a sandbox; zero is never
	Observe     PhaseFunc // hears of the run's phases; may be nil
}

// Environment names what a sandbox is started from.
type Environment struct {
	Name   string // "jupyter"
	Image  string // a reference that the engine can start
	Kernel Kernel // what runs in it; the zero value is the harness's own, for Python
	// Owner is whose sandboxes share nothing but the host's kernel with another's; "" is
	// whose may.
	Owner string
}

// PythonKernel is the name of the kernel that the harness forks from itself.
const PythonKernel = "python3"

// Kernel is the Jupyter kernel of an environment, and how it is treated.
type Kernel struct {
	Name string // of the kernelspec in the image; "" is PythonKernel
	// WarmUp is what is done before there is a job, the most wanted first: modules that
	// PythonKernel imports, which runs see in sys.modules and nowhere else; cells that
	// another kernel runs.
	WarmUp []string
	// Interrupts is that a cell can be interrupted, and Finishes that the kernel's own end
	// does what a user can notice. PythonKernel has both.
	Interrupts, Finishes bool
	Env                  map[string]string // variables beside those of the kernelspec
	Packages             bool              // the image has some that a caller has chosen
}

// Spec is the name of its kernelspec in the image.
func (k Kernel) Spec() string { return cmp.Or(k.Name, PythonKernel) }

// Input is a file for /mnt/data.
type Input struct {
	Path string // slash-separated, relative to /mnt/data, already validated
	Size int64  // bytes
	Open func() (io.ReadCloser, error)
}

// Sink takes what a run produces while it runs.
type Sink interface {
	// Output is called for each change of the notebook's outputs, as it happens.
	Output(Event)
	// File is called once for each file that the run created or changed, after
	// its last cell. It reads content to its end or returns an error, which
	// becomes the file's fate and does not fail the run. path is relative to
	// /mnt/data, slash-separated and hostile: any bytes but NUL, valid UTF-8.
	File(ctx context.Context, path string, content io.Reader) error
}

// EventKind says what an Event does to the outputs of its cell.
type EventKind string

// The kinds of Event, after the messages of the Jupyter protocol that cause
// them (jupyter_client, "Messaging in Jupyter").
const (
	EventOutput EventKind = "output" // one more output
	EventUpdate EventKind = "update" // update_display_data: outputs of a display id changed
	EventClear  EventKind = "clear"  // clear_output
)

// Event is one change of a notebook's outputs.
type Event struct {
	Kind EventKind `json:"kind"`
	Cell int       `json:"cell"` // index in the notebook's cells; hostile, but not negative
	// Output is, for EventOutput and EventUpdate, an nbformat 4 output: hostile JSON.
	Output json.RawMessage `json:"output,omitempty"`
}

// Status is how a run ended.
type Status string

// The ways in which a run ends (shared with callers, see the HTTP API).
const (
	StatusOK          Status = "ok"
	StatusError       Status = "error"         // a cell raised
	StatusTimeout     Status = "timeout"       // Limits.Timeout went by
	StatusOutOfMemory Status = "out_of_memory" // the kernel of the host killed a process, or MemoryError was not caught
	StatusKilled      Status = "killed"        // the notebook's kernel died of something else
	StatusOutputLimit Status = "output_limit"  // more output than Limits.Output
	StatusCancelled   Status = "cancelled"     // the caller wanted no more of it
)

// Statuses are all there are.
func Statuses() []Status {
	return []Status{StatusOK, StatusError, StatusTimeout, StatusOutOfMemory, StatusKilled, StatusOutputLimit, StatusCancelled}
}

// Outcome is what is left of a run.
type Outcome struct {
	Status   Status
	Notebook []byte    // the executed notebook: hostile bytes; nil if nothing came back
	Skipped  []Skipped // files that were not passed to the Sink
	Usage    Usage
	// ExitCode is that of Spec.Command, 128 + signal if a signal ended it; nil if
	// there was none, or it was ended for another Status. Other than 0 is StatusError.
	ExitCode *int
	// KernelRestarted is that the session's variables are lost: its kernel died in
	// this run or since the one before, or had to be ended, and there is a new one.
	KernelRestarted bool
}

// Skipped is a file that was left behind, and why.
type Skipped struct {
	Path   string `json:"path"`   // absolute in the sandbox, hostile, valid UTF-8
	Reason string `json:"reason"` // for people
}

// Usage is what a run took. A sandbox that died before it could say: Wall is then on the
// service's clock, CPU all that it could have used, PeakMemory the limit if memory ran out.
type Usage struct {
	Queue      time.Duration // from Run to a ready sandbox
	Wall       time.Duration // all cells together, on the sandbox's clock
	CPU        time.Duration // of all processes of the sandbox while the cells ran
	CPUOfJob   time.Duration // the same from its job to its end: a kernel's start and exit run code too; 0 if unknown
	PeakMemory int64         // bytes, of the sandbox, tmpfs included; 0 if unknown
}
