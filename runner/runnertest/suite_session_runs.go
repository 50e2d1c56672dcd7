package runnertest

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/runner"
)

func testSessionState(t *testing.T, h SessionHarness) {
	s := h.open(t, func(spec *runner.SessionSpec) {
		spec.Env = map[string]string{"NOTEBOX_TEST": "value"}
		spec.Note = map[string]string{"key": "note"}
	})
	s.run(t, CellSet).is(t, runner.StatusOK, false)
	s.run(t, CellGet).printed(t, "42\n")
	s.run(t, CellEnv).printed(t, "value\n")
	s.run(t, CellRaise).raised(t, "ValueError")
	r := s.run(t, CellGet)
	r.printed(t, "42\n")
	require.Positive(t, r.out.Usage.Wall)
	info := s.Info()
	require.Equal(t, map[string]string{"key": "note"}, info.Note)
	require.Equal(t, h.Environment.Name, info.Environment)
	require.False(t, info.Running)
	require.Zero(t, info.Waiting)
	require.Zero(t, info.KernelRestarts)
	require.Equal(t, time.Hour, info.Expires.Sub(info.Created).Round(time.Minute))
	require.WithinDuration(t, time.Now(), info.LastUsed, patience)
}

func testSessionOrder(t *testing.T, h SessionHarness) {
	s := h.open(t)
	first := s.start(t, t.Context(), s.spec(CellSleep))
	require.True(t, s.Info().Running)
	var all []chan sessionRun
	for i := range 4 {
		ended := make(chan sessionRun, 1)
		go func() { ended <- s.try(t, t.Context(), s.spec(CellCount), nil) }()
		all = append(all, ended)
		require.Eventually(t, func() bool { return s.Info().Waiting == i+1 }, patience, 5*time.Millisecond)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	left := make(chan sessionRun, 1)
	go func() { left <- s.try(t, cancelled, s.spec(CellCount), nil) }()
	require.Eventually(t, func() bool { return s.Info().Waiting == 5 }, patience, 5*time.Millisecond)
	cancel()
	await(t, left).is(t, runner.StatusCancelled, false)
	require.NoError(t, s.Interrupt(t.Context()))
	await(t, first).raised(t, "KeyboardInterrupt")
	for i, ended := range all {
		await(t, ended).printed(t, string(rune('1'+i))+"\n")
	}
}

func testSessionsApart(t *testing.T, h SessionHarness) {
	all := h.Sessions(t)
	a, b := h.openIn(t, all), h.openIn(t, all)
	a.run(t, CellSet).is(t, runner.StatusOK, false)
	a.write(t, "in.txt", "of a")
	b.run(t, CellGet).raised(t, "NameError")
	b.run(t, CellRead).raised(t, "FileNotFoundError")
	a.run(t, CellRead).printed(t, "of a\n")
	require.NoError(t, a.Close(t.Context()))
	b.run(t, CellHello).printed(t, "hello\n")
}

func testSessionOwners(t *testing.T, h SessionHarness) {
	all := h.Sessions(t)
	mine := h.openIn(t, all)
	theirs := h.openIn(t, all, func(s *runner.SessionSpec) { s.Owner = "other" })
	second := h.openIn(t, all, func(s *runner.SessionSpec) { s.MaxOwned = 2 })
	_, err := h.tryOpen(t, all, func(s *runner.SessionSpec) { s.MaxOwned = 2 })
	refusal := (*runner.Error)(nil)
	require.ErrorAs(t, err, &refusal)
	require.Equal(t, runner.CodeShare, refusal.Code)
	require.Positive(t, refusal.RetryAfter)

	found, err := all.Find(sessionOwner, mine.Info().ID)
	require.NoError(t, err)
	require.Equal(t, mine.Info().ID, found.Info().ID)
	_, err = all.Find(sessionOwner, theirs.Info().ID)
	require.ErrorIs(t, err, runner.ErrNoSession)
	_, err = all.Find("other", "unknown")
	require.ErrorIs(t, err, runner.ErrNoSession)
	var listed []string
	for _, info := range all.List(sessionOwner) {
		listed = append(listed, info.ID)
	}
	require.Equal(t, []string{mine.Info().ID, second.Info().ID}, listed)
	require.Empty(t, all.List("nobody"))
}

func testSessionInterrupt(t *testing.T, h SessionHarness) {
	s := h.open(t)
	require.NoError(t, s.Interrupt(t.Context()), "if nothing runs")
	s.run(t, CellSet).is(t, runner.StatusOK, false)
	ended := s.start(t, t.Context(), s.spec(CellSleep))
	require.NoError(t, s.Interrupt(t.Context()))
	await(t, ended).raised(t, "KeyboardInterrupt")
	s.run(t, CellGet).printed(t, "42\n")
}

func testSessionRestart(t *testing.T, h SessionHarness) {
	s := h.open(t)
	s.run(t, CellSet).is(t, runner.StatusOK, false)
	s.write(t, "in.txt", "kept")
	failed := make(chan error, 3)
	for range cap(failed) {
		go func() { failed <- s.Restart(t.Context()) }()
	}
	for range cap(failed) {
		require.NoError(t, receive(t, failed))
	}
	require.Equal(t, 3, s.Info().KernelRestarts)
	s.run(t, CellGet).is(t, runner.StatusError, false).raised(t, "NameError")
	s.run(t, CellRead).printed(t, "kept\n")
	require.Equal(t, 3, s.Info().KernelRestarts)
	require.NoError(t, s.Restart(t.Context()))
	s.run(t, CellKill).is(t, runner.StatusKilled, true)
	require.Equal(t, 5, s.Info().KernelRestarts)
}

func testSessionRestartOfARun(t *testing.T, h SessionHarness) {
	s := h.open(t)
	s.run(t, CellSet).is(t, runner.StatusOK, false)
	ended := s.start(t, t.Context(), s.spec(CellSleep))
	waiting := make(chan sessionRun, 1)
	go func() { waiting <- s.try(t, t.Context(), s.spec(CellGet), nil) }()
	require.Eventually(t, func() bool { return s.Info().Waiting == 1 }, patience, 5*time.Millisecond)
	require.NoError(t, s.Restart(t.Context()))
	await(t, ended).is(t, runner.StatusKilled, true)
	await(t, waiting).raised(t, "NameError")
	require.Equal(t, 1, s.Info().KernelRestarts)
}

func testSessionKernelDeath(t *testing.T, h SessionHarness) {
	s := h.open(t)
	s.write(t, "in.txt", "kept")
	s.run(t, CellSet).is(t, runner.StatusOK, false)
	s.run(t, CellKill).is(t, runner.StatusKilled, true)
	s.run(t, CellRead).printed(t, "kept\n")
	s.run(t, CellGet).raised(t, "NameError")
	require.Equal(t, 1, s.Info().KernelRestarts)

	s.run(t, CellSet, CellDieLater).is(t, runner.StatusOK, false)
	require.Eventually(t, func() bool {
		return slices.Contains(s.list(t, "", false), "file died 0")
	}, patience, 50*time.Millisecond)
	time.Sleep(min(time.Second, h.Brief)) // it is being taken apart
	r := s.run(t, CellGet)
	r.is(t, runner.StatusError, true)
	r.raised(t, "NameError")
	s.run(t, CellRead).printed(t, "kept\n")
	require.Equal(t, 2, s.Info().KernelRestarts)
}

func testSessionEnds(t *testing.T, h SessionHarness) {
	for _, c := range []struct {
		desc      string
		cell      string
		timeout   bool
		output    int64
		cancel    bool
		status    runner.Status
		restarted bool
	}{
		{desc: "time is over", cell: CellSleep, timeout: true, status: runner.StatusTimeout},
		{desc: "time is over, which is not heeded", cell: CellStubborn, timeout: true, status: runner.StatusTimeout, restarted: true},
		{desc: "cancelled", cell: CellSleep, cancel: true, status: runner.StatusCancelled},
		{desc: "cancelled, which is not heeded", cell: CellStubborn, cancel: true, status: runner.StatusCancelled, restarted: true},
		{desc: "too much output", cell: CellFlood, output: 5000, status: runner.StatusOutputLimit},
	} {
		t.Run(c.desc, func(t *testing.T) {
			t.Parallel()
			s := h.open(t)
			s.write(t, "in.txt", "kept")
			s.run(t, CellSet).is(t, runner.StatusOK, false)
			spec := s.spec(c.cell)
			if c.timeout {
				spec.Limits.Timeout = h.Limits.Timeout
			}
			if c.output > 0 {
				spec.Limits.Output = c.output
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			first := time.Time{}
			r := s.do(t, ctx, spec, func(runner.Event) {
				if first.IsZero() {
					first = time.Now()
				}
				if c.cancel {
					cancel()
				}
			})
			r.is(t, c.status, c.restarted)
			require.NotNil(t, r.out.Notebook)
			require.NotEmpty(t, r.executed.Stdout(0), "what it printed is kept")
			next := s.run(t, CellGet)
			if c.restarted {
				next.raised(t, "NameError")
			} else {
				next.printed(t, "42\n")
			}
			s.run(t, CellRead).printed(t, "kept\n")
		})
	}
}

func testSessionCommands(t *testing.T, h SessionHarness) {
	s := h.open(t, func(spec *runner.SessionSpec) { spec.Env = map[string]string{"NOTEBOX_TEST": "value"} })
	command := func(line string) runner.Spec {
		spec := s.spec(line)
		spec.Command = line
		return spec
	}
	code := func(n int) *int { return &n }
	s.run(t, CellSet).is(t, runner.StatusOK, false)
	r := s.do(t, t.Context(), command(CommandBoth), nil).is(t, runner.StatusError, false)
	require.Equal(t, code(3), r.out.ExitCode)
	texts := map[string]string{}
	for _, o := range r.executed.Cells[0].Outputs {
		texts[o.Name] += string(o.Text)
	}
	require.Equal(t, map[string]string{"stdout": "out\n", "stderr": "err\n"}, texts)

	r = s.do(t, t.Context(), command(CommandEnv), nil)
	r.printed(t, "value\n")
	require.Equal(t, code(0), r.out.ExitCode)

	ended := s.start(t, t.Context(), command(CommandLong))
	require.NoError(t, s.Interrupt(t.Context()))
	r = await(t, ended).is(t, runner.StatusError, false)
	require.Equal(t, code(130), r.out.ExitCode)

	long := command(CommandLong)
	long.Limits.Timeout = h.Limits.Timeout
	r = s.do(t, t.Context(), long, nil).is(t, runner.StatusTimeout, false)
	require.Nil(t, r.out.ExitCode)
	r = s.run(t, CellGet)
	r.printed(t, "42\n")
	require.Nil(t, r.out.ExitCode)
}

func testSessionExpiry(t *testing.T, h SessionHarness) {
	t.Run("TTL, while it is used", func(t *testing.T) {
		t.Parallel()
		s := h.open(t, func(spec *runner.SessionSpec) { spec.TTL = h.Brief })
		r := await(t, s.start(t, t.Context(), s.spec(CellSleep)))
		r.is(t, runner.StatusCancelled, false)
		streamed, err := StreamedText(r.sink.Events())
		require.NoError(t, err)
		require.Equal(t, "started\n", streamed)
		require.Equal(t, runner.GoneExpired, s.gone(t))
	})
	t.Run("idle", func(t *testing.T) {
		t.Parallel()
		s := h.open(t, func(spec *runner.SessionSpec) { spec.Idle = h.Brief / 2 })
		ended := s.start(t, t.Context(), s.spec(CellSleep))
		time.Sleep(h.Brief)
		require.Len(t, s.all.List(sessionOwner), 1, "a run keeps it in use")
		require.NoError(t, s.Interrupt(t.Context()))
		await(t, ended).raised(t, "KeyboardInterrupt")
		require.Equal(t, runner.GoneIdle, s.gone(t))
	})
}

func testSessionClose(t *testing.T, h SessionHarness) {
	s := h.open(t)
	ended := s.start(t, t.Context(), s.spec(CellSleep))
	waiting := make(chan sessionRun, 1)
	go func() { waiting <- s.try(t, t.Context(), s.spec(CellHello), nil) }()
	require.Eventually(t, func() bool { return s.Info().Waiting == 1 }, patience, 5*time.Millisecond)
	require.NoError(t, s.Close(t.Context()))
	r := await(t, ended).is(t, runner.StatusCancelled, false)
	streamed, err := StreamedText(r.sink.Events())
	require.NoError(t, err)
	require.Equal(t, "started\n", streamed)
	await(t, waiting).is(t, runner.StatusCancelled, false)
	require.Equal(t, runner.GoneClosed, s.gone(t))
}
