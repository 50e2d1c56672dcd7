package wire

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// A listener makes workers where no Docker daemon does: it is the first process of a container
// beside the service's, and each worker is a process in that. On each connection to its socket
// the service says one Call, and hears one Answer, each a line of JSON. After the answers to
// CallStart and CallAttach the connection is the worker's stream.

// CallKind is what a service wants of a listener.
type CallKind string

// The calls.
const (
	CallReady  CallKind = "ready"  // whether it is there
	CallStart  CallKind = "start"  // a worker by a new id, with a token
	CallAttach CallKind = "attach" // to a worker that runs; who was before has no stream any more
	CallWait   CallKind = "wait"   // for its end, which the answer has
	CallEnd    CallKind = "end"    // it, and answer when nothing is left
	CallReap   CallKind = "reap"   // end all of the service but those of Keep
)

type (
	// Call is one.
	Call struct {
		Do      CallKind `json:"do"`
		Service string   `json:"service"` // whose the worker is
		ID      string   `json:"id,omitempty"`
		Token   []byte   `json:"token,omitempty"`
		Keep    []string `json:"keep,omitempty"`
	}
	// Answer is that to a call.
	Answer struct {
		Error   string `json:"error,omitempty"`
		Unknown bool   `json:"unknown,omitempty"` // there is no such worker

		Version   int    `json:"version,omitempty"` // of this protocol and the worker's: Version
		FirstUser int    `json:"first_user,omitempty"`
		Users     int    `json:"users,omitempty"`  // ids from FirstUser on
		Cores     int    `json:"cores,omitempty"`  // of the host
		Memory    int64  `json:"memory,omitempty"` // that the container may have, bytes; 0: no limit
		Token     []byte `json:"token,omitempty"`

		Code int    `json:"code,omitempty"` // the exit code; 128 + signal where one ended it
		Log  string `json:"log,omitempty"`  // its last words
	}
)

// maxCall bounds a call and an answer, bytes: the last words of a worker are the longest.
const maxCall = 64 << 10

// WriteLine writes a call or an answer.
func WriteLine(w io.Writer, v any) error {
	line, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = w.Write(append(line, '\n'))
	return err
}

// ReadLine reads one, and nothing after it but what the reader holds.
func ReadLine(r *bufio.Reader, v any) error {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		if line = append(line, part...); len(line) > maxCall {
			return errors.New("wire: a line that is too long")
		}
		if err == nil {
			break
		} else if !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
	}
	if err := json.Unmarshal(line, v); err != nil {
		return fmt.Errorf("wire: a line of a listener: %w", err)
	}
	return nil
}
