package runnertest

import (
	"fmt"
	"io"
	"strings"

	"notebox/runner"
	"notebox/runner/internal/frame"
)

// The programs here are what a Runner must hold against. Each ends at the
// latest when its stream is closed.

// NeverReady is a program that says nothing.
func NeverReady(stream Stream) int { return drain(stream) }

// ExitsAtOnce returns a program that ends before it is ready.
func ExitsAtOnce(code int) Program {
	return func(Stream) int { return code }
}

// OtherVersion is a program that is ready for a protocol of another version.
func OtherVersion(stream Stream) int {
	_, _, _ = frame.Read(stream, 0)
	_ = frame.WriteJSON(stream, frame.KindReady, frame.Ready{Version: frame.Version + 1})
	return drain(stream)
}

// Deaf is a program that gets ready and then reads nothing.
func Deaf(stream Stream) int {
	ready(stream)
	<-stream.Closed
	return 1
}

// DeafAfterGo is a program that takes a job, and then neither reads nor writes.
func DeafAfterGo(stream Stream) int {
	if readJob(stream) {
		<-stream.Closed
	}
	return 1
}

// AfterGo returns a program that takes a job like an honest one, and then does
// what script does; it reads on meanwhile. It stays as long as its stream
// if the exit code is negative.
func AfterGo(script func(to io.Writer) int) Program {
	return func(stream Stream) int {
		if !readJob(stream) {
			return 1
		}
		closed := make(chan struct{})
		go func() { drain(stream); close(closed) }()
		code := script(stream)
		if code < 0 {
			<-closed
		}
		return code
	}
}

// Stays is an AfterGo script's code for a program that does not end by itself.
const Stays = -1

// DiesAfterGo returns a program that ends in mid-run, after one line of output.
func DiesAfterGo(code int) Program {
	return AfterGo(func(to io.Writer) int {
		SendText(to, "started\n")
		return code
	})
}

// Hangs is a program that answers nothing after one line of output.
var Hangs = AfterGo(func(to io.Writer) int {
	SendText(to, "started\n")
	return Stays
})

// FloodsEvents is a program whose output never ends.
var FloodsEvents = AfterGo(func(to io.Writer) int {
	for SendText(to, "x") == nil {
		continue
	}
	return 1
})

// FloodsBytes is a program whose output is few events, and too large.
var FloodsBytes = AfterGo(func(to io.Writer) int {
	text := strings.Repeat("x", 1<<20)
	for SendText(to, text) == nil {
		continue
	}
	return 1
})

// TooManyFiles is a program with an endless number of files.
var TooManyFiles = AfterGo(func(to io.Writer) int {
	SendOutcome(to, runner.StatusOK)
	for i := 0; ; i++ {
		if err := frame.WriteJSON(to, frame.KindFile, frame.File{Path: fmt.Sprint(i)}); err != nil {
			return 1
		}
		_ = frame.WriteJSON(to, frame.KindFileEnd, frame.FileEnd{})
	}
})

// EndlessFile is a program with a file that does not end.
var EndlessFile = AfterGo(func(to io.Writer) int {
	SendOutcome(to, runner.StatusOK)
	_ = frame.WriteJSON(to, frame.KindFile, frame.File{Path: "endless"})
	for frame.Write(to, frame.KindFileData, make([]byte, frame.ChunkSize)) == nil {
		continue
	}
	return 1
})

// OversizedNotebook is a program with a notebook that does not end.
var OversizedNotebook = AfterGo(func(to io.Writer) int {
	SendOutcome(to, runner.StatusOK)
	for frame.Write(to, frame.KindNotebookOut, make([]byte, frame.ChunkSize)) == nil {
		continue
	}
	return 1
})

// EndlessSkipped is a program that skips files without end.
var EndlessSkipped = AfterGo(func(to io.Writer) int {
	SendOutcome(to, runner.StatusOK)
	reason := strings.Repeat("x", 100_000)
	for frame.WriteJSON(to, frame.KindSkipped, runner.Skipped{Path: "/mnt/data/a", Reason: reason}) == nil {
		continue
	}
	return 1
})

// Sends returns a program that sends these bytes after go, and stays.
func Sends(raw []byte) Program {
	return AfterGo(func(to io.Writer) int {
		_, _ = to.Write(raw)
		return Stays
	})
}

// SendText sends an event: a line on stdout of the first cell.
func SendText(to io.Writer, text string) error {
	return frame.Write(to, frame.KindEvent, fmt.Appendf(nil,
		`{"kind":"output","cell":0,"output":{"output_type":"stream","name":"stdout","text":%q}}`, text))
}

// SendOutcome says how the cells went.
func SendOutcome(to io.Writer, status runner.Status) {
	_ = frame.WriteJSON(to, frame.KindOutcome, frame.Outcome{Status: string(status), WallNS: 1})
}

// readJob gets ready and reads up to go.
func readJob(stream Stream) bool {
	ready(stream)
	for {
		kind, _, err := frame.Read(stream, 0)
		if err != nil {
			return false
		}
		if kind == frame.KindGo {
			return true
		}
	}
}

func ready(stream io.ReadWriter) {
	_, _, _ = frame.Read(stream, 0) // warm
	_ = frame.WriteJSON(stream, frame.KindReady, frame.Ready{Version: frame.Version})
}

// drain reads to the end of the stream.
func drain(stream io.Reader) int {
	_, _ = io.Copy(io.Discard, stream)
	return 1
}
