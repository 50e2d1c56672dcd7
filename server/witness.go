package server

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"notebox/runner"
)

// provenFor is how long a run proves that code can be run: longer than probes
// are apart, and soon over if nobody runs anything.
const provenFor = 10 * time.Second

// witness is a Runner that remembers when a run last proved that sandboxes work.
type witness struct {
	next runner.Runner
	now  func() time.Time
	seen atomic.Pointer[time.Time] // nil: never, or a run has failed since
}

// Run implements runner.Runner.
func (w *witness) Run(ctx context.Context, spec runner.Spec, events runner.Sink) (*runner.Outcome, error) {
	out, err := w.next.Run(ctx, spec, events)
	switch {
	case err == nil && proves(out.Status):
		now := w.now()
		w.seen.Store(&now)
	case err != nil && ctx.Err() == nil && disproves(err):
		w.seen.Store(nil)
	}
	return out, err
}

// proven reports whether code was seen to run within provenFor.
func (w *witness) proven() bool {
	seen := w.seen.Load()
	return seen != nil && w.now().Sub(*seen).Abs() < provenFor
}

// proves reports whether only a sandbox that works can end a run so. The other
// statuses are also those of one that is cut off: it hung (timeout), it was ended
// from outside (out_of_memory), it never was (cancelled), or its kernels die.
func proves(s runner.Status) bool {
	return s == runner.StatusOK || s == runner.StatusError || s == runner.StatusOutputLimit
}

// disproves reports whether a run's error says anything of sandboxes: one that
// was turned away had none, and variables or packages that keep a kernel from
// starting are the caller's.
func disproves(err error) bool {
	var known *runner.Error
	return !errors.As(err, &known) ||
		known.Code != runner.CodeFull && known.Code != runner.CodeShare && known.Code != runner.CodeEnv && known.Code != runner.CodePackages
}
