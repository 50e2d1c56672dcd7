package executor

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"notebox/access"
	"notebox/executor/intake"
	"notebox/executor/ledger"
	"notebox/executor/problem"
	"notebox/runner"
)

// execution is one run apart from the requests that wait for it. It lives from the
// request that begins it, in that order:
//
//  1. Begin makes it, with everything that was sent.
//  2. register makes it known: to this process, and by a lease to others, if it is
//     to outlive its client. A claim makes a key stand for it.
//  3. start gives it a goroutine, which fetches inputs, runs, and stores how it ended.
//
// One that is not started is discarded.
type execution struct {
	id          string
	owner       string
	caller      *access.Caller // nil without keys
	fingerprint string         // of its order, if that has a Key
	plan        *plan
	work        *intake.Workspace
	detached    bool         // asynchronous or idempotent: it goes on without a client, and its end is kept
	leave       func()       // gives its place among those that are detached back; nil if it has none
	sent        func(func()) // see Order.Sent; nil if it is detached

	registered bool
	leased     bool             // its lease is written
	position   *ledger.Position // of its claim; nil if its order has no Key

	ctx      context.Context // ends with a cause, or with the service's runs
	cancel   context.CancelCauseFunc
	started  bool
	accepted chan struct{}  // closed when its inputs are there
	settling sync.Mutex     // of the next three
	known    chan struct{}  // closed when the run has come to its end
	refusal  *problem.Error // that it came to; nil for a reply
	answered bool           // a request was told that it may ask later
	done     chan struct{}  // closed when ending is known and, if it is kept, stored
	gone     chan struct{}  // closed when nothing of it is left, goroutines included
	ending   *ending
	answer   *Result // for result.json, after the client has it
}

// ending is how an execution ended: with a problem, or with a reply, which is in
// memory or in the store.
type ending struct {
	problem *problem.Error
	reply   []byte
	key     string
}

const (
	// resultTries is how often the store is asked to keep a result, with resultPause
	// between: a store that restarts is back within seconds, and a client waits.
	resultTries = 3
	resultPause = 2 * time.Second
)

// LargeProgram is how long a program is, as a notebook, that keeps its request's place while
// it waits and runs, bytes: it is in memory until then.
const LargeProgram = 256 << 10

func (x *Executor) newExecution(caller *access.Caller, o *Order) *execution {
	e := &execution{
		owner: caller.Owner(), caller: caller, detached: o.Detached || o.Key != "", work: o.Work, sent: o.Sent,
		accepted: make(chan struct{}), known: make(chan struct{}), done: make(chan struct{}), gone: make(chan struct{}),
	}
	if e.work == nil {
		e.work = x.intake.Workspace(e.owner)
	}
	if e.sent == nil || e.detached {
		e.sent = func(f func()) { f() }
	}
	e.ctx, e.cancel = context.WithCancelCause(x.runs)
	return e
}

func (e *execution) over() bool {
	select {
	case <-e.done:
		return true
	default:
		return false
	}
}

// failed reports whether e is known to have failed, which may not be stored yet.
func (e *execution) failed() bool {
	select {
	case <-e.known:
		return e.refusal != nil
	default:
		return false
	}
}

// promise is called before a client is given e's id, to ask for its end: from then on
// that is kept, whatever it is. It returns the problem of one that has failed already.
func (e *execution) promise() *problem.Error {
	e.settling.Lock()
	defer e.settling.Unlock()
	if e.failed() {
		return e.refusal
	}
	e.answered = true
	return nil
}

// register makes e known to this process and, if it is to outlive its client, to
// others.
func (x *Executor) register(ctx context.Context, e *execution) error {
	if !e.registered {
		if err := x.running.add(e); err != nil {
			return err
		}
		e.registered = true
	}
	if !e.detached || e.leased {
		return nil
	}
	err := x.book.Begin(ctx, e.owner, e.id, !e.detached)
	e.leased = err == nil
	return err
}

// discard forgets an execution that was not started.
func (x *Executor) discard(e *execution) {
	e.work.Clear(e.ctx)
	if e.registered && e.detached { // also if it is not known whether the lease was written
		x.forget(e)
	}
	e.ending = &ending{problem: &problem.Error{Status: problem.StatusUnavailable, Text: "the run was not started", RetryAfter: time.Second}}
	e.end(e.ending)
	close(e.done)
	x.running.remove(e)
	e.cancel(nil)
	close(e.gone)
}

// start runs e. to hears of it while it goes on. An execution that somebody listens
// to, and which may thus be known by its id, is made known to other services too.
func (x *Executor) start(e *execution, to Listener) {
	e.started = true
	x.past.begin(e.owner, e.pastOf())
	_, silent := to.(Silence)
	var beats sync.WaitGroup
	stop := make(chan struct{})
	still := sync.OnceFunc(func() { close(stop); beats.Wait() })
	if e.detached || !silent {
		beats.Go(func() { x.hold(e, stop) })
	}
	go func() {
		defer close(e.gone)
		defer x.running.remove(e)
		end := x.perform(e, to)
		e.end(end)
		x.past.end(e, end, e.answer)
		if e.ending = x.conclude(e, end); e.detached && end.problem != nil && !e.answered {
			still() // nothing is written after it was forgotten
			x.forget(e)
		}
		close(e.done)
		e.cancel(nil)
		still()
		if !e.detached && !silent { // also if it is not known whether the lease was written
			x.forget(e)
		}
		x.keepResult(e)
	}()
}

// serviceEnding is why a run has no result when the service ends.
func serviceEnding(err error) *problem.Error {
	return &problem.Error{Status: problem.StatusUnavailable, Text: "the service is ending", Cause: err}
}

// end makes known how the run ended, before that is stored.
func (e *execution) end(end *ending) {
	e.settling.Lock()
	defer e.settling.Unlock()
	e.refusal = end.problem
	close(e.known)
}

// perform runs e, and makes its end of what came of it.
func (x *Executor) perform(e *execution, to Listener) (end *ending) {
	defer e.work.Clear(e.ctx)
	defer func() {
		if v := recover(); v != nil {
			end = &ending{problem: problem.Panicked(v)}
		}
	}()
	ctx, span := x.tracer.Start(e.ctx, "executor.Run", trace.WithAttributes(attribute.String(RunAttribute, e.id)))
	defer EndSpan(span)()
	result, err := x.attempt(ctx, e, to)
	switch {
	case err == nil:
	case errors.Is(context.Cause(e.ctx), errCancelled):
		sink := x.newSink(ctx, e.plan, Silence{})
		result = x.result(context.WithoutCancel(ctx), e.plan, &runner.Outcome{Status: runner.StatusCancelled}, sink)
	case errors.Is(context.Cause(e.ctx), ErrClientGone):
		return &ending{problem: ProblemOf(ErrClientGone)}
	case x.runs.Err() != nil:
		return &ending{problem: serviceEnding(err)}
	default:
		return &ending{problem: ProblemOf(err)}
	}
	raw, err := EncodeJSON(result)
	if err != nil {
		return &ending{problem: ProblemOf(err)}
	}
	e.answer = result
	return &ending{reply: raw}
}

// attempt takes the steps of a run: a place among its caller's, its inputs, its packages,
// the runner, and what is left. The end of ctx cancels the run, which still has a result,
// with what it had produced until then.
func (x *Executor) attempt(ctx context.Context, e *execution, to Listener) (*Result, error) {
	p := e.plan
	place, err := e.caller.BeginRun()
	if err != nil {
		return nil, err
	}
	defer func() { e.sent(place.End) }()
	if p.spec.Inputs, err = x.Gather(ctx, e.owner, p.inputs, p.spec.Limits.DataSize, e.work); err != nil {
		return nil, err
	}
	if len(p.spec.Notebook) < LargeProgram {
		e.work.Leave()
	}
	close(e.accepted)
	to.Accepted()
	packages, err := x.install(ctx, p, place, to)
	if err != nil {
		return nil, err
	}
	defer packages.release()
	if packages.failure != nil {
		return x.notInstalled(ctx, p, packages), nil
	}
	events := x.newSink(ctx, p, to)
	defer events.end()
	p.going.Store(events)
	asked := time.Now()
	out, err := x.runnerOf(p).Run(ctx, p.spec, events)
	place.Charge(cpuTime(out, err, time.Since(asked), p.spec.Limits))
	switch {
	case packages.hinder(err):
		return x.notInstalled(ctx, p, packages), nil
	case err != nil:
		return nil, ofInputs(err)
	}
	x.log.InfoContext(ctx, "run", "run", p.spec.ID, "owner", p.spec.Owner, "status", string(out.Status),
		"queue", out.Usage.Queue, "wall", out.Usage.Wall, "cpu", out.Usage.CPU)
	switch {
	case errors.Is(context.Cause(ctx), ErrClientGone):
		return nil, ErrClientGone // what nobody waits for is not stored
	case x.runs.Err() != nil && out.Status == runner.StatusCancelled && out.Notebook == nil && out.Usage.Wall == 0:
		return nil, errNotBegun // so that it can be repeated
	}
	result := x.result(context.WithoutCancel(ctx), p, out, events)
	result.Install = packages.entry
	return result, nil
}

// conclude stores how e ended, if that is kept. The cause of a failure is logged here,
// as several requests may be told of it, or none.
func (x *Executor) conclude(e *execution, end *ending) *ending {
	if !e.detached {
		return end
	}
	if p := end.problem; p != nil && p.Cause != nil {
		level := slog.LevelError
		if p.Status < problem.StatusFailed || p.Status == problem.StatusUnavailable {
			level = slog.LevelInfo
		}
		x.log.Log(e.ctx, level, "a run failed", "run", e.id, "owner", e.owner, "status", p.Status, "error", p.Cause)
		public := *p
		public.Cause = nil
		end = &ending{problem: &public}
	}
	if end.problem != nil && !e.answered { // who asked is told so; who asks again runs it again
		return end
	}
	// What failed does not compete with the run that its key was given to since.
	if errors.Is(context.Cause(e.ctx), errOvertaken) || end.problem == nil && x.book.Superseded(context.Background(), e.position) {
		x.log.WarnContext(e.ctx, "a run was taken over by another service; its result is not kept", "run", e.id)
		return &ending{problem: overtaken()}
	}
	var err error
	for try := range resultTries {
		if try > 0 {
			select {
			case <-time.After(resultPause):
			case <-x.runs.Done(): // no time is left for pauses
			}
		}
		if err = x.book.Conclude(below(context.Background(), e.ctx), e.owner, e.id, end.reply, end.problem); err == nil {
			return end
		}
	}
	x.log.ErrorContext(e.ctx, "the result of a run is not kept", "run", e.id, "error", err)
	return end
}

// forget removes the records of an execution whose end is not kept. What it cannot
// remove, the sweep does.
func (x *Executor) forget(e *execution) {
	if err := x.book.Forget(context.Background(), e.owner, e.id); err != nil {
		x.log.WarnContext(e.ctx, "a record of a run is left", "run", e.id, "error", err)
	}
}
