// Package wire is the stream between a service and a worker: the one stream of a container,
// which carries the streams of many cells.
//
// A message is a kind byte, a big-endian uint32 with the cell's number (0 is the worker's
// own), a big-endian uint32 length, that many bytes, and a byte 0. Seen from the service:
//
//	→ setup                       Setup
//	← up                          Up: the zygote forks from now on
//	→ open                        Open, with a number that was never used before
//	→← data, credit               the cell's stream, from open on
//	← ended                       Ended, after the last data of a cell that ended by itself
//	→ kill                        once for each cell that was opened
//	← gone                        Gone: nothing is left of it
//
// The service pings every PingInterval, and the worker answers with a ping. A worker that hears
// nothing for Silence ends, and with it all cells but those that are kept. A worker that answered
// pings and says nothing for StandsStill is removed. Failed may come at any time: the worker has failed as a whole,
// and ends.
//
// A cell can be kept, and outlives its service then:
//
//	→ keep, ← kept                the cell's number is its name
//	→ attach, ← here              its stream begins anew, with new windows; what was under way is lost
//
// A service that comes to a worker of an earlier one writes the worker's token (TokenSize
// bytes, which setup brought) and a nonce of as many. The worker looks for the token in all
// that it reads, also in the middle of a message, and holds back what may be its beginning:
// never the end of a message, as no byte of a token is 0. It ends all cells that are not kept, answers
// with the nonce outside any message, and then with resume. The service passes over all until
// the nonce.
//
// Two questions may be asked at any time:
//
//	→ look, ← looked              Looked, of a cell that runs: which walls it is without
//	→ weigh, ← weight             Measured, of the worker and all cells
//
// A cell that takes long to begin may be held up by what other cells do, in any worker:
//
//	← late                        again and again, until the cell has begun
//	→ calm                        to all workers: the largest cells stand still for a moment
//	→ leave, ← left               no cell stands still from now on: the worker is about to be removed
//
// Each side of a cell's stream begins with Window bytes of credit for the other, and gives
// more as its reader takes what has come. So a cell whose reader is slow holds up itself
// alone, and the memory of a stream is bounded. What is in the data is nobody's business here.
package wire

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// Version of the protocol; both sides must have the same.
const Version = 1

// Kind says what a message's payload is.
type Kind byte

// The kinds of messages.
const (
	KindSetup  Kind = 'S'
	KindOpen   Kind = 'O'
	KindKill   Kind = 'K'
	KindPing   Kind = 'P'
	KindKeep   Kind = 'N'
	KindKept   Kind = 'n'
	KindAttach Kind = 'A'
	KindHere   Kind = 'a'
	KindResume Kind = 'R' // Resumed
	KindLook   Kind = 'L'
	KindLooked Kind = 'l'
	KindWeigh  Kind = 'M'
	KindWeight Kind = 'm' // Measured
	KindLate   Kind = 'T'
	KindCalm   Kind = 'B'
	KindLeave  Kind = 'V'
	KindLeft   Kind = 'v'
	KindUp     Kind = 'U'
	KindEnded  Kind = 'E'
	KindGone   Kind = 'G'
	KindFailed Kind = 'F'
	KindData   Kind = 'D'
	KindCredit Kind = 'C'
)

const (
	// Window is how many bytes of a cell may be under way in one direction: enough for a
	// transfer at full speed, and with a hundred cells 50 MB.
	Window = 256 << 10
	// maxData is how much of a cell goes into one message, in bytes, so that others have
	// their turn.
	maxData = 32 << 10
	// maxControl bounds every other message, in bytes: a seccomp profile is 20 KB.
	maxControl = 1 << 20
	headerSize = 9
	// end is the last byte of each message.
	end = 0
	// TokenSize of a worker's token, and of a nonce, bytes: not to be guessed, nor to come up
	// in what is sent by chance.
	TokenSize = 32
	// ZygoteIDs are how many of a worker's ids are not for cells: the first is the zygote's root
	// outside, the next the owner of its namespace.
	ZygoteIDs = 2
	// Silence outlasts what a busy host or a daemon that restarts may take.
	Silence = 30 * time.Second
	// StandsStill is several pings: a worker answers within milliseconds, or seconds on a busy
	// host, and all its runs wait as long.
	StandsStill  = 10 * time.Second
	PingInterval = 2 * time.Second
)

type (
	// Setup is what a worker needs to know before it makes a cell.
	Setup struct {
		Name      string   `json:"name"` // the worker's, for its control groups
		Token     []byte   `json:"token"`
		Kernel    string   `json:"kernel"`  // the name of its kernelspec in the image
		Modules   []string `json:"modules"` // that the zygote imports
		FirstUser int      `json:"first_user"`
		Users     int      `json:"users"` // how many ids from FirstUser on are the worker's
		// Memory, bytes, and Pids are the limits of supervisor and zygote. On cgroup v1 a container
		// of their own has them already.
		Memory int64 `json:"memory"`
		Pids   int64 `json:"pids"`
		// Masked are files and folders that code finds empty, ReadOnly those that it cannot write.
		Masked   []string          `json:"masked"`
		ReadOnly []string          `json:"read_only"`
		Sysctls  map[string]string `json:"sysctls"` // of the cell's network
		Seccomp  json.RawMessage   `json:"seccomp"` // a profile of Docker's form, for what cells run
	}
	// Resumed says which cells are kept, and run.
	Resumed struct {
		Cells []uint32 `json:"cells"`
		Last  uint32   `json:"last"` // the highest number so far
	}
	// Up says that cells can be opened.
	Up struct {
		Version int    `json:"version"`
		Log     string `json:"log"` // what libraries said when they were imported
	}
	// Open makes a cell.
	Open struct {
		Memory int64   `json:"memory"`
		CPUs   float64 `json:"cpus"`
		Pids   int64   `json:"pids"`
		// Mounts are tmpfs file systems, by folder, with their options.
		Mounts map[string]string `json:"mounts"`
	}
	// Ended is the end of a cell that nobody asked for.
	Ended struct {
		Code int    `json:"code"` // 128 + signal where a signal ended it, -1 where unknown
		Log  string `json:"log"`  // its last words
		// Unborn is that it never began, for no reason of its own: another one would not either.
		Unborn bool `json:"unborn"`
	}
	// Gone says that nothing is left of a cell, or what is.
	Gone struct {
		Error string `json:"error"`
	}
	// Failed says why a worker ends.
	Failed struct {
		Message string `json:"message"`
		Wall    Wall   `json:"wall"` // that cannot be built, if that is why
	}
)

// Message is one.
type Message struct {
	Kind    Kind
	Cell    uint32
	Payload []byte
}

// read reads one message.
func read(r io.Reader) (Message, error) {
	var header [headerSize]byte
	if _, err := io.ReadFull(r, header[:]); err != nil {
		return Message{}, err
	}
	m := Message{Kind: Kind(header[0]), Cell: binary.BigEndian.Uint32(header[1:])}
	size, limit := binary.BigEndian.Uint32(header[5:]), uint32(maxControl)
	if m.Kind == KindData {
		limit = maxData
	}
	if size > limit {
		return m, fmt.Errorf("wire: a message %q of %d bytes", rune(m.Kind), size)
	}
	rest := make([]byte, size+1)
	if _, err := io.ReadFull(r, rest); err != nil {
		return m, errors.Join(io.ErrUnexpectedEOF, err)
	}
	if m.Payload = rest[:size]; rest[size] != end {
		return m, fmt.Errorf("wire: a message %q without its end", rune(m.Kind))
	}
	return m, nil
}

// Decode reads a payload that is JSON.
func Decode[T any](m Message) (T, error) {
	var v T
	if err := json.Unmarshal(m.Payload, &v); err != nil {
		return v, fmt.Errorf("wire: message %q: %w", rune(m.Kind), err)
	}
	return v, nil
}
