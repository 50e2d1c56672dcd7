package executor

import (
	"slices"
	"sync"
	"time"

	"notebox/executor/problem"
)

const (
	// maxPast is how many runs of one owner are remembered: a screen or two.
	maxPast = 100
	// maxPastOwners bounds the owners whose runs are remembered, in memory: some 10 MB at
	// worst.
	maxPastOwners = 500
)

// PastRun is what is remembered of a run of this process.
type PastRun struct {
	ID       string    `json:"id"`
	Language string    `json:"language"`
	Session  bool      `json:"session"` // it ran in one
	Status   string    `json:"status"`  // running, also while it waits for its place; that of its reply; or failed, without one
	Started  time.Time `json:"started"`
	QueueMS  int64     `json:"queue_ms"`
	WallMS   int64     `json:"wall_ms"`
}

// past remembers the last runs of each owner.
type past struct {
	mu      sync.Mutex
	byOwner map[string][]PastRun // the oldest first
	recent  []string             // owners, the one who began a run last at the end
}

func (p *past) begin(owner string, run PastRun) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.byOwner == nil {
		p.byOwner = map[string][]PastRun{}
	}
	p.recent = append(slices.DeleteFunc(p.recent, func(o string) bool { return o == owner }), owner)
	if len(p.recent) > maxPastOwners {
		delete(p.byOwner, p.recent[0])
		p.recent = slices.Delete(p.recent, 0, 1)
	}
	runs := p.byOwner[owner]
	if len(runs) >= maxPast {
		runs = slices.Delete(runs, 0, len(runs)-maxPast+1)
	}
	p.byOwner[owner] = append(runs, run)
}

// end notes how a run ended; answer is nil if it has no result.
func (p *past) end(e *execution, end *ending, answer *Result) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.byOwner[e.owner] {
		run := &p.byOwner[e.owner][i]
		switch {
		case run.ID != e.id:
		case answer != nil:
			run.Status, run.QueueMS, run.WallMS = string(answer.Status), answer.Usage.QueueMS, answer.Usage.WallMS
		case end.problem != nil && end.problem.Status == problem.StatusClientGone:
			run.Status = "cancelled"
		default:
			run.Status = "failed"
		}
	}
}

// Runs are the last hundred runs of an owner that this process has begun, the newest first.
func (x *Executor) Runs(owner string) []PastRun {
	x.past.mu.Lock()
	defer x.past.mu.Unlock()
	runs := slices.Clone(x.past.byOwner[owner])
	slices.Reverse(runs)
	return runs
}

// pastOf is a run that begins.
func (e *execution) pastOf() PastRun {
	return PastRun{
		ID: e.id, Language: e.plan.kernel().Language, Session: e.plan.session != nil,
		Status: "running", Started: e.plan.started.UTC(),
	}
}
