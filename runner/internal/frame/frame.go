// Package frame is the sandbox protocol: frames in both directions over one
// stream. The program at its other end is environments/harness.
//
// A frame is a version byte, a kind byte, a big-endian uint32 length and that
// many bytes of payload. A run is, seen from the service:
//
//	→ warm
//	← ready
//	→ job, notebook…, (input, data…)…, go
//	← event…
//	← outcome, notebook…
//	← (file, data…, end | skipped)…
//	← done
//
// A sandbox becomes a session's if a session frame goes out instead of the first
// job. Then, seen from the service:
//
//	→ session
//	← kept                                           a kernel with the session's env is up
//	→ (job, notebook…, go                            no inputs: they are written as files
//	   ← event…, outcome, notebook…, (file, data…, end | skipped)…, done)…
//
// and at any time from kept on, also while a job runs:
//
//	→ interrupt                                      SIGINT to what runs
//	→ restart, ← restarted                           a job that runs ends first, as killed
//	→← channel                                       of the network, and of file operations
//
// Job after job comes only after the done of the one before. The harness
// ends what it is to end (time, output, cancel) by an interrupt, and only
// if that is not heeded by the end of the kernel, after which it starts another.
// A session's sandbox waits for its service until the session's ttl is over, on its
// own clock, even if the stream has ended or nobody pings.
//
// To adopt a session's sandbox, a service that attaches anew writes the session's
// token (TokenSize random bytes, which the session frame brought) and then a
// nonce of as many bytes that nobody has seen before. The harness looks for the token in all
// that it reads, also in the middle of a frame; it forgets what came before, resets every
// channel, cancels what runs without sending anything of its rest, and answers with the
// nonce outside any frame, at a boundary of its own frames; a resumed frame follows.
// The service passes over all until the nonce.
//
// Channels with the top bit of their id set are file operations: the service opens
// them (operation o), ids going up from 1<<31 and used once in a stream. The harness joins each
// with a socketpair to a child with the user's rights, which reads one line of JSON, a
// FileRequest, and for a write the content until the service's end; it answers with one
// line of JSON, a FileReply, and for a read with Size bytes of content, for a list with
// a line of JSON, a FileEntry, for each entry, and ends. A write that the service resets leaves
// nothing. At most MaxFileChannels are open at one time.
//
// A hurry may go out between warm and ready. Pings go out all the while; a cancel may go out between go and outcome. A
// failed may come in instead of any of the harness's frames. If the job grants
// a network, channel frames go both ways between go and outcome; see package channel.
package frame

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
)

// Version of the protocol; both sides must have the same.
const Version = 1

// Kind says what a frame's payload is.
type Kind byte

// To the sandbox.
const (
	KindWarm       Kind = 'W' // Warm: the first frame of all
	KindHurry      Kind = 'H' // a run waits: import nothing more
	KindJob        Kind = 'J' // Job
	KindNotebookIn Kind = 'N' // a part of the notebook
	KindInput      Kind = 'I' // Input: the data frames after it are its content
	KindInputData  Kind = 'B'
	KindGo         Kind = 'G' // all is there: run
	KindPing       Kind = 'P' // the service is alive
	KindCancel     Kind = 'C' // end the run now, or with Gently interrupt it first
)

// Gently is a payload of KindCancel.
const Gently = "i"

// To a session's sandbox.
const (
	KindSession   Kind = 'S' // Session
	KindInterrupt Kind = 'T' // no payload
	KindRestart   Kind = 'A' // no payload
)

// From a session's sandbox.
const (
	KindKept      Kind = 's' // no payload
	KindRestarted Kind = 'a' // no payload
	KindResumed   Kind = 'r' // Resumed
)

const (
	// TokenSize of a session's token, and of a nonce, bytes: not to be guessed, nor to
	// come up in what is sent by chance.
	TokenSize = 32
	// MaxFileChannels are file operations of a session at one time.
	MaxFileChannels = 8
)

// KindChannel goes both ways: a connection to the sandbox's proxy, see package
// channel for its payload.
const KindChannel Kind = 'Y'

// From the sandbox.
const (
	KindReady       Kind = 'R' // Ready
	KindEvent       Kind = 'E' // runner.Event
	KindOutcome     Kind = 'O' // Outcome
	KindNotebookOut Kind = 'n' // a part of the executed notebook
	KindFile        Kind = 'F' // File: the data frames after it are its content
	KindFileData    Kind = 'D'
	KindFileEnd     Kind = 'Z' // FileEnd
	KindSkipped     Kind = 'K' // runner.Skipped
	KindDone        Kind = 'X' // Done
	KindFailed      Kind = 'L' // Failed: the harness itself failed
)

const (
	headerSize = 6 // bytes
	// ChunkSize is how much bulk data is put into one frame, in bytes, as in the
	// harness: few system calls, little memory.
	ChunkSize = 256 << 10
	// MaxControl bounds every frame but events, in bytes: a path and some
	// numbers, or one chunk.
	MaxControl = 1 << 20
	// JSONGrowth is how much longer text can get as ASCII JSON: \u00XX for one
	// byte, or six for each three bytes of the rest.
	JSONGrowth = 6
)

// Job is what the service asks for. The JSON names are those of the harness.
type Job struct {
	NotebookBytes  int               `json:"notebook_bytes"`
	Inputs         []string          `json:"inputs"`
	Env            map[string]string `json:"env"`
	StopOnError    bool              `json:"stop_on_error"`
	TimeoutSeconds float64           `json:"timeout_seconds"`
	MaxOutput      int64             `json:"max_output"`
	MaxFiles       int               `json:"max_files"`
	MaxFileBytes   int64             `json:"max_file_bytes"`
	Network        *Network          `json:"network"` // nil: none; of a session's job it is not looked at
	Command        string            `json:"command"` // for bash instead of the kernel, in a session; "": none
}

// Session makes a sandbox a session's. The JSON names are those of the harness.
type Session struct {
	Token      []byte            `json:"token"` // base64 in JSON
	TTLSeconds float64           `json:"ttl_seconds"`
	Env        map[string]string `json:"env"`
	Network    *Network          `json:"network"` // nil: none
}

// FileRequest is what a file operation asks for. Paths are relative to /mnt/data.
type FileRequest struct {
	Operation string `json:"op"` // list, read, write, delete, move
	Path      string `json:"path"`
	To        string `json:"to,omitempty"`        // of move
	Recursive bool   `json:"recursive,omitempty"` // of list
	Overwrite bool   `json:"overwrite,omitempty"` // of move
	Max       int    `json:"max,omitempty"`       // entries, of list
}

// FileReply answers it.
type FileReply struct {
	Code    string    `json:"code"`    // "" for success, or a runner.FileCode
	Message string    `json:"message"` // why not, for people: public
	Entry   FileEntry `json:"entry"`   // of read, write (it is there then) and move
	Entries int       `json:"entries"` // of list: as many lines follow
	More    bool      `json:"more"`    // of list: there are more
}

// FileEntry is a runner.FileInfo.
type FileEntry struct {
	Path       string `json:"path"`
	Kind       string `json:"kind"` // file, directory, symlink, other
	Size       int64  `json:"size"`
	ModifiedNS int64  `json:"modified_ns"` // since 1970
}

type (
	// Warm says which kernel to start, and what to do with it before a job is there. The
	// JSON names are those of the harness.
	Warm struct {
		Kernel     string            `json:"kernel"`  // of a kernelspec in the image
		Modules    []string          `json:"modules"` // that a kernel of the harness's own imports
		Cells      []string          `json:"cells"`   // that another one runs
		Interrupts bool              `json:"interrupts"`
		Finishes   bool              `json:"finishes"`
		Env        map[string]string `json:"env"`      // of the kernel and of commands
		Packages   bool              `json:"packages"` // some of the image's are a caller's choice
	}
	// Network has the harness offer a proxy. The JSON name is the harness's.
	Network struct {
		CA string `json:"ca"` // certificates in PEM to trust beside the image's own; may be empty
	}
	// Input announces a file for /mnt/data.
	Input struct {
		Path string `json:"path"`
	}
	// Ready says that a job can be taken.
	Ready struct {
		Version int `json:"version"`
	}
	// Outcome says how the cells went.
	Outcome struct {
		Status     string `json:"status"` // a runner.Status
		WallNS     int64  `json:"wall_ns"`
		CPUNS      int64  `json:"cpu_ns"`
		PeakMemory int64  `json:"peak_memory"` // in a session, since its begin
		ExitCode   *int   `json:"exit_code"`   // of a command that ended by itself; else null
		// KernelRestarted is that this job did not begin with the kernel that the job
		// before it ended with, or that its own is no more. There is another by done.
		KernelRestarted bool `json:"kernel_restarted"`
	}
	// Resumed says what there is of a session that was adopted.
	Resumed struct {
		Version int `json:"version"`
		// KernelRestarted is that no next outcome would say so: what was cancelled by
		// the adoption had lost its kernel, or the kernel died while nobody was there.
		KernelRestarted bool    `json:"kernel_restarted"`
		TTLSeconds      float64 `json:"ttl_seconds"` // that are left
	}
	// File announces a file that the run made or changed.
	File struct {
		Path string `json:"path"`
	}
	// FileEnd is the end of a file's content.
	FileEnd struct {
		Reason string `json:"reason"` // why the content is not whole; else ""
	}
	// Done is the end of the run.
	Done struct {
		Collected bool  `json:"collected"` // false if collecting the files was cut short
		CPUNS     int64 `json:"cpu_ns"`    // of the sandbox since it had the job
	}
	// Failed is the harness's own failure.
	Failed struct {
		Message  string `json:"message"`
		Env      bool   `json:"env"`      // it is the variables that the job brought
		Packages bool   `json:"packages"` // it is what Warm calls Packages
	}
)

// Write writes one frame in one Write.
func Write(w io.Writer, kind Kind, payload []byte) error {
	buffer := make([]byte, headerSize, headerSize+len(payload))
	buffer[0], buffer[1] = Version, byte(kind)
	binary.BigEndian.PutUint32(buffer[2:], uint32(len(payload)))
	_, err := w.Write(append(buffer, payload...))
	return err
}

// WriteJSON writes one frame whose payload is v as JSON.
func WriteJSON(w io.Writer, kind Kind, v any) error {
	payload, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("frame %c: %w", kind, err)
	}
	return Write(w, kind, payload)
}

// Read reads one frame from a sender that is not trusted. maxEvent bounds
// the payload of an event, in bytes.
func Read(r io.Reader, maxEvent int64) (Kind, []byte, error) {
	return ReadBounded(r, func() int64 { return maxEvent })
}

// ReadBounded is Read with a bound that is asked for when an event is there, which
// may be long after the call.
func ReadBounded(r io.Reader, maxEvent func() int64) (Kind, []byte, error) {
	var header [headerSize]byte
	if _, err := io.ReadFull(r, header[:]); err != nil {
		return 0, nil, err
	}
	if header[0] != Version {
		return 0, nil, fmt.Errorf("frame of version %d, not %d", header[0], Version)
	}
	kind, size := Kind(header[1]), int64(binary.BigEndian.Uint32(header[2:]))
	limit := int64(MaxControl)
	if kind == KindEvent {
		limit = max(limit, maxEvent())
	}
	if size > limit {
		return 0, nil, fmt.Errorf("frame %q of %d bytes, more than %d", rune(kind), size, limit)
	}
	payload := make([]byte, size)
	if _, err := io.ReadFull(r, payload); err != nil {
		return 0, nil, fmt.Errorf("frame %q: %w", rune(kind), err)
	}
	return kind, payload, nil
}

// Decode reads a payload that is JSON.
func Decode[T any](kind Kind, payload []byte) (T, error) {
	var v T
	if err := json.Unmarshal(payload, &v); err != nil {
		return v, fmt.Errorf("frame %q: %w", rune(kind), err)
	}
	return v, nil
}
