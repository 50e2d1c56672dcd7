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
	running, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(s.runs, cancel)()
	p, err := s.takeIn(running, c, work)
	if err != nil {
		return err
	}
	answer, err := s.run(running, p, silence{})
	if err != nil || r.Context().Err() != nil {
		return s.whyNot(r.Context(), err)
	}
	c.Response().Header().Set("Cache-Control", "no-store")
	return writeJSON(c, http.StatusOK, echo.MIMEApplicationJSON, answer)
}

// takeIn reads a request, checks it and fetches what it names. Only so many that
// need the disk do that at one time, see Config.MaxIntake: clients that send
// little, however slowly, keep nobody out. The runner admits only what is whole.
func (s *Server) takeIn(running context.Context, c echo.Context, work *workspace) (*plan, error) {
	held := false
	defer func() {
		if held {
			<-s.intake
		}
	}()
	work.reserve = func() error {
		select {
		case s.intake <- struct{}{}:
			held = true
			return nil
		default:
			return &problem{status: http.StatusServiceUnavailable, text: "too many large requests are being read at this time", retryAfter: intakeRetry}
		}
	}
	r := c.Request()
	req, err := s.readRequest(r, work)
	if err != nil {
		return nil, err
	}
	p, err := s.makePlan(req)
	if err != nil {
		return nil, err
	}
	p.started, p.base = s.now(), s.base(r)
	if p.spec.ID, err = runID(p.started); err != nil {
		return nil, err
	}
	p.spec.Owner = ownerOf(c)
	c.Set(runKey, p.spec.ID)
	budget := min(s.maxUpload, s.limits.DataSize-p.inputs.size())
	if err := s.fetcher.fetchAll(running, p.inputs, budget, work); err != nil {
		return nil, s.whyNot(r.Context(), err)
	}
	p.spec.Inputs = p.inputs.spec()
	return p, nil
}

// run runs the plan and stores what it left. The end of ctx cancels the run, which
// still has a reply, with what it had produced until then.
func (s *Server) run(ctx context.Context, p *plan, to listener) (*reply, error) {
	events := &sink{
		keeper:  &keeper{store: s.store, log: s.log, started: p.started, run: p.spec.ID, base: p.base},
		partial: newPartial(p.spec),
		to:      to,
	}
	out, err := s.runner.Run(ctx, p.spec, events)
	if err != nil {
		return nil, err
	}
	s.log.InfoContext(ctx, "run", "run", p.spec.ID, "owner", p.spec.Owner, "status", string(out.Status),
		"queue", out.Usage.Queue, "wall", out.Usage.Wall, "cpu", out.Usage.CPU)
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
