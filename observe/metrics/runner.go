package metrics

import (
	"context"
	"errors"
	"time"

	"notebox/runner"
)

// phaseStore is the phase after the runner's own: what is left of a run goes to the store.
const phaseStore = "store"

// phases are the values of the label phase.
func phases() []string {
	return []string{string(runner.PhaseQueue), string(runner.PhaseAcquire), string(runner.PhaseExecute), string(runner.PhaseCollect), phaseStore}
}

// Runner returns a Runner that counts and times the runs of another.
func (m *Metrics) Runner(next runner.Runner) runner.Runner { return &meteredRunner{next, m} }

type meteredRunner struct {
	next    runner.Runner
	metrics *Metrics
}

// Run implements runner.Runner.
func (r *meteredRunner) Run(ctx context.Context, spec runner.Spec, events runner.Sink) (*runner.Outcome, error) {
	m := r.metrics
	spec.Observe = spec.Observe.And(func(p runner.Phase, begin, end time.Time) {
		m.phases.WithLabelValues(string(p)).Observe(end.Sub(begin).Seconds())
	})
	out, err := r.next.Run(ctx, spec, events)
	environment := m.environment(spec.Environment.Name)
	if err != nil {
		m.failed(environment, err)
		return out, err
	}
	m.runs.WithLabelValues(environment, string(out.Status)).Inc()
	m.cpu.WithLabelValues(environment).Add(max(0, out.Usage.CPU.Seconds()))
	return out, nil
}

// failed counts a run without an outcome: as a refusal, if it is one; and not at all
// if its session was over, as that is counted.
func (m *Metrics) failed(environment string, err error) {
	if errors.As(err, new(*runner.GoneError)) {
		return
	}
	if known := (*runner.Error)(nil); errors.As(err, &known) {
		switch known.Code {
		case runner.CodeFull, runner.CodeShare, runner.CodeUnavailable:
			m.refusals.WithLabelValues(string(known.Code)).Inc()
			return
		case runner.CodeEnv, runner.CodePackages: // the caller's choice: a request that is wrong
			return
		}
	}
	m.runs.WithLabelValues(environment, statusFailed).Inc()
}

func (m *Metrics) environment(name string) string {
	if m.environments[name] {
		return name
	}
	return "other"
}
