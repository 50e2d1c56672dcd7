package pool_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/runner"
	"notebox/runner/admission"
	"notebox/runner/runnertest"
)

// heard are the phases that a run told of, checked to follow each other.
type heard struct {
	t      *testing.T
	phases []runner.Phase
	last   time.Time
}

func (h *heard) hear(p runner.Phase, begin, end time.Time) {
	require.False(h.t, begin.Before(h.last), "%s begins within the phase before it", p)
	require.False(h.t, end.Before(begin), "%s ends before it begins", p)
	h.phases, h.last = append(h.phases, p), end
}

func TestPhases(t *testing.T) {
	const queue, acquire, execute, collect = runner.PhaseQueue, runner.PhaseAcquire, runner.PhaseExecute, runner.PhaseCollect
	for _, c := range []struct {
		desc, cell, image string
		want              []runner.Phase
	}{
		{desc: "a good run", cell: runnertest.CellFiles, want: []runner.Phase{queue, acquire, execute, collect}},
		{desc: "code that raises", cell: runnertest.CellRaise, want: []runner.Phase{queue, acquire, execute, collect}},
		{desc: "a time limit", cell: runnertest.CellSleep, want: []runner.Phase{queue, acquire, execute, collect}},
		{desc: "no sandbox", cell: runnertest.CellHello, image: runnertest.FakeMissing, want: []runner.Phase{queue, acquire}},
	} {
		t.Run(c.desc, func(t *testing.T) {
			runnertest.InBubble(t, func(t *testing.T) {
				host := runnertest.NewHost(t, nil)
				admission := admission.New(runnertest.Single(t, host.Engine("test"), runnertest.Log(t)), admission.Limits{MaxRunning: 1, MaxWait: time.Minute})
				spec := runnertest.NewSpec(c.cell)
				if c.image != "" {
					spec.Environment.Image = c.image
				}
				h := &heard{t: t}
				again := 0
				spec.Observe = runner.PhaseFunc(h.hear).And(nil).And(func(runner.Phase, time.Time, time.Time) { again++ })
				_, err := admission.Run(t.Context(), spec, runnertest.NewRecorder(t))
				require.Equal(t, c.image != "", err != nil)
				require.Equal(t, c.want, h.phases)
				require.Len(t, c.want, again, "two may listen")
			})
		})
	}
}

// TestPhasesOfATurnedAway run are its waiting, and nothing else.
func TestPhasesOfATurnedAway(t *testing.T) {
	runnertest.InBubble(t, func(t *testing.T) {
		host := runnertest.NewHost(t, nil)
		admission := admission.New(runnertest.Single(t, host.Engine("test"), runnertest.Log(t)), admission.Limits{MaxRunning: 1, MaxWaiting: 1, MaxWait: time.Second})
		ended := make(chan error)
		go func() {
			_, err := admission.Run(t.Context(), runnertest.NewSpec(runnertest.CellSleep), runnertest.NewRecorder(t))
			ended <- err
		}()
		for admission.Running() == 0 {
			time.Sleep(time.Millisecond)
		}
		h := &heard{t: t}
		spec := runnertest.NewSpec(runnertest.CellHello)
		spec.Observe = h.hear
		began := time.Now()
		_, err := admission.Run(t.Context(), spec, runnertest.NewRecorder(t))
		runnertest.RequireCode(t, runner.CodeFull, err)
		require.Equal(t, []runner.Phase{runner.PhaseQueue}, h.phases)
		require.Equal(t, time.Second, h.last.Sub(began))
		require.NoError(t, errors.Join(<-ended))
	})
}
