package cells

import (
	"maps"
	"slices"
	"time"

	"notebox/environments/supervisor/wire"
	"notebox/runner"
)

// Ahead has a worker of each of these environments be there, also if nobody has asked for one.
func (e *Engine) Ahead(environments []runner.Environment) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ahead = environments
}

// prepare starts a spare worker if there is none. The lock is held.
func (e *Engine) prepare(env runner.Environment) {
	if kind := placeOf(env).kind; e.spares[kind] == nil && time.Since(e.failed[kind]) >= failedPause {
		e.spares[kind] = e.start(env)
	}
}

// watch ends what nobody uses, and has a spare worker where there is none.
func (e *Engine) watch() {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-e.closing.Done():
			return
		case <-tick.C:
			e.mu.Lock()
			if !e.closed {
				e.tidy()
			}
			e.mu.Unlock()
		}
	}
}

// tidy is a look of watch. The lock is held.
func (e *Engine) tidy() {
	for at, s := range e.workers {
		if s.started() && s.worker.idle() >= idleTime {
			e.leave(at)
			continue
		}
		e.used[at.kind] = time.Now()
		if time.Since(s.taken) >= e.options.SpareAfter {
			e.prepare(s.env)
		}
	}
	e.lookAhead()
	for kind, s := range e.spares {
		// Not at once: the worker may have ended by itself, and somebody is about to come.
		if time.Since(e.used[kind]) >= idleTime && s.started() {
			delete(e.spares, kind)
			e.retire(s)
		}
	}
}

// lookAhead has workers be there that nobody has asked for, one after the other. The lock is held.
func (e *Engine) lookAhead() {
	if time.Since(e.begun) < aheadAfter {
		return
	}
	for _, env := range e.ahead {
		kind := placeOf(env).kind
		isIts := func(at place) bool { return at.kind == kind }
		if e.spares[kind] == nil && slices.ContainsFunc(slices.Collect(maps.Keys(e.workers)), isIts) {
			continue
		}
		e.used[kind] = time.Now()
		e.prepare(env)
		if s := e.spares[kind]; s != nil && !s.started() {
			return
		}
	}
}

// crowded ends the worker that has been without a cell for longest, if there are many. The
// lock is held.
func (e *Engine) crowded() {
	var longest place
	var idle time.Duration
	for at, s := range e.workers {
		if s.started() && s.worker.idle() > idle {
			longest, idle = at, s.worker.idle()
		}
	}
	if len(e.workers) >= manyWorkers && idle > 0 {
		e.leave(longest)
	}
}

// calm has cells with many processes stand still for a moment, in all workers: what they do may be
// why another one does not begin.
func (e *Engine) calm() {
	if !e.calming.TryLock() {
		return
	}
	defer e.calming.Unlock()
	e.mu.Lock()
	all := e.all()
	e.mu.Unlock()
	for _, s := range all {
		if s.started() {
			_ = s.worker.link.Send(wire.KindCalm, 0, nil) // one that has ended has no cells
		}
	}
}
