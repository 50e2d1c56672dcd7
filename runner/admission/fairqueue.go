package admission

import (
	"container/list"
	"errors"
	"sync"
)

// Why a fairQueue does not even let somebody wait.
var (
	errQueueFull  = errors.New("the queue is full")
	errShareTaken = errors.New("the owner's share of the queue is taken")
)

// fairQueue hands out a number of places, and lines up who finds none. A place
// that is given back is handed over at once, to
//
//  1. the owner with the fewest places among those that wait;
//  2. among equals, the one that is longest without a turn: since its last run
//     ended, or since it joined;
//  3. of that owner's waiters, the one that came first.
//
// An owner without a place so has one as soon as each owner before it has had
// one, however many places or waiters others have. While anybody waits, no place
// is free. There is no goroutine: who waits does so on its waiter.
type fairQueue struct {
	maxWaiting int

	mu      sync.Mutex
	shared  bool // see Limits.ShareWaiting
	free    int
	running int
	waiting int
	owners  map[string]*party // those that run or wait
	turns   list.List         // of *party that wait; the longest without a turn is first
}

// party is what one owner has in a fairQueue.
type party struct {
	owner   string
	running int
	waiters list.List     // of *waiter, first come first served
	turn    *list.Element // in turns; nil if nobody waits
}

// waiter is one run's claim to a place.
type waiter struct {
	party  *party
	handed chan struct{} // closed when it has its place
	line   *list.Element // in party.waiters; nil when it has its place, or left
}

func newFairQueue(l Limits) *fairQueue {
	return &fairQueue{maxWaiting: l.MaxWaiting, shared: l.ShareWaiting, free: l.MaxRunning, owners: map[string]*party{}}
}

func (q *fairQueue) share(on bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.shared = on
}

// join takes a free place or gets into line. Who joined must leave, and then
// release if it has a place.
func (q *fairQueue) join(owner string) (*waiter, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	p, known := q.owners[owner]
	if !known {
		p = &party{owner: owner}
	}
	w := &waiter{party: p, handed: make(chan struct{})}
	switch room := q.maxWaiting - q.waiting; {
	case q.free > 0:
		q.free--
		q.hand(w)
	case room <= 0:
		return nil, errQueueFull
	case q.shared && p.waiters.Len() >= room:
		return nil, errShareTaken
	default:
		w.line = p.waiters.PushBack(w)
		if p.turn == nil {
			p.turn = q.turns.PushBack(p)
		}
		q.waiting++
	}
	q.owners[owner] = p
	return w, nil
}

// leave takes w out of the line and reports whether it was there still. If not,
// it has a place.
func (q *fairQueue) leave(w *waiter) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if w.line == nil {
		return false
	}
	q.outOfLine(w)
	q.forget(w.party)
	return true
}

// release hands w's place to the next, and is called once.
func (q *fairQueue) release(w *waiter) {
	q.mu.Lock()
	defer q.mu.Unlock()
	p := w.party
	p.running--
	q.running--
	if p.turn != nil {
		q.turns.MoveToBack(p.turn)
	}
	q.forget(p)
	next := q.next()
	if next == nil {
		q.free++
		return
	}
	q.outOfLine(next)
	q.hand(next)
}

// next is who is to have a place; nil if nobody waits. It looks at no more
// owners than there are places and one: the first without a place is the one.
func (q *fairQueue) next() *waiter {
	var best *party
	for e := q.turns.Front(); e != nil; e = e.Next() {
		if p := e.Value.(*party); best == nil || p.running < best.running {
			best = p
		}
		if best.running == 0 {
			break
		}
	}
	if best == nil {
		return nil
	}
	return best.waiters.Front().Value.(*waiter)
}

func (q *fairQueue) hand(w *waiter) {
	w.party.running++
	q.running++
	close(w.handed)
}

func (q *fairQueue) outOfLine(w *waiter) {
	p := w.party
	p.waiters.Remove(w.line)
	w.line = nil
	q.waiting--
	if p.waiters.Len() == 0 {
		q.turns.Remove(p.turn)
		p.turn = nil
	}
}

// forget drops an owner that has nothing here any more.
func (q *fairQueue) forget(p *party) {
	if p.running == 0 && p.waiters.Len() == 0 {
		delete(q.owners, p.owner)
	}
}

// numbers returns how many have a place, and how many wait for one.
func (q *fairQueue) numbers() (running, waiting int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.running, q.waiting
}
