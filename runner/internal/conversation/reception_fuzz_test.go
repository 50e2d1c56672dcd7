package conversation

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/runner"
	"notebox/runner/internal/frame"
)

// FuzzReception has a sandbox send any bytes after go, and end.
func FuzzReception(f *testing.F) {
	outcome := fuzzFrame(frame.KindOutcome, `{"status":"ok","wall_ns":5}`)
	event := fuzzFrame(frame.KindEvent, `{"kind":"output","cell":0,"output":{"output_type":"stream"}}`)
	book := fuzzFrame(frame.KindNotebookOut, `{"cells":[]}`)
	file := slices.Concat(fuzzFrame(frame.KindFile, `{"path":"a/b"}`), fuzzFrame(frame.KindFileData, "data"), fuzzFrame(frame.KindFileEnd, `{}`))
	half := slices.Concat(fuzzFrame(frame.KindFile, `{"path":"c"}`), fuzzFrame(frame.KindFileEnd, `{"reason":"gone"}`))
	skipped := fuzzFrame(frame.KindSkipped, `{"path":"/mnt/data/l","reason":"symbolic link"}`)
	done := fuzzFrame(frame.KindDone, `{"collected":true}`)
	f.Add([]byte{}, 0)
	f.Add(slices.Concat(event, event, outcome, book, file, half, skipped, done), 0)
	f.Add(slices.Concat(event, outcome, book, book, file, file, file), 137)
	f.Add(slices.Concat(event, fuzzFrame(frame.KindFailed, `{"message":"x"}`)), 1)
	f.Add(slices.Concat(outcome, outcome), 1)
	f.Add(slices.Concat(outcome, fuzzFrame(frame.KindFile, `{"path":"../a"}`), done), 1)
	f.Add(slices.Concat(done, outcome), 1)
	channels := slices.Concat(fuzzFrame(frame.KindChannel, "o\x00\x00\x00\x01"), fuzzFrame(frame.KindChannel, "d\x00\x00\x00\x01data"))
	f.Add(slices.Concat(channels, event, outcome, done), 1)
	f.Add(slices.Concat(outcome, channels), 1)
	f.Add([]byte{1, 'E', 0xff, 0xff, 0xff, 0xff}, 0)
	f.Add([]byte{1, 'O', 0, 0, 0, 9, '{'}, 0)
	f.Fuzz(func(t *testing.T, raw []byte, code int) {
		limits := runner.Limits{Timeout: time.Minute, Output: 1000, Files: 2, FileSize: 100}
		sink := &fuzzSink{t: t, limits: limits}
		c := New(&fuzzSandbox{Reader: bytes.NewReader(raw), code: code}, slog.New(slog.DiscardHandler))
		spec, network := runner.Spec{Limits: limits}, &fuzzNetwork{}
		if code%2 == 1 {
			spec.Network = network
		}
		job := newJob(c, spec, time.Now())
		c.job, c.used = job, true
		job.network = c.serve(t.Context(), spec.Network, spec.ID)
		go c.read()
		out, err := job.Receive(t.Context(), sink)
		c.Close(io.EOF)
		require.False(t, network.serving)
		sink.over = true
		if err != nil {
			require.Nil(t, out)
			return
		}
		require.Contains(t, runner.Statuses(), out.Status)
		require.LessOrEqual(t, len(out.Skipped), maxSkipped+limits.Files+1)
		require.LessOrEqual(t, sink.files, limits.Files)
		require.LessOrEqual(t, sink.bytes, limits.FileSize)
	})
}

func fuzzFrame(kind frame.Kind, payload string) []byte {
	var b bytes.Buffer
	_ = frame.Write(&b, kind, []byte(payload))
	return b.Bytes()
}

// fuzzNetwork sends back what it gets.
type fuzzNetwork struct{ serving bool }

func (*fuzzNetwork) CA() []byte { return nil }

func (n *fuzzNetwork) Serve(_ context.Context, _ string, l net.Listener) {
	n.serving = true
	var conns sync.WaitGroup
	for {
		c, err := l.Accept()
		if err != nil {
			break
		}
		conns.Go(func() { _, _ = io.Copy(c, c) })
	}
	conns.Wait()
	n.serving = false
}

// fuzzSandbox is a Sandbox that has said all it will.
type fuzzSandbox struct {
	*bytes.Reader
	code int
}

func (s *fuzzSandbox) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	if err == io.EOF {
		err = &runner.ExitError{Code: s.code}
	}
	return n, err
}

func (s *fuzzSandbox) Write(p []byte) (int, error) { return len(p), nil }
func (s *fuzzSandbox) Close() error                { return nil }
func (s *fuzzSandbox) ID() string                  { return "fuzz" }
func (s *fuzzSandbox) Kill(context.Context) error  { return nil }

// fuzzSink holds a Runner to the contract of Sink.
type fuzzSink struct {
	t      *testing.T
	limits runner.Limits
	over   bool // Run has returned
	files  int
	bytes  int64
}

func (s *fuzzSink) Output(e runner.Event) {
	require.False(s.t, s.over)
	require.GreaterOrEqual(s.t, e.Cell, 0)
	require.Contains(s.t, []runner.EventKind{runner.EventOutput, runner.EventUpdate, runner.EventClear}, e.Kind)
}

func (s *fuzzSink) File(_ context.Context, path string, content io.Reader) error {
	require.False(s.t, s.over)
	require.NotEmpty(s.t, path)
	require.NotContains(s.t, path, "\x00")
	for part := range strings.SplitSeq(path, "/") {
		require.NotContains(s.t, []string{"", ".", ".."}, part)
	}
	n, err := io.Copy(io.Discard, content)
	s.files, s.bytes = s.files+1, s.bytes+n
	return err
}
