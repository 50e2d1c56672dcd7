package server

import (
	"context"
	"errors"
	"net/http"

	"github.com/labstack/echo/v4"
	"go.opentelemetry.io/otel/propagation"

	"notebox/executor/problem"
	"notebox/runner"
	"notebox/server/body"
	"notebox/server/mcp"
	"notebox/server/peers"
	"notebox/server/web"
)

// arrive marks requests that a peer has passed on, which it does before any other rule
// refuses them: the peer has asked the rules about browsers already.
func (s *Server) arrive(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		switch passed, err := s.Peers.Arrived(c.Request()); {
		case err != nil:
			s.Log.WarnContext(c.Request().Context(), "a request says that a peer has passed it on, which is not so: its secret or its clock is another, or somebody has made it up")
			return problem.Forbidden("%v", err)
		case passed:
			web.SetPassed(c)
		}
		return next(c)
	}
}

// pass passes a request on whose session a peer has. Its handler has answered nothing then,
// and what it has read of the body was kept, if the session is named there.
func (s *Server) pass(r web.Route) echo.HandlerFunc {
	if s.Peers == nil {
		return r.Handler
	}
	return func(c echo.Context) error {
		asked := c.Request()
		kept := new(web.Kept)
		if r.Keep && !web.Passed(c) {
			kept = web.Keep(c, s.Intake.Aside())
			defer kept.Close()
		}
		err := r.Handler(c)
		c.SetRequest(asked)
		var there *runner.ElsewhereError
		if !errors.As(err, &there) || c.Response().Committed || web.Passed(c) { // one hop, and no circle
			return err
		}
		web.NotePeer(c, there.Service)
		return s.passTo(c, kept.Again(asked), there.Service)
	}
}

func (s *Server) passTo(c echo.Context, r *http.Request, address string) (err error) {
	defer func() {
		if v := recover(); v != nil {
			if v != http.ErrAbortHandler || r.Context().Err() == nil { // the peer broke off: so must the answer
				panic(v)
			}
			err = &web.UnsentError{Err: r.Context().Err()}
		}
	}()
	r = r.Clone(r.Context())
	callersTrace.Inject(r.Context(), propagation.HeaderCarrier(r.Header))
	if c.Path() == mcp.Path && r.Method == http.MethodGet { // a stream that only its client or a service ends
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		defer context.AfterFunc(s.mcp.Handler.Streams(), cancel)()
		r = r.WithContext(ctx)
	}
	web.Direct(c)
	err = s.Peers.Pass(c.Response(), r, address)
	switch {
	case err == nil:
		return nil
	case r.Context().Err() != nil:
		return r.Context().Err()
	case errors.Is(err, peers.ErrSilent):
		return &problem.Error{Status: problem.StatusUnavailable, Text: peers.SilentText, RetryAfter: peers.SilentRetry, Cause: err}
	}
	return body.Problem(err, body.NotWhole)
}
