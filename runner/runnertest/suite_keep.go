package runnertest

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/runner"
	"notebox/runner/internal/frame"
)

// testKeep has a sandbox outlive the engine that started it.
func testKeep(t *testing.T, h Harness) {
	service := newService()
	first, ok := h.Engine(t, service).(runner.Keeper)
	if !ok {
		return
	}
	s := h.start(t, first)
	s.ready(t)
	before := s.ID()
	name, err := first.Keep(t.Context(), s.Sandbox)
	require.NoError(t, err)
	require.NotEqual(t, before, name, "who looks at the host sees what it is")
	require.Equal(t, name, s.ID())
	require.Equal(t, []string{name}, h.Left(t, service))
	again, err := first.Keep(t.Context(), s.Sandbox)
	require.NoError(t, err)
	require.Equal(t, name, again)
	require.NoError(t, s.Close())
	require.Equal(t, []string{name}, h.Left(t, service), "it does not end with its stream")

	second := h.Engine(t, service).(runner.Keeper)
	adopted := h.adopt(t, second, name)
	require.Equal(t, name, adopted.ID())
	adopted.sendJob(t, h.Limits, CellHello)
	require.Contains(t, adopted.until(t, frame.KindDone), frame.KindEvent)
	third := h.adopt(t, second, name)
	require.Equal(t, name, third.ID())

	stranger := h.Engine(t, newService()).(runner.Keeper)
	for _, c := range []struct {
		desc string
		e    runner.Keeper
		name string
	}{
		{"of another service", stranger, name},
		{"by the name that it had", second, before},
		{"that never was", second, name + "x"},
	} {
		_, err := c.e.Adopt(t.Context(), c.name)
		require.ErrorIs(t, err, runner.ErrNoSandbox, c.desc)
	}
	reaped, err := second.Reap(t.Context())
	require.NoError(t, err)
	require.Zero(t, reaped, "it is this process's now")

	third.kill(t)
	require.Empty(t, h.Left(t, service))
	_, err = second.Adopt(t.Context(), name)
	require.ErrorIs(t, err, runner.ErrNoSandbox, "that has ended")
	third.kill(t)
	adopted.kill(t)
	s.kill(t)
}

// testKeptAreReaped if no process adopts them.
func testKeptAreReaped(t *testing.T, h Harness) {
	service, other := newService(), newService()
	first, ok := h.Engine(t, service).(runner.Keeper)
	if !ok {
		return
	}
	stranger := h.Engine(t, other).(runner.Keeper)
	names := map[string]wire{}
	for _, e := range []runner.Keeper{first, first, stranger} {
		s := h.start(t, e)
		s.ready(t)
		go s.ping(t.Context()) // the others may take longer than it waits alone
		name, err := e.Keep(t.Context(), s.Sandbox)
		require.NoError(t, err)
		names[name] = s
	}
	reaped, err := first.Reap(t.Context())
	require.NoError(t, err)
	require.Zero(t, reaped, "of its own process")
	mine := h.Left(t, service)
	require.Len(t, mine, 2)

	second := h.Engine(t, service).(runner.Keeper)
	adopted := h.adopt(t, second, mine[0])
	reaped, err = second.Reap(t.Context())
	require.NoError(t, err)
	if !h.Together {
		require.Equal(t, 1, reaped)
	}
	require.Equal(t, mine[:1], h.Left(t, service))
	require.Len(t, h.Left(t, other), 1)
	require.Contains(t, names, h.Left(t, other)[0])
	adopted.kill(t)
	require.Empty(t, h.Left(t, service))
}

// ping has the program inside know that it is not alone.
func (s wire) ping(ctx context.Context) {
	for tick := time.NewTicker(pingEvery); ; {
		select {
		case <-ctx.Done():
			tick.Stop()
			return
		case <-tick.C:
			_ = frame.Write(s, frame.KindPing, nil) // one that has ended is the test's affair
		}
	}
}

func (h Harness) adopt(t *testing.T, e runner.Keeper, name string) wire {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	s, err := e.Adopt(ctx, name)
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		require.NoError(t, s.Kill(ctx))
	})
	return wire{s}
}
