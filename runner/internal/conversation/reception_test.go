package conversation_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/runner"
	"notebox/runner/internal/conversation"
	"notebox/runner/internal/frame"
	"notebox/runner/runnertest"
)

// cutOff is what a run reports whose files did not all arrive.
var cutOff = runner.Skipped{Path: "/mnt/data", Reason: "the sandbox ended before all files were read"}

// TestCPUOfTheWholeJob: what code does at the end of its kernel comes after the outcome.
func TestCPUOfTheWholeJob(t *testing.T) {
	for _, c := range []struct {
		desc string
		said int64
		want time.Duration
	}{
		{"more than the cells'", int64(3 * time.Second), 3 * time.Second},
		{"none", 0, 0},
		{"less than none", -1, 0},
	} {
		t.Run(c.desc, func(t *testing.T) {
			runnertest.InBubble(t, func(t *testing.T) {
				r := runnertest.RunOn(t.Context(), t, runnertest.NewHost(t, runnertest.AfterGo(func(to io.Writer) int {
					runnertest.SendOutcome(to, runner.StatusOK)
					_ = frame.WriteJSON(to, frame.KindDone, frame.Done{Collected: true, CPUNS: c.said})
					return runnertest.Stays
				})), runnertest.NewSpec(runnertest.CellHello), &runnertest.Recorder{})
				require.NoError(t, r.Err)
				require.Equal(t, c.want, r.Out.Usage.CPUOfJob)
			})
		})
	}
}

func TestHostileSandbox(t *testing.T) {
	for _, c := range []struct {
		desc    string
		program runnertest.Program
		status  runner.Status // "" where err is not ""
		err     string
		took    time.Duration
		events  int // -1 where that is bounded only
		files   int
		skipped []runner.Skipped
		reports int // instead of skipped: how many
	}{
		{desc: "answers nothing", program: runnertest.Hangs, status: runner.StatusTimeout, took: runnertest.SpecTimeout + conversation.RunSlack, events: 1},
		{desc: "reads nothing", program: runnertest.DeafAfterGo, status: runner.StatusTimeout, took: runnertest.SpecTimeout + conversation.RunSlack},
		{desc: "is killed, as memory is short", program: runnertest.DiesAfterGo(137), status: runner.StatusOutOfMemory, events: 1},
		{desc: "ends", program: runnertest.DiesAfterGo(0), err: "ended by itself", events: 1},
		{desc: "crashes", program: runnertest.DiesAfterGo(139), err: "ended by itself", events: 1},
		{desc: "floods events", program: runnertest.FloodsEvents, err: "too many events", events: -1},
		{desc: "floods bytes", program: runnertest.FloodsBytes, err: "too many events", events: -1},
		{desc: "too many files", program: runnertest.TooManyFiles, status: runner.StatusOK, files: 3, skipped: []runner.Skipped{cutOff}},
		{
			desc: "an endless file", program: runnertest.EndlessFile, status: runner.StatusOK,
			skipped: []runner.Skipped{{Path: "/mnt/data/endless", Reason: "files of more than 1048576 bytes"}, cutOff},
		},
		{desc: "an endless notebook", program: runnertest.OversizedNotebook, status: runner.StatusOK, skipped: []runner.Skipped{cutOff}},
		{desc: "skips files without end", program: runnertest.EndlessSkipped, status: runner.StatusOK, reports: 168},
		{desc: "hangs in collection", program: runnertest.HangsInCollection, status: runner.StatusOK, took: conversation.CollectTimeout, skipped: []runner.Skipped{cutOff}},
	} {
		t.Run(c.desc, func(t *testing.T) {
			runnertest.InBubble(t, func(t *testing.T) {
				r := runnertest.RunOn(t.Context(), t, runnertest.NewHost(t, c.program), runnertest.NewSpec(runnertest.CellHello), runnertest.NewRecorder(t))
				require.Equal(t, c.took, r.Took)
				if c.events >= 0 {
					require.Len(t, r.Sink.Events(), c.events)
				}
				if c.err != "" {
					require.ErrorContains(t, r.Err, c.err)
					return
				}
				require.NoError(t, r.Err)
				require.Equal(t, c.status, r.Out.Status)
				require.Nil(t, r.Out.Notebook, "half a notebook is none")
				if c.status != runner.StatusOK { // the sandbox has not said what it used
					require.Equal(t, c.took, r.Out.Usage.Wall)
					require.Equal(t, c.took, r.Out.Usage.CPU, "of one core")
				}
				require.Len(t, r.Sink.Files(), c.files)
				if c.reports > 0 {
					require.Len(t, r.Out.Skipped, c.reports)
					return
				}
				require.Equal(t, c.skipped, r.Out.Skipped)
			})
		})
	}
}

// TestForgedFrames sends what no harness sends, in mid-run.
func TestForgedFrames(t *testing.T) {
	outcome := frames(frame.KindOutcome, `{"status":"ok"}`)
	for _, c := range []struct {
		desc string
		raw  []byte
		err  string // of the service; "" where the run's result is kept
	}{
		{"an unknown kind", frames('?', ""), "during a job"},
		{"a kind of the other side", frames(frame.KindGo, ""), "during a job"},
		{"ready again", frames(frame.KindReady, `{"version":1}`), "during a job"},
		{"another version", []byte{2, 'E', 0, 0, 0, 0}, "version 2"},
		{"more than may be", []byte{1, 'O', 0xff, 0xff, 0xff, 0xff}, "more than"},
		{"an event of more than may be", []byte{1, 'E', 0xff, 0xff, 0xff, 0xff}, "more than"},
		{"an event that is not JSON", frames(frame.KindEvent, "not JSON"), "invalid"},
		{"an event nested too deeply", frames(frame.KindEvent, `{"output":`+string(bytes.Repeat([]byte("["), 20_000))), "depth"},
		{"an event of another kind", frames(frame.KindEvent, `{"kind":"x","cell":0}`), `kind "x"`},
		{"an event of no cell", frames(frame.KindEvent, `{"kind":"clear","cell":-1}`), "cell -1"},
		{"an outcome of another status", frames(frame.KindOutcome, `{"status":"fine"}`), `status "fine"`},
		{"an outcome without status", frames(frame.KindOutcome, `{}`), `status ""`},
		{"the end before the outcome", frames(frame.KindDone, `{"collected":true}`), "out of turn"},
		{"a notebook before the outcome", frames(frame.KindNotebookOut, `{}`), "out of turn"},
		{"a file before the outcome", frames(frame.KindFile, `{"path":"a"}`), "out of turn"},
		{"a skipped file before the outcome", frames(frame.KindSkipped, `{}`), "out of turn"},
		{"content without a file", frames(frame.KindFileData, "x"), "during a job"},
		{"a failure", frames(frame.KindFailed, `{"message":"ValueError: of the user"}`), "the harness failed: ValueError"},
		{"a failure of no type", frames(frame.KindFailed, `{"message":"of the user"}`), "the harness failed: with a job"},
		{"a failure that is not JSON", frames(frame.KindFailed, ""), "unexpected end"},

		{"an event after the outcome", slices.Concat(outcome, frames(frame.KindEvent, `{"kind":"clear","cell":0}`)), ""},
		{"a second outcome", slices.Concat(outcome, outcome), ""},
		{"a failure after the outcome", slices.Concat(outcome, frames(frame.KindFailed, `{"message":"no room"}`)), ""},
		{"a path up", slices.Concat(outcome, file("../a")), ""},
		{"an absolute path", slices.Concat(outcome, file("/etc/passwd")), ""},
		{"a path that goes up later", slices.Concat(outcome, file("a/../../b")), ""},
		{"a path that can be shorter", slices.Concat(outcome, file("a//b")), ""},
		{"a path of one dot", slices.Concat(outcome, file(".")), ""},
		{"a path of two dots", slices.Concat(outcome, file("..")), ""},
		{"a path with NUL", slices.Concat(outcome, file(`a\u0000b`)), ""},
		{"no path", slices.Concat(outcome, file("")), ""},
		{"another frame in a file", slices.Concat(outcome, frames(frame.KindFile, `{"path":"a"}`), outcome), ""},
	} {
		t.Run(c.desc, func(t *testing.T) {
			runnertest.InBubble(t, func(t *testing.T) {
				r := runnertest.RunOn(t.Context(), t, runnertest.NewHost(t, runnertest.Sends(c.raw)), runnertest.NewSpec(), runnertest.NewRecorder(t))
				require.Zero(t, r.Took, "it is noticed at once")
				require.Empty(t, r.Sink.Events())
				require.Empty(t, r.Sink.Files())
				if c.err != "" {
					require.ErrorContains(t, r.Err, c.err)
					return
				}
				require.NoError(t, r.Err)
				require.Equal(t, runner.StatusOK, r.Out.Status)
				require.Contains(t, r.Out.Skipped, cutOff)
			})
		})
	}
}

// frames returns one frame.
func frames(kind frame.Kind, payload string) []byte {
	var b bytes.Buffer
	_ = frame.Write(&b, kind, []byte(payload))
	return b.Bytes()
}

func file(path string) []byte {
	return slices.Concat(frames(frame.KindFile, `{"path":"`+path+`"}`), frames(frame.KindFileEnd, "{}"))
}

func TestSinkFile(t *testing.T) {
	failure := errors.New("the store is full")
	for _, c := range []struct {
		desc    string
		onFile  func(ctx context.Context, path string, content io.Reader) error
		skipped []runner.Skipped
		took    time.Duration
	}{
		{desc: "reads nothing", onFile: func(context.Context, string, io.Reader) error { return nil }},
		{
			desc:   "fails for one",
			onFile: failFor("b", failure),
			skipped: []runner.Skipped{
				{Path: "/mnt/data/b", Reason: failure.Error()},
			},
		}, {
			desc: "hangs",
			onFile: func(ctx context.Context, _ string, _ io.Reader) error {
				<-ctx.Done()
				return errors.New("not stored in time")
			},
			skipped: []runner.Skipped{{Path: "/mnt/data/a", Reason: "not stored in time"}, cutOff},
			took:    conversation.CollectTimeout,
		},
	} {
		t.Run(c.desc, func(t *testing.T) {
			runnertest.InBubble(t, func(t *testing.T) {
				sink := runnertest.NewRecorder(t)
				sink.OnFile = c.onFile
				r := runnertest.RunOn(t.Context(), t, runnertest.NewHost(t, nil), runnertest.NewSpec(runnertest.CellThreeFiles), sink)
				require.NoError(t, r.Err)
				require.Equal(t, runner.StatusOK, r.Out.Status)
				require.Equal(t, c.skipped, r.Out.Skipped)
				require.Equal(t, c.took, r.Took)
				require.NotNil(t, r.Out.Notebook)
			})
		})
	}
}

func failFor(path string, err error) func(context.Context, string, io.Reader) error {
	return func(_ context.Context, p string, content io.Reader) error {
		if p == path {
			return err
		}
		_, copyErr := io.Copy(io.Discard, content)
		return copyErr
	}
}

// TestSlowSinkOfSingleUse: a Sink that takes nothing holds up its sandbox after some MiB.
func TestSlowSinkOfSingleUse(t *testing.T) {
	runnertest.InBubble(t, func(t *testing.T) {
		const size, most = 64 << 10, 2 << 20
		var sent atomic.Int64
		host := runnertest.NewHost(t, runnertest.AfterGo(func(to io.Writer) int {
			for range 200 {
				runnertest.SendText(to, strings.Repeat("x", size))
				sent.Add(size)
			}
			runnertest.SendOutcome(to, runner.StatusOK)
			_ = frame.WriteJSON(to, frame.KindDone, frame.Done{Collected: true})
			return runnertest.Stays
		}))
		spec := runnertest.NewSpec()
		spec.Limits.Output = 200 * size
		sink := runnertest.NewRecorder(t)
		sink.OnOutput = func(runner.Event) {
			sink.OnOutput = nil
			synctest.Wait()
			require.Greater(t, sent.Load(), int64(most/2))
			require.Less(t, sent.Load(), int64(most+2*size), "what the mailbox holds, and a frame on either side")
		}
		r := runnertest.RunOn(t.Context(), t, host, spec, sink)
		require.NoError(t, r.Err)
		require.Equal(t, runner.StatusOK, r.Out.Status)
		require.Len(t, r.Sink.Events(), 200, "nothing is lost")
	})
}

// TestUnreadableFile has a file whose reading fails inside, in its middle.
func TestUnreadableFile(t *testing.T) {
	runnertest.InBubble(t, func(t *testing.T) {
		host := runnertest.NewHost(t, runnertest.AfterGo(func(to io.Writer) int {
			runnertest.SendOutcome(to, runner.StatusOK)
			_ = frame.WriteJSON(to, frame.KindFile, frame.File{Path: "a"})
			_ = frame.Write(to, frame.KindFileData, []byte("half"))
			_ = frame.WriteJSON(to, frame.KindFileEnd, frame.FileEnd{Reason: "input/output error"})
			runnertest.SendFile(to, "b", "whole")
			_ = frame.WriteJSON(to, frame.KindDone, frame.Done{Collected: true})
			return runnertest.Stays
		}))
		r := runnertest.RunOn(t.Context(), t, host, runnertest.NewSpec(), runnertest.NewRecorder(t))
		require.NoError(t, r.Err)
		require.Equal(t, map[string]string{"b": "whole"}, r.Sink.Files())
		require.Equal(t, []runner.Skipped{{
			Path: "/mnt/data/a", Reason: "the file could not be read to its end: input/output error",
		}}, r.Out.Skipped)
	})
}
