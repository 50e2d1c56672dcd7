package pool

import (
	"slices"
	"time"

	"github.com/cenkalti/backoff/v5"

	"notebox/runner"
	"notebox/runner/internal/conversation"
)

// stock is what a Pool has of one environment. It is guarded by the pool's lock.
type stock struct {
	StockOptions
	limits  runner.Limits               // of its sandboxes
	byUse   bool                        // there because of runs, and not for good
	used    time.Time                   // when a run last asked for one
	target  int                         // how many are to be warm
	proven  bool                        // one of its sandboxes has started: only then is a by-use stock filled ahead
	warm    []*warmSandbox              // the oldest first
	filling []*filling                  // being started for the stock, the oldest first
	missed  bool                        // since the last tick: somebody found none that was warm
	pauses  *backoff.ExponentialBackOff // before the next start, if the last one failed
	resume  time.Time                   // when it may be; zero for now
}

// stockKey says which sandboxes are alike: an environment's name, its image, which
// holds its packages, the kernel that runs in it, and whose they are.
type stockKey struct{ environment, image, kernel, owner string }

func keyOf(env runner.Environment) stockKey {
	return stockKey{env.Name, env.Image, env.Kernel.Spec(), env.Owner}
}

// fits reports whether its sandboxes are good for a run.
func (s *stock) fits(l runner.Limits) bool { return ofContainer(l) == ofContainer(s.limits) }

// warmSandbox is one that is ready and waits for a job.
type warmSandbox struct {
	*conversation.Conversation
	since time.Time
}

// filling is a start for the stock. A run that finds nothing warm claims it.
type filling struct {
	claim chan<- claimed // of the run that waits for it; nil if none does
	hurry chan struct{}  // closed when it is claimed
}

// claimed is what comes of a start that a run waits for.
type claimed struct {
	c   *conversation.Conversation
	err error
}

// take returns the oldest that is warm, or nil. One that has ended stays: who hears of its
// end removes it, see shelve.
func (s *stock) take() *conversation.Conversation {
	for i, w := range s.warm {
		if w.Over() == nil {
			s.warm = slices.Delete(s.warm, i, i+1)
			return w.Conversation
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

// newStock returns one that has nothing yet.
func newStock(o StockOptions, l runner.Limits) *stock {
	return &stock{StockOptions: o, limits: l, target: o.Min, pauses: newPauses()}
}

// disappoint lowers the target of a by-use stock after one of its sandboxes did not start
// or died early. Its packages may be the cause, and nobody pays for such starts. The next
// run that finds none warm raises the target again.
func (s *stock) disappoint() {
	if s.byUse {
		s.target = max(0, s.target-1)
	}
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

// recovered lets the stock be filled at once.
func (s *stock) recovered() {
	s.pauses.Reset()
	s.resume = time.Time{}
}

// ofContainer leaves of limits what a container is made with.
func ofContainer(l runner.Limits) runner.Limits {
	return runner.Limits{Memory: l.Memory, CPUs: l.CPUs, Pids: l.Pids, DataSize: l.DataSize, TmpSize: l.TmpSize, Inodes: l.Inodes}
}
