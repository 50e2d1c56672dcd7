package runner_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/runner"
	"notebox/runner/internal/frame"
	"notebox/runner/runnertest"
)

func TestSingleUseStart(t *testing.T) {
	for _, c := range []struct {
		desc     string
		program  runnertest.Program
		image    string
		packages bool
		message  string
		took     time.Duration
	}{
		{desc: "never ready with packages of a caller's", program: runnertest.NeverReady, packages: true, message: "took too long", took: runner.StartTimeout},
		{desc: "no image", image: runnertest.FakeMissing, message: "start a sandbox"},
		{desc: "never ready", program: runnertest.NeverReady, message: "took too long", took: runner.StartTimeout},
		{desc: "ends at once", program: runnertest.ExitsAtOnce(3), message: "with exit code 3"},
		{desc: "another version", program: runnertest.OtherVersion, message: "version 2, not 1"},
		{desc: "another frame", program: rawProgram("\x01E\x00\x00\x00\x02{}"), message: "instead of ready"},
		{desc: "not frames", program: rawProgram("HTTP/1.1 400 Bad Request\r\n\r\n"), message: "frame of version 72"},
		{desc: "its own failure", program: rawProgram("\x01L\x00\x00\x00\x11{\"message\":\"cat\"}"), message: "the harness failed: cat"},
	} {
		t.Run(c.desc, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				spec := newSpec(runnertest.CellHello)
				spec.Environment.Image, spec.Environment.Kernel.Packages = c.image, c.packages
				r := run(t.Context(), t, newHost(t, c.program), spec, runnertest.NewRecorder(t))
				require.ErrorContains(t, r.err, c.message)
				require.Equal(t, c.took, r.took)
				requireCode(t, map[bool]runner.Code{false: runner.CodeUnavailable, true: runner.CodePackages}[c.packages], r.err)
			})
		})
	}
}

// rawProgram sends these bytes and nothing else.
func rawProgram(raw string) runnertest.Program {
	return func(s runnertest.Stream) int {
		_, _, _ = frame.Read(s, 0) // warm
		_, _ = io.WriteString(s, raw)
		<-s.Closed
		return 1
	}
}

func TestSingleUseCancel(t *testing.T) {
	const at = 3 * time.Second
	for _, c := range []struct {
		desc    string
		program runnertest.Program
		slow    bool
		cell    string
		status  runner.Status
		took    time.Duration
		stdout  string
		partial bool // no executed notebook came back
	}{
		{desc: "while it is started", slow: true, took: at, partial: true},
		{desc: "while it gets ready", program: runnertest.NeverReady, took: at, partial: true},
		{desc: "while the job is sent", program: runnertest.Deaf, took: at, partial: true},
		{desc: "while it runs", cell: runnertest.CellSleep, took: at, stdout: "started\n"},
		{desc: "while it runs, stubborn", cell: runnertest.CellStubborn, took: at, stdout: "started\n"},
		{desc: "while it runs and does not answer", program: runnertest.Hangs, took: at + runner.CancelSlack, stdout: "started\n", partial: true},
		{desc: "while it runs and does not read", program: runnertest.DeafAfterGo, took: at + runner.CancelSlack, partial: true},
		{desc: "while it is collected", program: hangsInCollection, status: runner.StatusOK, took: at + runner.CancelSlack, partial: true},
	} {
		t.Run(c.desc, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), at)
				defer cancel()
				host := newHost(t, c.program)
				host.SlowStart = c.slow
				r := run(ctx, t, host, newSpec(c.cell), runnertest.NewRecorder(t))
				require.NoError(t, r.err)
				if c.status == "" {
					c.status = runner.StatusCancelled
				}
				require.Equal(t, c.status, r.out.Status)
				require.Equal(t, c.took, r.took)
				require.Equal(t, c.partial, r.out.Notebook == nil)
				streamed, err := runnertest.StreamedText(r.sink.Events())
				require.NoError(t, err)
				require.Equal(t, c.stdout, streamed)
			})
		})
	}
}

func TestSingleUseCancelledBeforehand(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		r := run(ctx, t, newHost(t, nil), newSpec(runnertest.CellHello), runnertest.NewRecorder(t))
		require.NoError(t, r.err)
		require.Equal(t, runner.StatusCancelled, r.out.Status)
		require.Zero(t, r.host.Started())
	})
}

func TestSingleUseDeafToTheJob(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := run(t.Context(), t, newHost(t, runnertest.Deaf), newSpec(), runnertest.NewRecorder(t))
		require.ErrorContains(t, r.err, "send the job")
		require.Equal(t, runner.SendTimeout, r.took)
	})
}

func TestSingleUseInputFails(t *testing.T) {
	failure := errors.New("the disk is gone")
	for _, c := range []struct {
		desc string
		open func() (io.ReadCloser, error)
	}{
		{"open", func() (io.ReadCloser, error) { return nil, failure }},
		{"read", func() (io.ReadCloser, error) { return io.NopCloser(failingReader{failure}), nil }},
	} {
		t.Run(c.desc, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				spec := newSpec(runnertest.CellHello)
				spec.Inputs = []runner.Input{{Path: "a", Size: 1, Open: c.open}}
				r := run(t.Context(), t, newHost(t, nil), spec, runnertest.NewRecorder(t))
				require.ErrorIs(t, r.err, failure, "the service failed, not the code")
			})
		})
	}
}

type failingReader struct{ err error }

func (f failingReader) Read([]byte) (int, error) { return 0, f.err }

func TestSingleUseKillHangs(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		host := newHost(t, nil)
		host.HangAtKill = true
		r := run(t.Context(), t, host, newSpec(runnertest.CellHello), runnertest.NewRecorder(t))
		require.NoError(t, r.err)
		require.Equal(t, runner.StatusOK, r.out.Status, "the result is kept")
		require.Equal(t, runner.KillTimeout, r.took)
	})
}

func TestSingleUseSinkPanics(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		host := newHost(t, nil)
		sink := runnertest.NewRecorder(t)
		sink.OnOutput = func(runner.Event) { panic("a bug in the service") }
		require.Panics(t, func() { run(t.Context(), t, host, newSpec(runnertest.CellSleep), sink) })
		require.Empty(t, host.Sandboxes(""))
	})
}

// TestSingleUsePings has a run that is longer than a sandbox waits for a frame.
func TestSingleUsePings(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		spec := newSpec(runnertest.CellSleep)
		spec.Limits.Timeout = 5 * time.Minute
		host := newHost(t, nil)
		honest := host.Program
		host.Program = func(s runnertest.Stream) int {
			return honest(runnertest.Stream{ReadWriter: impatient{s.ReadWriter, t}, Closed: s.Closed})
		}
		r := run(t.Context(), t, host, spec, runnertest.NewRecorder(t))
		require.NoError(t, r.err)
		require.Equal(t, runner.StatusTimeout, r.out.Status)
	})
}

// impatient is a stream whose reader waits 30 s, as the harness does.
type impatient struct {
	io.ReadWriter
	t *testing.T
}

func (i impatient) Read(p []byte) (int, error) {
	begun := time.Now()
	n, err := i.ReadWriter.Read(p)
	if waited := time.Since(begun); waited >= 30*time.Second {
		i.t.Errorf("no frame for %s", waited)
	}
	return n, err
}

func TestSingleUseManyAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		host := newHost(t, nil)
		pool := runner.NewPool(host.Engine("test"), runner.PoolOptions{Log: testLog(t)})
		single := runner.NewSingleUse(pool)
		for range 50 {
			go func() {
				sink := runnertest.NewRecorder(t)
				out, err := single.Run(t.Context(), newSpec(runnertest.CellHello), sink)
				sink.Seal()
				if err != nil || out.Status != runner.StatusOK || len(sink.Events()) != 1 {
					t.Errorf("%+v, %v, %d events", out, err, len(sink.Events()))
				}
			}()
		}
		synctest.Wait()
		require.NoError(t, pool.Close(t.Context()))
		require.Equal(t, 50, host.Started())
		require.Empty(t, host.Sandboxes(""))
	})
}
