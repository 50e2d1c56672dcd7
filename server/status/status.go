// Package status tells callers what a service does now: how many runs go on and wait, what
// sandboxes there are, and the caller's own last runs. Of others there are numbers alone.
//
// GET /v1/status is that as JSON, and GET /status a page that asks for it every two seconds
// while somebody looks. What it costs is bounded: a hundred runs of an owner are remembered, in
// memory, and none of it asks a store or an engine.
package status

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"notebox/executor"
	"notebox/runner/pool"
	"notebox/server/web"
)

// Sources are what is told of. Each may be nil.
type Sources struct {
	Pool func() pool.Stats
	Runs func() (running, waiting int) // of all callers
}

// Status is the answer.
type Status struct {
	Running *int               `json:"running"` // null: it is not known
	Waiting *int               `json:"waiting"`
	Pool    *pool.Stats        `json:"pool"`
	Runs    []executor.PastRun `json:"runs"` // the caller's own, the newest first
}

// Routes are the calls. page answers GET /status.
func Routes(kit *web.Kit, from Sources, page echo.HandlerFunc) []web.Route {
	return []web.Route{
		web.On(http.MethodGet, "/v1/status", func(c echo.Context) error {
			return web.Fresh(c, http.StatusOK, statusOf(from, kit.Executor.Runs(web.Owner(c))))
		}),
		web.On(http.MethodGet, "/status", page).WithoutKey(),
	}
}

func statusOf(from Sources, runs []executor.PastRun) Status {
	s := Status{Runs: append([]executor.PastRun{}, runs...)}
	if from.Runs != nil {
		running, waiting := from.Runs()
		s.Running, s.Waiting = &running, &waiting
	}
	if from.Pool != nil {
		s.Pool = new(from.Pool())
	}
	return s
}
