package server

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"notebox/executor/problem"
	"notebox/server/web"

	"github.com/labstack/echo/v4"
)

// logRequests writes one line for each request: the route and not the path,
// which may name files and holds signatures.
func (s *Server) logRequests(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		start := time.Now()
		if err := next(c); err != nil {
			c.Error(err)
		}
		took := time.Since(start)
		s.observer.Answered(methodOf(c.Request().Method), cmp.Or(c.Path(), noRoute), c.Response().Status, took)
		level := slog.LevelInfo
		switch c.Path() {
		case "/healthz", "/readyz", "/metrics":
			level = slog.LevelDebug
		}
		s.Log.LogAttrs(c.Request().Context(), level, "request", append(web.Who(c),
			slog.String("method", methodOf(c.Request().Method)),
			slog.String("route", cmp.Or(c.Path(), noRoute)),
			slog.Int("status", c.Response().Status),
			slog.Int64("bytes", c.Response().Size),
			slog.Duration("took", took),
		)...)
		return nil
	}
}

// logProblem logs what the caller is not told: the cause of a failure of ours.
func (s *Server) logProblem(c echo.Context, p *problem.Error) {
	if p.Cause == nil {
		return
	}
	s.Log.LogAttrs(context.WithoutCancel(c.Request().Context()), web.LevelOf(p), "request failed", append(web.Who(c),
		slog.Int("status", int(p.Status)),
		slog.String("error", p.Cause.Error()),
	)...)
}
