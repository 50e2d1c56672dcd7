package cells

import (
	"time"

	"notebox/environments/supervisor/wire"
)

// weighEvery is how often a worker measures memory at most: it costs the machine some ten
// milliseconds.
const weighEvery = 10 * time.Second

// WorkerState is what a worker is there for.
type WorkerState string

// The states of a worker.
const (
	WorkerStarting WorkerState = "starting"
	WorkerUsed     WorkerState = "used"   // it takes cells
	WorkerSpare    WorkerState = "spare"  // it waits to be the next one
	WorkerEnding   WorkerState = "ending" // it takes no cells any more, and has some
)

// WorkerStates are all there are.
func WorkerStates() []WorkerState {
	return []WorkerState{WorkerStarting, WorkerUsed, WorkerSpare, WorkerEnding}
}

// Stats is what an engine has.
type Stats struct {
	Workers map[WorkerState]int
	Lost    int // workers that ended and were not asked to
	Cells   int // from their start until nothing is left of them
	// Memory as it was measured last, in bytes; see wire.Measured. CellsPSS is what a part of
	// the cells has, times their number.
	WorkersCharged, WorkersPSS, CellsCharged, CellsPSS int64
}

// Stats returns what there is now, and has memory measured for the next time.
func (e *Engine) Stats() Stats {
	e.mu.Lock()
	defer e.mu.Unlock()
	out := Stats{Workers: map[WorkerState]int{}, Lost: e.lost}
	for _, s := range e.workers {
		out.add(s, WorkerUsed)
	}
	for _, s := range e.spares {
		out.add(s, WorkerSpare)
	}
	for _, s := range e.earlier {
		out.add(s, WorkerEnding)
	}
	return out
}

func (out *Stats) add(s *starting, state WorkerState) {
	if !s.started() {
		out.Workers[WorkerStarting]++
		return
	}
	out.Workers[state]++
	cells, m := s.worker.weigh()
	out.Cells += cells
	out.WorkersCharged += m.WorkerCharged
	out.WorkersPSS += m.WorkerPSS
	out.CellsCharged += m.CellsCharged
	if m.Sampled > 0 {
		out.CellsPSS += m.SampledPSS / int64(m.Sampled) * int64(m.Cells)
	}
}

// weigh returns how many cells there are, and what was measured last. It asks for more, and
// does not wait for that.
func (w *worker) weigh() (cells int, last wire.Measured) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if time.Since(w.weighed) >= weighEvery {
		w.weighed = time.Now()
		go func() { _ = w.link.Send(wire.KindWeigh, 0, nil) }() // an error shows on the reading side
	}
	return len(w.cells), w.weight
}
