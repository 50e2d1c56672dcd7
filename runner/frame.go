package runner

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
)

// The sandbox protocol: frames in both directions over a Sandbox's stream. A
// frame is a version byte, a kind byte, a big-endian uint32 length and that
// many bytes of payload. The program inside is environments/harness.
//
// A run is: ready ←, job →, notebook →…, (input →, data →…)…, go →, event ←…,
// outcome ←, notebook ←…, (file ←, data ←…, end ← | skipped ←)…, done ←. Pings
// go out all the while; a cancel may go out between go and outcome.
const protocolVersion = 1

type frameKind byte

// To the sandbox.
const (
	frameJob        frameKind = 'J' // jobFrame
	frameNotebookIn frameKind = 'N' // a part of the notebook
	frameInput      frameKind = 'I' // inputFrame: the data frames after it are its content
	frameInputData  frameKind = 'B'
	frameGo         frameKind = 'G' // all is there: run
	framePing       frameKind = 'P' // the service is alive
	frameCancel     frameKind = 'C' // end the run now
)

// From the sandbox.
const (
	frameReady       frameKind = 'R' // readyFrame
	frameEvent       frameKind = 'E' // Event
	frameOutcome     frameKind = 'O' // outcomeFrame
	frameNotebookOut frameKind = 'n' // a part of the executed notebook
	frameFile        frameKind = 'F' // fileFrame: the data frames after it are its content
	frameFileData    frameKind = 'D'
	frameFileEnd     frameKind = 'Z' // fileEndFrame
	frameSkipped     frameKind = 'K' // Skipped
	frameDone        frameKind = 'X' // doneFrame
	frameFailed      frameKind = 'L' // failedFrame: the harness itself failed
)

const (
	frameHeaderSize = 6
	chunkSize       = 256 << 10 // bytes of bulk data in one frame, as in the harness
	// maxControlFrame bounds every frame but events, in bytes: a path and some
	// numbers, or one chunk.
	maxControlFrame = 1 << 20
	// jsonGrowth is how much longer text can get as ASCII JSON: \u00XX for one
	// byte, or six for each three bytes of the rest.
	jsonGrowth = 6
)

type jobFrame struct {
	NotebookBytes  int               `json:"notebook_bytes"`
	Inputs         []string          `json:"inputs"`
	Env            map[string]string `json:"env"`
	StopOnError    bool              `json:"stop_on_error"`
	TimeoutSeconds float64           `json:"timeout_seconds"`
	MaxOutput      int64             `json:"max_output"`
	MaxFiles       int               `json:"max_files"`
	MaxFileBytes   int64             `json:"max_file_bytes"`
}

type (
	inputFrame struct {
		Path string `json:"path"`
	}
	readyFrame struct {
		Version int `json:"version"`
	}
	outcomeFrame struct {
		Status     Status `json:"status"`
		WallNS     int64  `json:"wall_ns"`
		CPUNS      int64  `json:"cpu_ns"`
		PeakMemory int64  `json:"peak_memory"`
	}
	fileFrame struct {
		Path string `json:"path"`
	}
	fileEndFrame struct {
		Reason string `json:"reason"` // why the content is not whole; else ""
	}
	doneFrame struct {
		Collected bool `json:"collected"` // false where collecting the files was cut short
	}
	failedFrame struct {
		Message string `json:"message"`
	}
)

// writeFrame writes one frame in one Write.
func writeFrame(w io.Writer, kind frameKind, payload []byte) error {
	frame := make([]byte, frameHeaderSize, frameHeaderSize+len(payload))
	frame[0], frame[1] = protocolVersion, byte(kind)
	binary.BigEndian.PutUint32(frame[2:], uint32(len(payload)))
	_, err := w.Write(append(frame, payload...))
	return err
}

// writeJSON writes one frame whose payload is v as JSON.
func writeJSON(w io.Writer, kind frameKind, v any) error {
	payload, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("frame %c: %w", kind, err)
	}
	return writeFrame(w, kind, payload)
}

// readFrame reads one frame from a sender that is not trusted. maxEvent bounds
// the payload of an event, in bytes.
func readFrame(r io.Reader, maxEvent int64) (frameKind, []byte, error) {
	var header [frameHeaderSize]byte
	if _, err := io.ReadFull(r, header[:]); err != nil {
		return 0, nil, err
	}
	if header[0] != protocolVersion {
		return 0, nil, fmt.Errorf("frame of version %d, not %d", header[0], protocolVersion)
	}
	kind, size := frameKind(header[1]), int64(binary.BigEndian.Uint32(header[2:]))
	limit := int64(maxControlFrame)
	if kind == frameEvent {
		limit = max(limit, maxEvent)
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

// decodeFrame reads a payload that is JSON.
func decodeFrame[T any](kind frameKind, payload []byte) (T, error) {
	var v T
	if err := json.Unmarshal(payload, &v); err != nil {
		return v, fmt.Errorf("frame %q: %w", rune(kind), err)
	}
	return v, nil
}
