package runnertest_test

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/runner"
	"notebox/runner/runnertest"
)

const patience = 60 * time.Second

func sessionSpec(id string) runner.SessionSpec {
	return runner.SessionSpec{ID: id, Owner: "me", TTL: time.Hour, Idle: time.Minute, Limits: runner.DefaultLimits()}
}

func openFake(t *testing.T, f *runnertest.FakeSessions, spec runner.SessionSpec) runner.Session {
	s, err := f.Open(t.Context(), spec)
	require.NoError(t, err)
	return s
}

func runCells(t *testing.T, s runner.Session, change func(*runner.Spec), cells ...string) (*runner.Outcome, runnertest.Executed, *runnertest.Recorder) {
	spec := runner.Spec{ID: "run_1", Notebook: runnertest.Notebook(cells...), Limits: runner.DefaultLimits()}
	if change != nil {
		change(&spec)
	}
	sink := runnertest.NewRecorder(t)
	out, err := s.Run(t.Context(), spec, sink)
	require.NoError(t, err)
	sink.Seal()
	executed, err := runnertest.ParseExecuted(out)
	require.NoError(t, err)
	return out, executed, sink
}

func TestFakeSessionState(t *testing.T) {
	f := runnertest.NewFakeSessions()
	f.On("x = 1", func(k *runnertest.Kernel) { k.Vars["x"] = "1"; k.Files["made"] = "made" })
	f.On("print(x)", func(k *runnertest.Kernel) {
		if x, ok := k.Vars["x"]; ok {
			k.Print(x + "\n")
			return
		}
		k.Raise("NameError", "name 'x' is not defined")
	})
	f.OnCommand("exit 3", func(k *runnertest.Kernel) int { k.Complain("no\n"); return 3 })
	s := openFake(t, f, sessionSpec("ses_1"))

	out, _, sink := runCells(t, s, nil, "x = 1")
	require.Equal(t, runner.StatusOK, out.Status)
	require.Equal(t, map[string]string{"made": "made"}, sink.Files())
	out, executed, sink := runCells(t, s, nil, "print(x)")
	require.Equal(t, "1\n", executed.Stdout(0))
	require.Empty(t, sink.Files(), "what a run before made is not its own")
	require.False(t, out.KernelRestarted)

	out, executed, _ = runCells(t, s, func(spec *runner.Spec) { spec.Command = "exit 3" }, "exit 3")
	require.Equal(t, runner.StatusError, out.Status)
	require.Equal(t, 3, *out.ExitCode)
	require.Equal(t, "stderr", executed.Cells[0].Outputs[0].Name)

	out, _, _ = runCells(t, s, nil, runnertest.CellKill)
	require.Equal(t, runner.StatusKilled, out.Status)
	require.True(t, out.KernelRestarted)
	out, executed, _ = runCells(t, s, nil, "print(x)")
	require.Equal(t, []string{"NameError"}, executed.Errors())
	require.False(t, out.KernelRestarted, "it is said once")
	require.NoError(t, s.Restart(t.Context()))
	out, _, _ = runCells(t, s, nil, runnertest.CellHello)
	require.False(t, out.KernelRestarted, "who asked for it knows")
	f.LoseKernel("me", "ses_1")
	out, _, _ = runCells(t, s, nil, runnertest.CellHello)
	require.True(t, out.KernelRestarted)
	require.Equal(t, 3, s.Info().KernelRestarts)
	_, content, err := s.Read(t.Context(), "made")
	require.NoError(t, err)
	raw, err := io.ReadAll(content)
	require.NoError(t, err)
	require.Equal(t, "made", string(raw))
}

func TestFakeSessionOrder(t *testing.T) {
	f := runnertest.NewFakeSessions()
	s := openFake(t, f, sessionSpec("ses_1"))
	started := make(chan struct{}, 1)
	ends := make(chan string, 3)
	run := func(name, cell string) {
		sink := runnertest.NewRecorder(t)
		sink.OnOutput = func(runner.Event) {
			select {
			case started <- struct{}{}:
			default:
			}
		}
		out, err := s.Run(context.Background(), runner.Spec{Notebook: runnertest.Notebook(cell), Limits: runner.Limits{Timeout: patience, Output: 1000}}, sink)
		if err != nil {
			t.Error(err)
			return
		}
		ends <- name + " " + string(out.Status)
	}
	go run("first", runnertest.CellSleep)
	<-started
	for i, name := range []string{"second", "third"} {
		go run(name, runnertest.CellHello)
		require.Eventually(t, func() bool { return s.Info().Waiting == i+1 }, patience, time.Millisecond)
	}
	require.True(t, s.Info().Running)
	require.NoError(t, s.Interrupt(t.Context()))
	require.Equal(t, "first error", <-ends)
	require.Equal(t, "second ok", <-ends)
	require.Equal(t, "third ok", <-ends)

	<-started
	go run("last", runnertest.CellStubborn)
	<-started
	go run("never", runnertest.CellHello)
	require.Eventually(t, func() bool { return s.Info().Waiting == 1 }, patience, time.Millisecond)
	require.NoError(t, s.Close(t.Context()))
	require.ElementsMatch(t, []string{"last cancelled", "never cancelled"}, []string{<-ends, <-ends})
	var gone *runner.GoneError
	require.ErrorAs(t, s.Close(t.Context()), &gone)
	require.Equal(t, runner.GoneClosed, gone.Reason)
}

func TestFakeSessionsEnd(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	f := runnertest.NewFakeSessions()
	f.Now = func() time.Time { return now }
	f.MaxSessions = 2
	openFake(t, f, sessionSpec("ses_1"))
	second := sessionSpec("ses_2")
	second.Idle = 2 * time.Hour
	second.MaxOwned = 2
	openFake(t, f, second)
	var refused *runner.Error
	_, err := f.Open(t.Context(), second)
	require.ErrorAs(t, err, &refused)
	require.Equal(t, runner.CodeShare, refused.Code)
	_, err = f.Open(t.Context(), sessionSpec("ses_3"))
	require.ErrorAs(t, err, &refused)
	require.Equal(t, runner.CodeFull, refused.Code)

	now = now.Add(time.Minute)
	require.Len(t, f.List("me"), 1)
	require.Empty(t, f.List("you"))
	var gone *runner.GoneError
	_, err = f.Find("me", "ses_1")
	require.ErrorAs(t, err, &gone)
	require.Equal(t, runner.GoneIdle, gone.Reason)
	now = now.Add(time.Hour)
	_, err = f.Find("me", "ses_2")
	require.ErrorAs(t, err, &gone)
	require.Equal(t, runner.GoneExpired, gone.Reason)
	_, err = f.Find("you", "ses_2")
	require.ErrorIs(t, err, runner.ErrNoSession)
	f.Forget("me", "ses_2")
	_, err = f.Find("me", "ses_2")
	require.ErrorIs(t, err, runner.ErrNoSession)
}

func TestFakeSessionFiles(t *testing.T) {
	f := runnertest.NewFakeSessions()
	spec := sessionSpec("ses_1")
	spec.Limits.DataSize = 20
	spec.Inputs = []runner.Input{runnertest.TextInput("in/a", "a")}
	s := openFake(t, f, spec)
	code := func(err error) runner.FileCode {
		var failed *runner.FileError
		require.ErrorAs(t, err, &failed)
		return failed.Code
	}
	write := func(path, content string) error {
		_, err := s.Write(t.Context(), path, strings.NewReader(content))
		return err
	}
	require.NoError(t, write("b", "12345"))
	require.Equal(t, runner.FileNoRoom, code(write("c", strings.Repeat("x", 20))))
	require.Equal(t, runner.FileNotPlain, code(write("in", "")))
	require.Equal(t, runner.FileNotPlain, code(write("b/c", "")))
	require.Equal(t, runner.FileRefused, code(write("../b", "")))
	require.Equal(t, runner.FileRefused, code(write("/b", "")))
	_, _, err := s.Read(t.Context(), "in")
	require.Equal(t, runner.FileNotPlain, code(err))
	_, _, err = s.Read(t.Context(), "none")
	require.Equal(t, runner.FileNotFound, code(err))
	_, err = s.Move(t.Context(), "b", "in/a", false)
	require.Equal(t, runner.FileExists, code(err))
	moved, err := s.Move(t.Context(), "b", "in/deep/b", false)
	require.NoError(t, err)
	require.Equal(t, "in/deep/b", moved.Path)
	require.Equal(t, int64(5), moved.Size)

	list := func(path string, recursive bool) (paths []string) {
		files, more, err := s.List(t.Context(), path, recursive)
		require.NoError(t, err)
		require.False(t, more)
		for _, f := range files {
			paths = append(paths, string(f.Kind)+" "+f.Path)
		}
		return paths
	}
	require.Equal(t, []string{"directory in"}, list("", false))
	require.Equal(t, []string{"directory in", "file in/a", "directory in/deep", "file in/deep/b"}, list("", true))
	require.Equal(t, []string{"file in/deep/b"}, list("in/deep", false))
	require.NoError(t, s.Delete(t.Context(), "in"))
	require.Equal(t, runner.FileNotFound, code(s.Delete(t.Context(), "in")))
	require.Empty(t, list("", true))
}
