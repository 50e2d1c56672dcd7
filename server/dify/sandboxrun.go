package dify

import (
	"context"
	"errors"
	"net/http"
	"time"

	"notebox/executor"
	"notebox/executor/problem"
	"notebox/runner"
	"notebox/server/web"
)

// errTime is the cause of a run's end at program.Interrupt.
var errTime = errors.New("the time of a call of the Dify tool was over")

// cancelLag is how much later a run is cancelled than its own time is over: the sandbox,
// which counts that time, ends it with all that it has, its files included. What waited for
// its turn is cut short by the cancelling.
const cancelLag = 500 * time.Millisecond

// program is what is to be run in a sandbox.
type program struct {
	Source string
	Field  string // of the request that Source is from, for errors in it
	// Language is one that the sandbox runs; "" is its kernel's. Bash is a command beside
	// the kernel, if that is not bash itself.
	Language string
	// Interrupt is when the run is interrupted; what waits for its turn then is not
	// run. Answer is when run returns at the latest, with what is known.
	Interrupt, Answer time.Time
}

// run runs a program. The run is one like any other, except that its client is
// answered at p.Answer though it may not have ended.
func (b *sandbox) run(ctx context.Context, p program) (Reply, error) {
	c := b.of.c
	run, err := b.of.server.Begin(c, b.order(p))
	if err != nil {
		return Reply{}, ofRun(p.Field, noSandbox(err))
	}
	defer run.Leave()
	late := time.AfterFunc(time.Until(p.Interrupt)+cancelLag, func() { run.Cancel(errTime) })
	defer late.Stop()
	defer context.AfterFunc(c.Request().Context(), func() { run.Cancel(executor.ErrClientGone) })()
	run.Start(executor.Silence{})
	answer := time.NewTimer(time.Until(p.Answer))
	defer answer.Stop()
	select {
	case <-run.Done():
		return b.ended(ctx, run, p)
	case <-answer.C:
		return Reply{Output: run.SoFar(), end: EndOpen}, nil
	}
}

// order is a program as the executor takes it.
func (b *sandbox) order(p program) *executor.Order {
	o := &executor.Order{
		Code: &p.Source, Session: new(b.session.Info().ID), LinkImages: true, Until: p.Interrupt, NoPackages: true,
		Base: b.of.server.Base(b.of.c.Request()), Sent: web.OutgoingOf(b.of.c).WhenSent,
	}
	if executor.IsBash(p.Language) { // else it is the kernel's, as runs has told
		o.Language = new(executor.Bash)
	}
	return o
}

// ended is the result of a run that is done.
func (b *sandbox) ended(ctx context.Context, run *executor.Run, p program) (Reply, error) {
	a := run.Result()
	if a == nil {
		_, err := run.Wait(context.WithoutCancel(ctx))
		var why *problem.Error
		switch {
		case !errors.As(err, &why):
		case why.Status == http.StatusServiceUnavailable && !time.Now().Before(p.Interrupt):
			return Reply{end: EndNotBegun}, nil
		case why.Status == http.StatusGone: // while the run waited
			if _, err := b.of.find(b.session.Info().ID); err != nil {
				return Reply{}, err
			}
		}
		return Reply{}, err
	}
	r := Reply{Output: a.Text, ExitCode: a.ExitCode}
	cancelled := a.Status == runner.StatusCancelled && errors.Is(run.Cause(), errTime)
	switch {
	case cancelled && a.Usage.WallMS == 0 && len(a.Outputs) == 0:
		r.end = EndNotBegun
	case cancelled:
		r.end = EndInterrupted
	case a.Status == runner.StatusTimeout:
		r.end = EndInterrupted
		if most := b.of.server.MaxTimeout; run.Limits.Timeout == most {
			r.limit = most
		}
	}
	if a.Status != runner.StatusOK {
		r.Error = &Error{Status: string(a.Status), Hint: a.Hint}
	}
	if a.Error != nil {
		r.Error = &Error{Status: string(a.Status), Name: a.Error.Name, Message: a.Error.Message, Hint: a.Hint}
	}
	for _, i := range a.Images {
		r.Images = append(r.Images, Image{Name: i.Name, MediaType: i.MediaType, Bytes: i.Bytes, Width: i.Width, Height: i.Height, URL: i.URL})
	}
	for _, f := range a.Files {
		r.Files = append(r.Files, File{Path: f.Path, Name: f.Name, MediaType: f.MediaType, Bytes: f.Bytes, URL: f.URL})
	}
	return r, nil
}

// ofRun renames the field of an executor's error to the one that the Dify caller sent. field
// is the one that has the program.
func ofRun(field string, err error) error {
	var p *problem.Error
	if !errors.As(err, &p) {
		return err
	}
	told := *p
	switch told.Field {
	case "code", "cells":
		told.Field = field
	case "session":
		told.Field = "sandbox_id"
	}
	return &told
}
