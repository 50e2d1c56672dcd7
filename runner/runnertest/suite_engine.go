package runnertest

import (
	"context"
	"fmt"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/runner"
	"notebox/runner/internal/frame"
)

func testStart(t *testing.T, h Harness) {
	service := newService()
	s := h.start(t, h.Engine(t, service))
	s.ready(t)
	require.Equal(t, []string{s.ID()}, h.Left(t, service))
	s.sendJob(t, h.Limits, CellHello)
	kinds := s.until(t, frame.KindDone)
	require.Contains(t, kinds, frame.KindEvent)
	require.Contains(t, kinds, frame.KindOutcome)
	s.kill(t)
	require.Empty(t, h.Left(t, service))
}

func testKill(t *testing.T, h Harness) {
	service := newService()
	s := h.start(t, h.Engine(t, service))
	s.ready(t)
	s.sendJob(t, h.Limits, CellSleep)
	s.until(t, frame.KindEvent)
	reading := make(chan error, 1)
	go func() {
		_, _, err := frame.Read(s, 0)
		reading <- err
	}()
	s.kill(t)
	require.Empty(t, h.Left(t, service), "Kill returns when nothing is left")
	require.Error(t, receive(t, reading), "Kill ends a Read that waits")
	_, err := s.Write([]byte{0})
	require.Error(t, err)
	s.kill(t)
}

// testKillAfterEnd ends the program inside by a frame of a version it cannot know.
func testKillAfterEnd(t *testing.T, h Harness) {
	service := newService()
	s := h.start(t, h.Engine(t, service))
	s.ready(t)
	_, err := s.Write([]byte{frame.Version + 1, byte(frame.KindJob), 0, 0, 0, 0})
	require.NoError(t, err)
	kind, payload, err := frame.Read(s, 0)
	require.NoError(t, err)
	require.Equal(t, frame.KindFailed, kind, string(payload))
	_, _, err = frame.Read(s, 0)
	exit := (*runner.ExitError)(nil)
	require.ErrorAs(t, err, &exit, "the end of the program is an ExitError")
	require.Equal(t, 1, exit.Code)
	require.NotEmpty(t, exit.Log, "the program's last words are kept")
	_, _, again := frame.Read(s, 0)
	require.ErrorAs(t, again, &exit, "also when Read is called again")
	s.kill(t)
	s.kill(t)
	require.Empty(t, h.Left(t, service))
}

func testCloseEndsReads(t *testing.T, h Harness) {
	service := newService()
	s := h.start(t, h.Engine(t, service))
	s.ready(t)
	reading := make(chan error, 1)
	go func() {
		_, _, err := frame.Read(s, 0)
		reading <- err
	}()
	require.NoError(t, s.Close())
	require.Error(t, receive(t, reading))
	require.NoError(t, s.Close(), "Close may be called twice")
	require.Eventually(t, func() bool { return len(h.Left(t, service)) == 0 }, lonely, 50*time.Millisecond,
		"the program inside ends when it hears nothing any more")
	s.kill(t)
}

func testCancelledStart(t *testing.T, h Harness) {
	service := newService()
	engine := h.Engine(t, service)
	for _, after := range []time.Duration{0, time.Millisecond, 10 * time.Millisecond, 50 * time.Millisecond, 150 * time.Millisecond, 400 * time.Millisecond} {
		ctx, cancel := context.WithTimeout(t.Context(), after)
		begun := time.Now()
		s, err := engine.Start(ctx, h.Environment, h.Limits)
		cancel()
		require.Less(t, time.Since(begun), after+promptly)
		if err == nil {
			require.NoError(t, s.Kill(t.Context()))
		}
	}
	require.Eventually(t, func() bool { return len(h.Left(t, service)) == 0 }, patience, 50*time.Millisecond)
	time.Sleep(min(time.Second, h.Limits.Timeout)) // nor does anything come to be later
	require.Empty(t, h.Left(t, service))
}

func testMissingImage(t *testing.T, h Harness) {
	service := newService()
	engine := h.Engine(t, service)
	require.NoError(t, engine.Ready(t.Context(), h.Environment))
	_, err := engine.Start(t.Context(), h.Missing, h.Limits)
	for call, err := range map[string]error{"Ready": engine.Ready(t.Context(), h.Missing), "Start": err} {
		failure := (*runner.Error)(nil)
		require.ErrorAs(t, err, &failure, call)
		require.Equal(t, runner.CodeUnavailable, failure.Code, call)
		require.NotContains(t, failure.Message, h.Missing.Image, call)
	}
	require.Empty(t, h.Left(t, service))
}

func testReap(t *testing.T, h Harness) {
	service, other := newService(), newService()
	earlier, now, stranger := h.Engine(t, service), h.Engine(t, service), h.Engine(t, other)
	pinging, stop := context.WithCancel(t.Context())
	defer stop()
	start := func(e runner.Engine) wire {
		s := h.start(t, e)
		s.ready(t)
		go s.ping(pinging) // the others may take longer than it waits alone
		return s
	}
	left1, left2 := start(earlier), start(earlier)
	mine, theirs := start(now), start(stranger)

	reaped, err := now.Reap(t.Context())
	require.NoError(t, err)
	earlierOnes := 2
	if h.Together { // in what is no sandbox
		earlierOnes = 0
	}
	require.Equal(t, earlierOnes, reaped)
	require.Equal(t, []string{mine.ID()}, h.Left(t, service))
	require.Equal(t, []string{theirs.ID()}, h.Left(t, other))

	reaped, err = now.Reap(t.Context())
	require.NoError(t, err)
	require.Zero(t, reaped, "nothing is reaped twice")
	stop()
	for _, s := range []wire{mine, theirs} {
		s.sendJob(t, h.Limits, CellHello)
		s.until(t, frame.KindDone)
	}
	for _, s := range []wire{left1, left2, mine, theirs} {
		s.kill(t)
	}
	require.Empty(t, slices.Concat(h.Left(t, service), h.Left(t, other)))
}

// wire is a sandbox, talked to by hand.
type wire struct{ runner.Sandbox }

func (h Harness) start(t *testing.T, e runner.Engine) wire {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	s, err := e.Start(ctx, h.Environment, h.Limits)
	require.NoError(t, err)
	require.NotEmpty(t, s.ID())
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		require.NoError(t, s.Kill(ctx))
	})
	return wire{s}
}

// Warm is the first frame for the harness's own kernel, which imports nothing ahead.
func Warm() frame.Warm {
	return frame.Warm{
		Kernel: runner.PythonKernel, Modules: []string{}, Cells: []string{},
		Interrupts: true, Finishes: true, Env: map[string]string{},
	}
}

func (w wire) ready(t *testing.T) { require.NoError(t, Ready(w)) }

// Ready has a sandbox start its kernel, and returns when it takes a job.
func Ready(s runner.Sandbox) error {
	if err := frame.WriteJSON(s, frame.KindWarm, Warm()); err != nil {
		return err
	}
	kind, payload, err := frame.Read(s, 0)
	if err != nil {
		return err
	}
	if kind != frame.KindReady {
		return fmt.Errorf("frame %q instead of ready: %s", rune(kind), payload)
	}
	ready, err := frame.Decode[frame.Ready](kind, payload)
	if err == nil && ready.Version != frame.Version {
		err = fmt.Errorf("version %d", ready.Version)
	}
	return err
}

func (w wire) sendJob(t *testing.T, l runner.Limits, cells ...string) {
	notebook := Notebook(cells...)
	require.NoError(t, frame.WriteJSON(w, frame.KindJob, frame.Job{
		NotebookBytes: len(notebook), Inputs: []string{}, Env: map[string]string{},
		TimeoutSeconds: l.Timeout.Seconds(), MaxOutput: l.Output, MaxFiles: l.Files, MaxFileBytes: l.FileSize,
	}))
	require.NoError(t, frame.Write(w, frame.KindNotebookIn, notebook))
	require.NoError(t, frame.Write(w, frame.KindGo, nil))
}

// until reads frames up to one of that kind, and returns their kinds.
func (w wire) until(t *testing.T, last frame.Kind) (kinds []frame.Kind) {
	timeout := time.AfterFunc(patience, func() { w.Close() })
	defer timeout.Stop()
	for {
		kind, payload, err := frame.Read(w, frame.MaxControl)
		require.NoError(t, err, "after frames %q", kinds)
		require.NotEqual(t, frame.KindFailed, kind, string(payload))
		if kinds = append(kinds, kind); kind == last {
			return kinds
		}
	}
}

func (w wire) kill(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	require.NoError(t, w.Kill(ctx))
}

func receive(t *testing.T, from <-chan error) error {
	select {
	case err := <-from:
		return err
	case <-time.After(patience):
		require.Fail(t, "no answer")
		return net.ErrClosed
	}
}
