package server

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/labstack/echo/v4"

	"notebox/access"
	"notebox/executor/problem"
	"notebox/runner"
	"notebox/runner/pool"
	"notebox/server/web"
	"notebox/storage"
)

const (
	// readyFor is how long an answer of /readyz is given again: probes come every
	// few seconds, and nobody can make the daemon work by asking.
	readyFor = 2 * time.Second
	// readyTime bounds one check; probes give up after a few seconds.
	readyTime = 5 * time.Second
)

// readiness asks whether code could be run now, not more often than every
// readyFor, and one at a time.
type readiness struct {
	runner func(context.Context) error // may be nil
	proven func() bool                 // a run has just shown what runner and prober would say
	starts func() error                // why new sandboxes keep failing to start; may be nil
	prober *prober                     // may be nil
	store  func(context.Context) error
	disk   func(context.Context) error // for requests under way
	log    *slog.Logger
	now    func() time.Time

	mu      sync.Mutex
	checked time.Time
	problem *problem.Error // of the last check; nil if all was well
}

// check returns nil if code could be run.
func (r *readiness) check(ctx context.Context) *problem.Error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.checked.IsZero() && r.now().Sub(r.checked).Abs() < readyFor {
		return r.problem
	}
	// The answer is for others too, so it does not end with this request.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readyTime)
	defer cancel()
	before := r.problem
	r.problem = r.ask(ctx)
	r.checked = r.now()
	switch {
	case r.problem != nil && before == nil:
		r.log.WarnContext(ctx, "not ready", "reason", r.problem.Text, "error", r.problem.Cause)
	case r.problem == nil && before != nil:
		r.log.InfoContext(ctx, "ready again")
	}
	return r.problem
}

func (r *readiness) ask(ctx context.Context) *problem.Error {
	red := func(text string, cause error) *problem.Error {
		return &problem.Error{Status: http.StatusServiceUnavailable, Text: text, RetryAfter: readyFor, Cause: cause}
	}
	stored := make(chan error, 1)
	go func() { stored <- r.store(ctx) }()
	// Before what may take all of the time and be well nevertheless.
	if err := r.disk(ctx); err != nil {
		return red("requests with files cannot be taken in", err)
	}
	if err := r.runs(ctx); err != nil {
		text := "sandboxes cannot be started"
		if known := (*runner.Error)(nil); errors.As(err, &known) {
			text = known.Message
		}
		return red(text, err)
	}
	if err := <-stored; err != nil {
		text := "files cannot be stored"
		if storage.Temporary(err) {
			text += ": the store does not answer"
		}
		return red(text, err)
	}
	return nil
}

// runs returns why no run would do well, as far as that can be known.
func (r *readiness) runs(ctx context.Context) error {
	starts := func() error {
		if r.starts == nil {
			return nil
		}
		return r.starts()
	}
	proven := func() bool {
		if !r.proven() || starts() != nil { // such as a run in a session, whose sandbox is old
			return false
		}
		if r.prober != nil {
			r.prober.forget()
		}
		return true
	}
	if proven() {
		return nil
	}
	if r.runner != nil {
		if err := r.runner(ctx); err != nil {
			return err
		}
	}
	if r.prober == nil {
		return starts()
	}
	err := r.prober.check(ctx)  // also if starts fail: its own may be the good one
	if err != nil && proven() { // by a run that has ended meanwhile
		return nil
	}
	return cmp.Or(err, starts())
}

// healthz answers GET /healthz: the process serves.
func (s *Server) healthz(c echo.Context) error {
	return web.WriteJSON(c, http.StatusOK, echo.MIMEApplicationJSON, map[string]string{"status": "ok"})
}

type readyReply struct {
	Status    string      `json:"status"`
	Pool      *pool.Stats `json:"pool,omitempty"`
	Isolation *Isolation  `json:"isolation,omitempty"`
	// Limits of keys hold by parts, and the service is ready, if their store is down.
	Limits *access.Sharing `json:"limits,omitempty"`
}

// readyz answers GET /readyz: code could be run now. It asks for no place to run,
// so that a service that is full is ready all the same.
func (s *Server) readyz(c echo.Context) error {
	if p := s.ready.check(c.Request().Context()); p != nil {
		// Its cause is logged once, not for every probe.
		return &problem.Error{Status: p.Status, Text: p.Text, RetryAfter: p.RetryAfter}
	}
	answer := readyReply{Status: "ready"}
	if _, mayCall := s.Keys.Find(web.PresentedKey(c.Request().Header)); mayCall {
		if s.pool != nil {
			answer.Pool = new(s.pool())
		}
		if s.isolation.Kind != "" {
			answer.Isolation = &s.isolation
		}
		if limits, shared := s.Keys.Sharing(); shared {
			answer.Limits = &limits
		}
	}
	return web.WriteJSON(c, http.StatusOK, echo.MIMEApplicationJSON, answer)
}
