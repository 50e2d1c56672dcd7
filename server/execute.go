package server

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/oklog/ulid/v2"

	"notebox/runner"
)

// runID returns a new id: sortable by time, with 80 random bits.
func runID(now time.Time) (string, error) {
	id, err := ulid.New(ulid.Timestamp(now), rand.Reader)
	if err != nil {
		return "", fmt.Errorf("run id: %w", err)
	}
	return "run_" + id.String(), nil
}

// execute answers POST /v1/execute. A client that leaves cancels its run, unless
// that is asynchronous or has an Idempotency-Key.
func (s *Server) execute(c echo.Context) error {
	w, err := wishesOf(c.Request().Header)
	if err != nil {
		return err
	}
	if w.key == "" { // with a key it may be a request for a reply that is there
		if err := callerOf(c).MayBeginRun(); err != nil {
			return err // before its body is read
		}
	}
	t, err := s.begin(c, w, s.readRequest)
	if err != nil {
		return err
	}
	defer t.leave()
	c.Set(runKey, t.id)
	switch {
	case w.async:
		return s.answerAccepted(c, t, w)
	case wantsEvents(c.Request().Header):
		return s.answerEvents(c, t)
	}
	t.start(silence{})
	end, err := t.wait(c.Request().Context())
	if err != nil || c.Request().Context().Err() != nil {
		return s.whyNot(c.Request().Context(), err)
	}
	if t.own != nil || end.reply == nil { // what is in the store goes to the client as it is read
		return s.answerEnding(c, end)
	}
	return s.answerJoined(c.Request().Context(), t, int64(len(end.reply)), func() error { return s.answerEnding(c, end) })
}

// answerJoined calls answer, which sends a reply of so many bytes that others have too. Any
// number of requests may wait for one run: when it ends they are answered in turn, and one
// is refused if its caller leaves too much unread by then.
func (s *Server) answerJoined(ctx context.Context, t *ticket, size int64, answer func() error) error {
	return s.inTurn(ctx, t.owner, size, func() error {
		if err := s.unread.mayBegin(t.owner); err != nil {
			return err
		}
		return answer()
	})
}

// reader decodes the body of a request for a run.
type reader func(*http.Request, *workspace) (*request, error)

// begin takes a request in, and finds the execution that its Idempotency-Key stands
// for. Where it returns a ticket, leave must be called.
func (s *Server) begin(c echo.Context, w wishes, read reader) (*ticket, error) {
	e, err := s.takeIn(c, w, read)
	if err != nil {
		return nil, err
	}
	t := &ticket{server: s, id: e.id, owner: e.owner, limits: e.plan.spec.Limits, own: e}
	begun := false
	defer func() {
		if !begun { // by an error, or by a panic
			t.leave()
		}
	}()
	if w.key != "" {
		t.id, err = s.claimOrJoin(c.Request().Context(), e, w.key)
	} else {
		err = s.register(c.Request().Context(), e)
	}
	if err != nil {
		return nil, err
	}
	if lost := e.plan.session.whyLost(); lost != nil && t.id == e.id {
		return nil, lost // no reply that is there stands for the request
	}
	if t.id != e.id {
		t.leave()
		t.own = nil
		t.joined = s.running.find(t.owner, t.id)
	}
	begun = true
	return t, nil
}

// takeIn reads a request and checks it. Only so many that need the disk do that at
// one time, until what they name is fetched, see Config.MaxIntake: clients that send
// little, however slowly, keep nobody out. The runner admits only what is whole.
func (s *Server) takeIn(c echo.Context, w wishes, read reader) (*execution, error) {
	e := s.newExecution(callerOf(c), w.async || w.key != "")
	e.ctx = below(e.ctx, c.Request().Context())
	if !e.detached {
		e.answering = outgoingOf(c)
	}
	taken := false
	defer func() {
		if !taken { // by an error, or by a panic
			s.discard(e)
		}
	}()
	r := c.Request()
	req, err := read(r, e.work)
	if err != nil {
		return nil, err
	}
	p, err := s.makePlan(r.Context(), req, e.caller)
	if err != nil {
		return nil, err
	}
	if lost := p.session.whyLost(); lost != nil && w.key == "" {
		return nil, lost
	}
	if w.key != "" {
		err = s.inTurn(r.Context(), e.owner, int64(len(req.Notebook)), func() error {
			e.fingerprint, err = fingerprint(req, p)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	p.started, p.base = s.now(), s.base(r)
	if p.spec.ID, err = runID(p.started); err != nil {
		return nil, err
	}
	p.spec.Owner = e.owner
	e.id, e.plan = p.spec.ID, p
	c.Set(runKey, e.id)
	if p.session != nil {
		c.Set(sessionKey, p.session.id)
	}
	taken = true
	return e, nil
}

// run runs the plan and stores what it left. The end of ctx cancels the run, which
// still has a reply, with what it had produced until then.
func (s *Server) run(ctx context.Context, p *plan, to listener) (*reply, error) {
	events := s.newSink(ctx, p, to)
	defer events.end()
	asked := time.Now()
	p.going.Store(events)
	out, err := s.runnerOf(p).Run(ctx, p.spec, events)
	p.place.Charge(cpuTime(out, err, time.Since(asked), p.spec.Limits))
	if err != nil {
		return nil, ofInputs(err)
	}
	s.log.InfoContext(ctx, "run", "run", p.spec.ID, "owner", p.spec.Owner, "status", string(out.Status),
		"queue", out.Usage.Queue, "wall", out.Usage.Wall, "cpu", out.Usage.CPU)
	switch {
	case errors.Is(context.Cause(ctx), errClientGone):
		return nil, errClientGone // what nobody waits for is not stored
	case s.runs.Err() != nil && out.Status == runner.StatusCancelled && out.Notebook == nil && out.Usage.Wall == 0:
		return nil, errNotBegun // so that it can be repeated
	}
	return s.reply(context.WithoutCancel(ctx), p, out, events), nil
}

// whyNot is the error of a run that has no outcome.
func (s *Server) whyNot(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case s.runs.Err() != nil:
		return &problem{status: http.StatusServiceUnavailable, text: "the service is ending", cause: err}
	}
	return err
}
