package pool_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/runner"
	"notebox/runner/internal/conversation"
	"notebox/runner/internal/frame"
	"notebox/runner/pool"
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
		{desc: "never ready with packages of a caller's", program: runnertest.NeverReady, packages: true, message: "took too long", took: pool.DefaultStartTimeout},
		{desc: "no image", image: runnertest.FakeMissing, message: "start a sandbox"},
		{desc: "never ready", program: runnertest.NeverReady, message: "took too long", took: pool.DefaultStartTimeout},
		{desc: "ends at once", program: runnertest.ExitsAtOnce(3), message: "with exit code 3"},
		{desc: "another version", program: runnertest.OtherVersion, message: "version 2, not 1"},
		{desc: "another frame", program: rawProgram("\x01E\x00\x00\x00\x02{}"), message: "instead of ready"},
		{desc: "not frames", program: rawProgram("HTTP/1.1 400 Bad Request\r\n\r\n"), message: "frame of version 72"},
		{desc: "its own failure", program: rawProgram("\x01L\x00\x00\x00\x11{\"message\":\"cat\"}"), message: "the harness failed: cat"},
	} {
		t.Run(c.desc, func(t *testing.T) {
			runnertest.InBubble(t, func(t *testing.T) {
				spec := runnertest.NewSpec(runnertest.CellHello)
				spec.Environment.Image, spec.Environment.Kernel.Packages = c.image, c.packages
				r := runnertest.RunOn(t.Context(), t, runnertest.NewHost(t, c.program), spec, runnertest.NewRecorder(t))
				require.ErrorContains(t, r.Err, c.message)
				require.Equal(t, c.took, r.Took)
				runnertest.RequireCode(t, map[bool]runner.Code{false: runner.CodeUnavailable, true: runner.CodePackages}[c.packages], r.Err)
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
		{desc: "while it runs and does not answer", program: runnertest.Hangs, took: at + conversation.CancelSlack, stdout: "started\n", partial: true},
		{desc: "while it runs and does not read", program: runnertest.DeafAfterGo, took: at + conversation.CancelSlack, partial: true},
		{desc: "while it is collected", program: runnertest.HangsInCollection, status: runner.StatusOK, took: at + conversation.CancelSlack, partial: true},
	} {
		t.Run(c.desc, func(t *testing.T) {
			runnertest.InBubble(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), at)
				defer cancel()
				host := runnertest.NewHost(t, c.program)
				host.SlowStart = c.slow
				r := runnertest.RunOn(ctx, t, host, runnertest.NewSpec(c.cell), runnertest.NewRecorder(t))
				require.NoError(t, r.Err)
				if c.status == "" {
					c.status = runner.StatusCancelled
				}
				require.Equal(t, c.status, r.Out.Status)
				require.Equal(t, c.took, r.Took)
				require.Equal(t, c.partial, r.Out.Notebook == nil)
				streamed, err := runnertest.StreamedText(r.Sink.Events())
				require.NoError(t, err)
				require.Equal(t, c.stdout, streamed)
			})
		})
	}
}

func TestSingleUseCancelledBeforehand(t *testing.T) {
	runnertest.InBubble(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		r := runnertest.RunOn(ctx, t, runnertest.NewHost(t, nil), runnertest.NewSpec(runnertest.CellHello), runnertest.NewRecorder(t))
		require.NoError(t, r.Err)
		require.Equal(t, runner.StatusCancelled, r.Out.Status)
		require.Zero(t, r.Host.Started())
	})
}

func TestSingleUseDeafToTheJob(t *testing.T) {
	runnertest.InBubble(t, func(t *testing.T) {
		r := runnertest.RunOn(t.Context(), t, runnertest.NewHost(t, runnertest.Deaf), runnertest.NewSpec(), runnertest.NewRecorder(t))
		require.ErrorContains(t, r.Err, "send the job")
		require.Equal(t, conversation.SendTimeout, r.Took)
	})
}

func TestSingleUseInputFails(t *testing.T) {
	failure := errors.New("the disk is gone")
	for _, c := range []struct {
		desc string
		open func() (io.ReadCloser, error)
	}{
		{"open", func() (io.ReadCloser, error) { return nil, failure }},
		{"read", func() (io.ReadCloser, error) { return io.NopCloser(runnertest.FailingReader{Err: failure}), nil }},
	} {
		t.Run(c.desc, func(t *testing.T) {
			runnertest.InBubble(t, func(t *testing.T) {
				spec := runnertest.NewSpec(runnertest.CellHello)
				spec.Inputs = []runner.Input{{Path: "a", Size: 1, Open: c.open}}
				r := runnertest.RunOn(t.Context(), t, runnertest.NewHost(t, nil), spec, runnertest.NewRecorder(t))
				require.ErrorIs(t, r.Err, failure, "the service failed, not the code")
			})
		})
	}
}

func TestSingleUseKillHangs(t *testing.T) {
	runnertest.InBubble(t, func(t *testing.T) {
		host := runnertest.NewHost(t, nil)
		host.HangAtKill = true
		r := runnertest.RunOn(t.Context(), t, host, runnertest.NewSpec(runnertest.CellHello), runnertest.NewRecorder(t))
		require.NoError(t, r.Err)
		require.Equal(t, runner.StatusOK, r.Out.Status, "the result is kept")
		require.Equal(t, pool.KillTimeout, r.Took)
	})
}

func TestSingleUseSinkPanics(t *testing.T) {
	runnertest.InBubble(t, func(t *testing.T) {
		host := runnertest.NewHost(t, nil)
		sink := runnertest.NewRecorder(t)
		sink.OnOutput = func(runner.Event) { panic("a bug in the service") }
		require.Panics(t, func() { runnertest.RunOn(t.Context(), t, host, runnertest.NewSpec(runnertest.CellSleep), sink) })
		require.Empty(t, host.Sandboxes(""))
	})
}

// TestSingleUsePings has a run that is longer than a sandbox waits for a frame.
func TestSingleUsePings(t *testing.T) {
	runnertest.InBubble(t, func(t *testing.T) {
		spec := runnertest.NewSpec(runnertest.CellSleep)
		spec.Limits.Timeout = 5 * time.Minute
		host := runnertest.NewHost(t, nil)
		honest := host.Program
		host.Program = func(s runnertest.Stream) int {
			return honest(runnertest.Stream{ReadWriter: impatient{s.ReadWriter, t}, Closed: s.Closed})
		}
		r := runnertest.RunOn(t.Context(), t, host, spec, runnertest.NewRecorder(t))
		require.NoError(t, r.Err)
		require.Equal(t, runner.StatusTimeout, r.Out.Status)
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
	runnertest.InBubble(t, func(t *testing.T) {
		host := runnertest.NewHost(t, nil)
		pool := pool.New(host.Engine("test"), pool.Options{Log: runnertest.Log(t)})
		single := pool
		for range 50 {
			go func() {
				sink := runnertest.NewRecorder(t)
				out, err := single.Run(t.Context(), runnertest.NewSpec(runnertest.CellHello), sink)
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
