package session_test

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/runner"
	"notebox/runner/internal/conversation"
	"notebox/runner/internal/frame"
	"notebox/runner/runnertest"
	"notebox/runner/session"
)

// The deadlines, as a variable of these tests is called as the package.
const (
	restartTimeout = session.RestartTimeout
	fileTimeout    = session.FileTimeout
	maxFileTime    = session.MaxFileTime
)

// inSession is a program that is asked to be a session's, and answers that with begin,
// and each frame after it with script. It reads at all times.
func inSession(begin func(io.Writer), script func(to io.Writer, kind frame.Kind, payload []byte)) runnertest.Program {
	return func(stream runnertest.Stream) int {
		_, _, _ = frame.Read(stream, 0)
		_ = frame.WriteJSON(stream, frame.KindReady, frame.Ready{Version: frame.Version})
		var ended []<-chan struct{}
		defer func() {
			for _, e := range ended {
				<-e
			}
		}()
		for {
			kind, payload, err := frame.Read(stream, 0)
			if err != nil {
				return 0
			}
			e := make(chan struct{})
			ended = append(ended, e)
			go func() {
				defer close(e)
				switch {
				case kind == frame.KindSession && begin != nil:
					begin(stream)
				case kind != frame.KindSession && script != nil:
					script(stream, kind, payload)
				}
			}()
		}
	}
}

func kept(to io.Writer) { _ = frame.Write(to, frame.KindKept, nil) }

// at answers frames of one kind.
func at(wanted frame.Kind, do func(to io.Writer)) func(io.Writer, frame.Kind, []byte) {
	return func(to io.Writer, kind frame.Kind, _ []byte) {
		if kind == wanted {
			do(to)
		}
	}
}

func channelFrame(to io.Writer, op byte, id uint32, data string) {
	_ = frame.Write(to, frame.KindChannel, append(binary.BigEndian.AppendUint32([]byte{op}, id), data...))
}

const firstFile = 1 << 31 // the id of a session's first file operation

// first has only the first sandbox run a program; the others are honest.
func first(t *testing.T, program runnertest.Program) *runnertest.Fake {
	host := runnertest.NewHost(t, nil)
	honest, taken := host.Program, false
	host.Program = func(s runnertest.Stream) int {
		if taken {
			return honest(s)
		}
		taken = true
		return program(s)
	}
	return host
}

// TestHostileSession: what a session's sandbox sends that it must not is the end of
// that session, and of nothing else.
func TestHostileSession(t *testing.T) {
	outcome := func(to io.Writer) { runnertest.SendOutcome(to, runner.StatusOK) }
	done := func(to io.Writer) { _ = frame.WriteJSON(to, frame.KindDone, frame.Done{Collected: true}) }
	for _, c := range []struct {
		desc   string
		go_    func(to io.Writer) // what it sends when a run is to begin
		err    string             // of that run
		status runner.Status      // where there is no error
	}{
		{desc: "a second kept", go_: kept, err: "nobody asked for"},
		{desc: "restarted", go_: func(to io.Writer) { _ = frame.Write(to, frame.KindRestarted, nil) }, err: "nobody asked for"},
		{desc: "ready", go_: func(to io.Writer) { _ = frame.Write(to, frame.KindReady, nil) }, err: "during a job"},
		{desc: "done first", go_: done, err: "before the outcome"},
		{desc: "a file first", go_: func(to io.Writer) { runnertest.SendFile(to, "a", "b") }, err: "before the outcome"},
		{desc: "two outcomes", go_: func(to io.Writer) { outcome(to); outcome(to) }, status: runner.StatusOK},
		{desc: "an outcome after the last", go_: func(to io.Writer) { outcome(to); done(to); outcome(to) }, status: runner.StatusOK},
		{desc: "an event of no cell", go_: func(to io.Writer) { _ = frame.Write(to, frame.KindEvent, []byte(`{"kind":"output","cell":-1}`)) }, err: "cell -1"},
		{desc: "its own failure", go_: func(to io.Writer) {
			_ = frame.WriteJSON(to, frame.KindFailed, frame.Failed{Message: "ValueError: secret"})
		}, err: "the harness failed: ValueError"},
		{desc: "a large frame", go_: func(to io.Writer) { _ = frame.Write(to, frame.KindEvent, make([]byte, 3<<20)) }, err: "of 3145728 bytes"},
		{desc: "no frame", go_: func(to io.Writer) { _, _ = to.Write([]byte("HTTP/1.1")) }, err: "of version 72"},
		{desc: "an exit code", go_: func(to io.Writer) {
			code := 256
			_ = frame.WriteJSON(to, frame.KindOutcome, frame.Outcome{Status: "ok", ExitCode: &code})
		}, err: "an exit code of 256"},
		{desc: "a network", go_: func(to io.Writer) { channelFrame(to, 'o', 1, "") }, err: "no network"},
		{desc: "a file operation of its own", go_: func(to io.Writer) { channelFrame(to, 'o', firstFile+7, "") }, err: "not an open"},
		{desc: "data for a file operation that never was", go_: func(to io.Writer) { channelFrame(to, 'd', firstFile, "x") }, err: "never open"},
		{desc: "events without end", go_: func(to io.Writer) {
			for frame.Write(to, frame.KindEvent, []byte(`{"kind":"clear","cell":0}`)) == nil {
				continue
			}
		}, err: "too many events"},
	} {
		t.Run(c.desc, func(t *testing.T) {
			runnertest.InBubble(t, func(t *testing.T) {
				s := newSessions(t, first(t, inSession(kept, at(frame.KindGo, c.go_))))
				hostile := s.open()
				other := s.open()
				spec := runnertest.NewSpec("code")
				spec.Command = "code"
				sink := runnertest.NewRecorder(t)
				out, err := hostile.Run(t.Context(), spec, sink)
				sink.Seal()
				if c.err != "" {
					require.ErrorContains(t, err, c.err)
					require.NotContains(t, err.Error(), "secret")
				} else {
					require.NoError(t, err)
					require.Equal(t, c.status, out.Status)
				}
				s.requireGone(hostile, runner.GoneLost)
				out, err = s.do(t.Context(), other, runnertest.CellHello)
				require.NoError(t, err)
				require.Equal(t, runner.StatusOK, out.Status)
			})
		})
	}
}

// TestSessionDeadlines: there is one on every wait.
func TestSessionDeadlines(t *testing.T) {
	outcome := at(frame.KindGo, func(to io.Writer) { runnertest.SendOutcome(to, runner.StatusOK) })
	runCell := func(s *sessionsTest, ctx context.Context, session runner.Session) (string, error) {
		out, err := s.do(ctx, session, "code")
		if out == nil {
			return "", err
		}
		return string(out.Status), err
	}
	for _, c := range []struct {
		desc   string
		script func(io.Writer, frame.Kind, []byte)
		cancel time.Duration
		call   func(*sessionsTest, context.Context, runner.Session) (string, error)
		result string
		err    string
		took   time.Duration
		lost   time.Duration // after that; -1 for never
	}{
		{desc: "no outcome", call: runCell, result: "timeout", took: runnertest.SpecTimeout + conversation.SessionSlack},
		{desc: "no outcome after a cancel", call: runCell, cancel: time.Second, result: "cancelled", took: time.Second + conversation.SessionSlack},
		{desc: "no end", script: outcome, call: runCell, result: "ok", took: conversation.CollectTimeout},
		{
			desc: "no end after a cancel", script: outcome, call: runCell, cancel: time.Second, result: "ok",
			took: time.Second + conversation.CancelSlack, lost: conversation.CollectTimeout - time.Second - conversation.CancelSlack,
		},
		{
			desc: "no restart", err: "the session is over: lost", took: restartTimeout,
			call: func(_ *sessionsTest, ctx context.Context, session runner.Session) (string, error) {
				return "", session.Restart(ctx)
			},
		},
		{
			desc: "no restart, which is not waited for", cancel: time.Second, err: "deadline exceeded", took: time.Second,
			lost: restartTimeout - time.Second,
			call: func(_ *sessionsTest, ctx context.Context, session runner.Session) (string, error) {
				return "", session.Restart(ctx)
			},
		},
		{
			desc: "no reply", err: "took too long", took: fileTimeout, lost: -1,
			call: func(_ *sessionsTest, ctx context.Context, session runner.Session) (string, error) {
				return "", session.Delete(ctx, "a")
			},
		},
		{
			desc: "content that nobody takes", err: "took too long", took: fileTimeout, lost: -1,
			call: func(_ *sessionsTest, ctx context.Context, session runner.Session) (string, error) {
				_, err := session.Write(ctx, "a", zeros{})
				return "", err
			},
		},
		{
			desc: "no reply, which is not waited for", cancel: time.Second, err: "deadline exceeded", took: time.Second, lost: -1,
			call: func(_ *sessionsTest, ctx context.Context, session runner.Session) (string, error) {
				_, _, err := session.List(ctx, "", false)
				return "", err
			},
		},
		{
			desc: "a close", took: 0,
			call: func(_ *sessionsTest, ctx context.Context, session runner.Session) (string, error) {
				return "", session.Close(ctx)
			},
		},
	} {
		t.Run(c.desc, func(t *testing.T) {
			runnertest.InBubble(t, func(t *testing.T) {
				s := newSessions(t, runnertest.NewHost(t, inSession(kept, c.script)))
				session := s.open()
				ctx := t.Context()
				if c.cancel > 0 {
					bounded, cancel := context.WithTimeout(ctx, c.cancel)
					defer cancel()
					ctx = bounded
				}
				begun := time.Now()
				result, err := c.call(s, ctx, session)
				require.Equal(t, c.took, time.Since(begun))
				require.Equal(t, c.result, result)
				if c.err != "" {
					require.ErrorContains(t, err, c.err)
				} else {
					require.NoError(t, err)
				}
				if c.lost < 0 {
					_, err := s.all.Find("owner", session.Info().ID)
					require.NoError(t, err)
					return
				}
				if c.lost > 0 {
					_, err := s.all.Find("owner", session.Info().ID)
					require.NoError(t, err)
					time.Sleep(c.lost + time.Second)
				}
				_, err = s.all.Find("owner", session.Info().ID)
				require.ErrorAs(t, err, new(*runner.GoneError))
			})
		})
	}
}

// TestSessionThatReadsNothing is lost.
func TestSessionThatReadsNothing(t *testing.T) {
	runnertest.InBubble(t, func(t *testing.T) {
		s := newSessions(t, runnertest.NewHost(t, func(stream runnertest.Stream) int {
			_, _, _ = frame.Read(stream, 0)
			_ = frame.WriteJSON(stream, frame.KindReady, frame.Ready{Version: frame.Version})
			_, _, _ = frame.Read(stream, 0)
			kept(stream)
			<-stream.Closed
			return 1
		}))
		session := s.open()
		begun := time.Now()
		require.ErrorContains(t, session.Interrupt(t.Context()), "over: lost")
		require.LessOrEqual(t, time.Since(begun), conversation.WriteTimeout)
		s.requireGone(session, runner.GoneLost)
	})
}

// TestHostileFiles: an answer that makes no sense is refused, and the session goes on.
func TestHostileFiles(t *testing.T) {
	answer := func(text string) func(io.Writer, frame.Kind, []byte) {
		return func(to io.Writer, kind frame.Kind, payload []byte) {
			if kind == frame.KindChannel && payload[0] == 'e' {
				id := binary.BigEndian.Uint32(payload[1:])
				for rest := text; rest != ""; {
					n := min(len(rest), 64<<10)
					channelFrame(to, 'd', id, rest[:n])
					rest = rest[n:]
				}
				channelFrame(to, 'e', id, "")
			}
		}
	}
	const entry = `{"path":"a","kind":"file","size":3,"modified_ns":1}`
	list := func(s runner.Session) error { _, _, err := s.List(context.Background(), "", false); return err }
	read := func(s runner.Session) error {
		_, content, err := s.Read(context.Background(), "a")
		if err != nil {
			return err
		}
		defer content.Close()
		data, err := io.ReadAll(content)
		if err == nil && string(data) != "abc" {
			err = errors.New("other content: " + string(data))
		}
		return err
	}
	for _, c := range []struct {
		desc   string
		answer string
		call   func(runner.Session) error
		err    string // "" where it is one that makes sense
	}{
		{"a list", `{"entries":2}` + "\n" + entry + "\n" + entry + "\n", list, ""},
		{"nothing", "", list, "cut off"},
		{"no JSON", "hello\n", list, "makes sense"},
		{"no line", strings.Repeat("x", 100_000), list, "makes sense"},
		{"half a line", `{"ent`, list, "cut off"},
		{"fewer than none", `{"entries":-1}` + "\n", list, "makes sense"},
		{"too many", `{"entries":10001}` + "\n", list, "makes sense"},
		{"fewer than it says", `{"entries":2}` + "\n" + entry + "\n", list, "cut off"},
		{"a path that leads out", `{"entries":1}` + "\n" + `{"path":"../a","kind":"file"}` + "\n", list, "makes sense"},
		{"an absolute path", `{"entries":1}` + "\n" + `{"path":"/etc","kind":"file"}` + "\n", list, "makes sense"},
		{"a kind", `{"entries":1}` + "\n" + `{"path":"a","kind":"door"}` + "\n", list, "makes sense"},
		{"a size", `{"entries":1}` + "\n" + `{"path":"a","kind":"file","size":-1}` + "\n", list, "makes sense"},
		{"a code", `{"code":"tea"}` + "\n", list, "makes sense"},
		{"a refusal", `{"code":"busy","message":"it\u0007 is` + strings.Repeat("x", 2000) + `"}` + "\n", list, "it  isxxx"},
		{"content", `{"entry":` + entry + "}\nabc", read, ""},
		{"less content", `{"entry":` + entry + "}\nab", read, "was changed"},
		{"more content", `{"entry":` + entry + "}\nabcd", read, "was changed"},
		{"content of a folder", `{"entry":{"path":"a","kind":"directory","size":0}}` + "\n", read, "makes sense"},
	} {
		t.Run(c.desc, func(t *testing.T) {
			runnertest.InBubble(t, func(t *testing.T) {
				s := newSessions(t, runnertest.NewHost(t, inSession(kept, answer(c.answer))))
				session := s.open()
				err := c.call(session)
				if c.err == "" {
					require.NoError(t, err)
				} else {
					refusal := (*runner.FileError)(nil)
					require.ErrorAs(t, err, &refusal)
					require.Equal(t, runner.FileBusy, refusal.Code)
					require.Contains(t, refusal.Message, c.err)
					require.LessOrEqual(t, len(refusal.Message), 1000)
				}
				_, err = s.all.Find("owner", session.Info().ID)
				require.NoError(t, err)
			})
		})
	}
}

// TestDrippingFile: an operation with just enough progress is over some time.
func TestDrippingFile(t *testing.T) {
	runnertest.InBubble(t, func(t *testing.T) {
		s := newSessions(t, runnertest.NewHost(t, inSession(kept, func(to io.Writer, kind frame.Kind, payload []byte) {
			if kind != frame.KindChannel || payload[0] != 'e' {
				return
			}
			id := binary.BigEndian.Uint32(payload[1:])
			go func() {
				for range 10 {
					time.Sleep(fileTimeout - time.Second)
					channelFrame(to, 'd', id, " ")
				}
			}()
		})))
		session := s.open()
		begun := time.Now()
		_, _, err := session.List(t.Context(), "", false)
		refusal := (*runner.FileError)(nil)
		require.ErrorAs(t, err, &refusal)
		require.Equal(t, runner.FileBusy, refusal.Code)
		require.Equal(t, maxFileTime, time.Since(begun))
		time.Sleep(10 * fileTimeout) // what the sandbox says then is passed over
		_, err = s.all.Find("owner", session.Info().ID)
		require.NoError(t, err)
	})
}

// TestEndlessFile: more data than there is credit for is the end of the session.
func TestEndlessFile(t *testing.T) {
	runnertest.InBubble(t, func(t *testing.T) {
		s := newSessions(t, first(t, inSession(kept, func(to io.Writer, kind frame.Kind, payload []byte) {
			if kind == frame.KindChannel && payload[0] == 'e' {
				channelFrame(to, 'd', firstFile, `{"entry":{"path":"a","kind":"file","size":1000000}}`+"\n")
				for range 100 {
					channelFrame(to, 'd', firstFile, strings.Repeat("x", 64<<10))
				}
			}
		})))
		hostile, other := s.open(), s.open()
		if _, content, err := hostile.Read(t.Context(), "a"); err == nil { // which is not read
			defer content.Close()
		}
		s.requireGone(hostile, runner.GoneLost)
		_, err := s.do(t.Context(), other, runnertest.CellHello)
		require.NoError(t, err)
	})
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// TestSessionWhoseSandboxEnds: each call says that it is over.
func TestSessionWhoseSandboxEnds(t *testing.T) {
	runnertest.InBubble(t, func(t *testing.T) {
		host := runnertest.NewHost(t, nil)
		s := newSessions(t, host)
		session := s.open()
		running := s.goDo(t.Context(), session, runnertest.CellSleep)
		time.Sleep(time.Second)
		waiting := s.goDo(t.Context(), session, runnertest.CellHello)
		time.Sleep(time.Second)
		host.End(host.Sandboxes("")[0])
		require.ErrorContains(t, (<-running).err, "ended by itself")
		require.ErrorAs(t, (<-waiting).err, new(*runner.GoneError))
		s.requireGone(session, runner.GoneLost)
	})
}
