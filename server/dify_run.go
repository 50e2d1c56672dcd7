package server

import (
	"context"
	"errors"
	"net/http"
	"time"

	"notebox/notebook"
	"notebox/runner"
	"notebox/server/dify"
)

// errDifyTime is the cause of a run's end at dify.Program.Interrupt.
var errDifyTime = errors.New("the time of a call of the Dify tool was over")

// cancelLag is how much later a run is cancelled than its own time is over: the sandbox,
// which counts that time, ends it with all that it has, its files included. What waited for
// its turn is cut short by the cancelling.
const cancelLag = 500 * time.Millisecond

// Run implements dify.Sandbox. The run is an execution like any other, except that its
// client is answered at p.Answer though it may not have ended.
func (b *difySandbox) Run(ctx context.Context, p dify.Program) (*dify.Result, error) {
	s := b.of.server
	e, err := b.execution(p)
	if err != nil {
		return nil, err
	}
	t := &ticket{server: s, id: e.id, owner: e.owner, limits: e.plan.spec.Limits, own: e}
	defer t.leave()
	if err := s.register(ctx, e); err != nil {
		return nil, err
	}
	late := time.AfterFunc(time.Until(p.Interrupt)+cancelLag, func() { e.cancel(errDifyTime) })
	defer late.Stop()
	client := b.of.c.Request().Context()
	defer context.AfterFunc(client, func() { e.cancel(errClientGone) })()
	t.start(silence{})
	answer := time.NewTimer(time.Until(p.Answer))
	defer answer.Stop()
	select {
	case <-e.done:
		return b.ended(ctx, e, p)
	case <-answer.C:
		return &dify.Result{Text: s.textSoFar(e.plan), End: dify.EndOpen}, nil
	}
}

// execution makes one of a program, as takeIn does of a request.
func (b *difySandbox) execution(program dify.Program) (*execution, error) {
	s, c := b.of.server, b.of.c
	e := s.newExecution(b.of.caller, false)
	e.ctx, e.answering = below(e.ctx, c.Request().Context()), outgoingOf(c)
	p, err := b.plan(c.Request().Context(), program)
	if err == nil {
		p.started, p.base = s.now(), s.base(c.Request())
		p.spec.ID, err = runID(p.started)
	}
	if err != nil {
		s.discard(e)
		return nil, err
	}
	p.spec.Owner, p.spec.WaitUntil = e.owner, program.Interrupt
	p.spec.Limits.Timeout = min(s.maxTimeout, time.Until(program.Interrupt))
	e.id, e.plan = p.spec.ID, p
	c.Set(runKey, e.id)
	return e, nil
}

// ended is the result of an execution that is done.
func (b *difySandbox) ended(ctx context.Context, e *execution, p dify.Program) (*dify.Result, error) {
	if e.answer == nil {
		if e.ending.problem.status == http.StatusServiceUnavailable && !time.Now().Before(p.Interrupt) {
			return &dify.Result{End: dify.EndNotBegun}, nil
		}
		if e.ending.problem.status == http.StatusGone { // while the run waited
			if _, err := b.of.Find(ctx, e.plan.session.id); err != nil {
				return nil, err
			}
		}
		return nil, e.ending.problem
	}
	a := e.answer
	r := &dify.Result{Text: a.Text, ExitCode: a.ExitCode}
	cancelled := a.Status == runner.StatusCancelled && errors.Is(context.Cause(e.ctx), errDifyTime)
	switch {
	case cancelled && a.Usage.WallMS == 0 && len(a.Outputs) == 0:
		r.End = dify.EndNotBegun
	case cancelled:
		r.End = dify.EndInterrupted
	case a.Status == runner.StatusTimeout:
		r.End = dify.EndInterrupted
		if most := b.of.server.maxTimeout; e.plan.spec.Limits.Timeout == most {
			r.Limit = most
		}
	}
	if a.Status != runner.StatusOK {
		r.Error = &dify.Error{Status: string(a.Status), Hint: a.Hint}
	}
	if a.Error != nil {
		r.Error = &dify.Error{Status: string(a.Status), Name: a.Error.Name, Message: a.Error.Message, Hint: a.Hint}
	}
	for _, i := range a.Images {
		r.Images = append(r.Images, dify.Image{Name: i.Name, MediaType: i.MediaType, Bytes: i.Bytes, Width: i.Width, Height: i.Height, URL: i.URL})
	}
	for _, f := range a.Files {
		r.Files = append(r.Files, dify.File{Path: f.Path, Name: f.Name, MediaType: f.MediaType, Bytes: f.Bytes, URL: f.URL})
	}
	return r, nil
}

// textSoFar is what a run has put out that goes on. Its images have no URLs yet.
func (s *Server) textSoFar(p *plan) string {
	events := p.going.Load()
	if events == nil {
		return ""
	}
	executed := events.partial.executed()
	if executed == nil {
		return ""
	}
	result, err := notebook.NewDecoder(decodeLimits(p.spec)).Decode(executed)
	if err != nil {
		return ""
	}
	return notebook.Shorten(notebook.Text(result, nil), maxText-markRoom)
}

// plan is what a program is to be run as: a request of the native API with a session.
func (b *difySandbox) plan(ctx context.Context, program dify.Program) (*plan, error) {
	req := &request{Code: ptr(text(program.Source)), Session: ptr(text(b.session.Info().ID)), linkImages: true}
	if isBash(program.Language) { // else it is the kernel's, as Runs has told
		req.Language = ptr(text(bash))
	}
	p, err := b.of.server.makePlan(ctx, req, b.of.caller)
	if err == nil {
		p.installs = false // no call of the Dify tool names packages
		err = p.session.whyLost()
	}
	return p, ofDifyRun(program.Field, noSandbox(err))
}

// ofDifyRun has an error of a request of the native API name the field of the call that it
// is about. field is the one that has the program.
func ofDifyRun(field string, err error) error {
	var p *problem
	if !errors.As(err, &p) {
		return err
	}
	told := *p
	switch told.field {
	case "code", "cells":
		told.field = field
	case "session":
		told.field = "sandbox_id"
	}
	return &told
}
