package runner

import (
	"slices"
	"time"
)

// stock is what a Pool has of one environment. It is guarded by the pool's lock.
type stock struct {
	StockOptions
	target  int            // how many are to be warm
	warm    []*warmSandbox // the oldest first
	filling []*filling     // being started for the stock, the oldest first
	missed  bool           // since the last tick: somebody found none that was warm
	pause   time.Duration  // before the next start, where the last one failed
	resume  time.Time
}

// warmSandbox is one that is ready and waits for a job.
type warmSandbox struct {
	*conversation
	since time.Time
}

// filling is a start for the stock. A run that finds nothing warm claims it.
type filling struct {
	claim chan<- claimed // of the run that waits for it; nil where none does
	hurry chan struct{}  // closed when it is claimed
}

// claimed is what comes of a start that a run waits for.
type claimed struct {
	c   *conversation
	err error
}

// take returns the oldest that is warm, or nil. One that has ended stays, for
// those who were told of it to remove.
func (s *stock) take() *conversation {
	for i, w := range s.warm {
		if !w.ended() {
			s.warm = slices.Delete(s.warm, i, i+1)
			return w.conversation
		}
	}
	return nil
}

// claim takes a start that nobody has claimed, or returns nil.
func (s *stock) claim() <-chan claimed {
	for _, f := range s.filling {
		if f.claim == nil {
			ready := make(chan claimed, 1)
			f.claim = ready
			close(f.hurry)
			return ready
		}
	}
	return nil
}

// coming is how many are warm or will be, for nobody in particular.
func (s *stock) coming() int {
	n := len(s.warm)
	for _, f := range s.filling {
		if f.claim == nil {
			n++
		}
	}
	return n
}
