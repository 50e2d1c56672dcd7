package executor

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"github.com/oklog/ulid/v2"

	"notebox/access"
	"notebox/executor/intake"
	"notebox/executor/problem"
)

// Order is what a caller wants to be run, in no protocol's words. A nil field was not
// given.
type Order struct {
	// One of these is the program.
	Code       *string
	Cells      []string
	Notebook   []byte  // nbformat 4 or 3, as JSON
	Entrypoint *string // a file of Inputs, or of the session

	Language     *string // or an alias of it; nil: what the program is, or else the default
	MediaType    string  // of a program that was sent by itself; else ""
	Inputs       Inputs
	Env          map[string]string
	Dependencies []string
	Network      *bool
	Timeout      *float64 // seconds
	Session      *string  // that it runs in; nil: in a sandbox of its own
	StopOnError  *bool    // nil: true
	LinkImages   bool     // the result has no bytes of images

	// Until is when the run is cut off, its wait for a place included. The zero value:
	// Timeout alone bounds it.
	Until time.Time
	// NoPackages is of a protocol that has no word for packages: no hint speaks of them.
	NoPackages bool

	Base     string // what links start with
	Key      string // stands for the run, see join.go; "" for none
	Detached bool   // it goes on without its caller, and its end is kept; so does one with a Key

	// Work has the files of Inputs; the run removes it. nil: there are none.
	Work *intake.Workspace
	// Sent calls what it is given when the caller has its answer: until then it keeps its
	// place among the caller's runs. nil: at once.
	Sent func(func())
}

// NewID returns a new id, such as run_01KAJ…: sortable by time, with 80 random bits.
func NewID(begin string, now time.Time) (string, error) {
	id, err := ulid.New(ulid.Timestamp(now), rand.Reader)
	if err != nil {
		return "", fmt.Errorf("run id: %w", err)
	}
	return begin + id.String(), nil
}

// Begin takes an order in: it returns the run that is to be started, or the one that the
// order's Key stands for already. If it returns one, Leave must be called. What is wrong
// with an order is a *problem.Error.
func (x *Executor) Begin(ctx context.Context, caller *access.Caller, o *Order) (run *Run, err error) {
	e := x.newExecution(caller, o)
	e.ctx = below(e.ctx, ctx)
	ctx, span := x.tracer.Start(ctx, "executor.Begin")
	defer EndSpan(span)()
	r := &Run{executor: x, owner: e.owner, own: e}
	begun := false
	defer func() {
		if v := recover(); v != nil { // not all protocols have a guard of their own
			err = problem.Panicked(v)
		}
		if !begun {
			r.Leave()
		}
	}()
	p, err := x.makePlan(ctx, o, caller)
	if err != nil {
		return nil, err
	}
	if len(p.spec.Notebook) >= LargeProgram { // until the run ends, whoever has left by then
		if err := e.work.Take(); err != nil {
			return nil, err
		}
	}
	e.id, e.plan = p.spec.ID, p
	r.ID, r.Limits = e.id, p.spec.Limits
	lost := p.session.whyLost()
	switch {
	case o.Key != "":
		r.ID, err = x.claimOrJoin(ctx, e, o)
	case lost == nil:
		err = x.register(ctx, e)
	}
	if err != nil {
		return nil, err
	}
	if lost != nil && r.ID == e.id {
		return nil, lost // no reply that is there stands for the request
	}
	if r.ID != e.id {
		r.Leave()
		r.own = nil
		r.joined = x.running.find(r.owner, r.ID)
	}
	begun = true
	return r, nil
}

// WhyNot is the error of a run that has no outcome.
func (x *Executor) WhyNot(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case x.runs.Err() != nil:
		return serviceEnding(err)
	}
	return err
}
