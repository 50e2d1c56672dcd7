package server

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/oklog/ulid/v2"
)

// runID returns a new id: sortable by time, with 80 random bits.
func runID(now time.Time) (string, error) {
	id, err := ulid.New(ulid.Timestamp(now), rand.Reader)
	if err != nil {
		return "", fmt.Errorf("run id: %w", err)
	}
	return "run_" + id.String(), nil
}

// execute answers POST /v1/execute. A client that leaves cancels its run, with
// the request's context.
func (s *Server) execute(c echo.Context) error {
	r := c.Request()
	work := &workspace{parent: s.tempDir}
	defer func() {
		if err := work.remove(); err != nil {
			s.log.ErrorContext(r.Context(), "a request's temporary folder is left", "error", err)
		}
	}()
	req, err := s.readRequest(r, work)
	if err != nil {
		return err
	}
	p, err := s.makePlan(req)
	if err != nil {
		return err
	}
	p.started, p.base = s.now(), s.base(r)
	if p.spec.ID, err = runID(p.started); err != nil {
		return err
	}
	p.spec.Owner = ownerOf(c)
	c.Set(runKey, p.spec.ID)
	answer, err := s.run(r.Context(), p, work)
	if err != nil {
		return err
	}
	c.Response().Header().Set("Cache-Control", "no-store")
	return writeJSON(c, http.StatusOK, echo.MIMEApplicationJSON, answer)
}

// run fetches what is missing, runs the plan and stores what it left. ctx is the
// caller's: where it ends, nobody is there to be answered. CancelRuns ends the
// run alone.
func (s *Server) run(ctx context.Context, p *plan, work *workspace) (*reply, error) {
	running, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.runs, cancel)()

	budget := min(s.maxUpload, s.limits.DataSize-p.inputs.size())
	if err := s.fetcher.fetchAll(running, p.inputs, budget, work); err != nil {
		return nil, s.whyNot(ctx, err)
	}
	p.spec.Inputs = p.inputs.spec()
	events := &sink{
		keeper:  &keeper{store: s.store, log: s.log, started: p.started, run: p.spec.ID, base: p.base},
		partial: newPartial(p.spec),
	}
	out, err := s.runner.Run(running, p.spec, events)
	if err != nil || ctx.Err() != nil {
		return nil, s.whyNot(ctx, err)
	}
	s.log.InfoContext(ctx, "run", "run", p.spec.ID, "owner", p.spec.Owner, "status", string(out.Status),
		"queue", out.Usage.Queue, "wall", out.Usage.Wall, "cpu", out.Usage.CPU)
	return s.reply(ctx, p, out, events), nil
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
