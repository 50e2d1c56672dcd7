package dependencies

import (
	"sync"
	"time"

	"notebox/runner"
)

// waitingRetry is when those come back for whom there was no place to wait: a small set is
// installed by then.
const waitingRetry = 10 * time.Second

// waiting counts the requests that wait for installations. Each holds what it came with
// meanwhile, such as its files.
type waiting struct {
	most int

	mu     sync.Mutex
	shared bool // see Layers.ShareWaiting
	all    int
	owners map[string]int
}

// enter takes a place, which leave gives back. The error is a *runner.Error.
func (w *waiting) enter(owner string) (leave func(), err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch room := w.most - w.all; {
	case room <= 0:
		return nil, &runner.Error{Code: runner.CodeFull, RetryAfter: waitingRetry, Message: "too many runs are waiting for packages"}
	case w.shared && w.owners[owner] >= room:
		return nil, &runner.Error{
			Code: runner.CodeShare, RetryAfter: waitingRetry,
			Message: "too many runs of this caller are waiting for packages: the rest of the queue is for others",
		}
	}
	w.all++
	w.owners[owner]++
	return func() { w.leave(owner) }, nil
}

func (w *waiting) leave(owner string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all--
	if w.owners[owner]--; w.owners[owner] == 0 {
		delete(w.owners, owner)
	}
}

// ShareWaiting has an owner wait in no more places than are left free for others, as
// admission.Limits has it, from then on.
func (l *Layers) ShareWaiting(on bool) {
	l.waiting.mu.Lock()
	defer l.waiting.mu.Unlock()
	l.waiting.shared = on
}
