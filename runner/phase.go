package runner

import "time"

// Phase is a part of a run's way through a Runner.
type Phase string

// The phases, in their order. A run that is turned away, cancelled or cut off has
// only those that it came to, the last of them cut short.
const (
	PhaseQueue   Phase = "queue"   // waiting for a place among those that run
	PhaseAcquire Phase = "acquire" // taking a sandbox that is warm, or starting one
	PhaseExecute Phase = "execute" // from the job's first byte until the last cell has ended
	PhaseCollect Phase = "collect" // the executed notebook and the new files come out, and are stored
)

// PhaseFunc is told of each phase of a run when it is over. It is called on the
// run's own way, and must not wait.
type PhaseFunc func(p Phase, begin, end time.Time)

// And returns a PhaseFunc that tells f and then g. Either may be nil.
func (f PhaseFunc) And(g PhaseFunc) PhaseFunc {
	switch {
	case f == nil:
		return g
	case g == nil:
		return f
	}
	return func(p Phase, begin, end time.Time) {
		f(p, begin, end)
		g(p, begin, end)
	}
}

// Tell calls f, if there is one, of a phase that is over now.
func (f PhaseFunc) Tell(p Phase, begin time.Time) {
	if f != nil {
		f(p, begin, time.Now())
	}
}
