package server

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"notebox/executor"
	"notebox/executor/problem"
	"notebox/runner"
)

// Where sessions are.
const (
	sessionsPath = "/v1/sessions"
	sessionPath  = sessionsPath + "/:id"
)

const (
	// sessionOpenTime bounds the wait for a session to be open: a sandbox that starts
	// on a busy host, a kernel in it, and its files.
	sessionOpenTime = 2 * time.Minute
	// sessionCallTime bounds every other call of a session but runs and the contents
	// of files, whose time is in their bytes: a restart waits for processes to end and
	// for a kernel.
	sessionCallTime = time.Minute
)

// sessions are what callers may open.
type sessions struct {
	runner.Sessions
	ttl, maxTTL, idle time.Duration
}

// sessionKey is where a request's session id is kept in its echo.Context.
const sessionKey = "session"

// sessionEntry is a session as its owner sees it.
type sessionEntry struct {
	ID             string     `json:"id"`
	Language       string     `json:"language"`
	Environment    string     `json:"environment"`
	CreatedAt      time.Time  `json:"created_at"`
	ExpiresAt      time.Time  `json:"expires_at"`
	IdleSeconds    float64    `json:"idle_seconds"`
	IdleExpiresAt  *time.Time `json:"idle_expires_at"` // null while something runs or waits
	Status         string     `json:"status"`          // idle, running
	Waiting        int        `json:"waiting"`
	KernelRestarts int        `json:"kernel_restarts"`
	Network        bool       `json:"network"`
}

func (s *Server) aboutSession(info runner.SessionInfo) sessionEntry {
	entry := sessionEntry{
		ID: info.ID, Environment: info.Environment, CreatedAt: executor.Stamp(info.Created), ExpiresAt: executor.Stamp(info.Expires),
		IdleSeconds: info.Idle.Seconds(), Status: "idle", Waiting: info.Waiting,
		KernelRestarts: info.KernelRestarts, Network: info.Network,
	}
	if env := s.executor.ByName(info.Environment); env != nil {
		entry.Language = env.Language
	}
	if info.Running {
		entry.Status = "running"
	} else if info.Waiting == 0 {
		idle := info.LastUsed.Add(info.Idle)
		if idle.After(info.Expires) {
			idle = info.Expires
		}
		entry.IdleExpiresAt = new(executor.Stamp(idle))
	}
	return entry
}

// errNoSessions is the answer of a service that offers none.
func errNoSessions() *problem.Error {
	return problem.Forbidden("this service's operator allows no sessions")
}

// findSession returns the session of a request's path.
func (s *Server) findSession(c echo.Context) (runner.Session, error) {
	if s.sessions == nil {
		return nil, errNoSessions()
	}
	id := c.Param("id")
	if !executor.SessionIDs.MatchString(id) {
		return nil, problem.NotFound()
	}
	c.Set(sessionKey, id)
	return s.sessions.Find(ownerOf(c), id)
}

// withSession calls do with the session of a request's path, for a limited time.
func (s *Server) withSession(c echo.Context, do func(context.Context, runner.Session) error) error {
	session, err := s.findSession(c)
	if err != nil {
		return err
	}
	return inTime(c.Request().Context(), sessionCallTime, func(ctx context.Context) error { return do(ctx, session) })
}

// inTime calls do for a limited time, whose end is a 504.
func inTime(ctx context.Context, limit time.Duration, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := do(ctx)
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) && errors.Is(err, context.DeadlineExceeded) {
		return &problem.Error{Status: http.StatusGatewayTimeout, Text: "the sandbox did not answer in time", Cause: err}
	}
	return err
}

// listSessions answers GET /v1/sessions.
func (s *Server) listSessions(c echo.Context) error {
	if s.sessions == nil {
		return errNoSessions()
	}
	answer := struct {
		Sessions []sessionEntry `json:"sessions"`
	}{[]sessionEntry{}}
	for _, info := range s.sessions.List(ownerOf(c)) {
		answer.Sessions = append(answer.Sessions, s.aboutSession(info))
	}
	return fresh(c, http.StatusOK, answer)
}

// getSession answers GET /v1/sessions/{id}.
func (s *Server) getSession(c echo.Context) error {
	session, err := s.findSession(c)
	if err != nil {
		return err
	}
	return fresh(c, http.StatusOK, s.aboutSession(session.Info()))
}

// closeSession answers DELETE /v1/sessions/{id}. A client that leaves does not stop it.
func (s *Server) closeSession(c echo.Context) error {
	c.SetRequest(c.Request().WithContext(context.WithoutCancel(c.Request().Context())))
	return s.withSession(c, func(ctx context.Context, session runner.Session) error {
		if err := session.Close(ctx); err != nil {
			return err
		}
		s.log.LogAttrs(ctx, slog.LevelInfo, "session closed", who(c)...)
		return c.NoContent(http.StatusNoContent)
	})
}

// interruptSession answers POST /v1/sessions/{id}/interrupt.
func (s *Server) interruptSession(c echo.Context) error {
	return s.withSession(c, func(ctx context.Context, session runner.Session) error {
		if err := session.Interrupt(ctx); err != nil {
			return err
		}
		return c.NoContent(http.StatusNoContent)
	})
}

// restartSession answers POST /v1/sessions/{id}/restart. A client that leaves does not
// stop it halfway.
func (s *Server) restartSession(c echo.Context) error {
	c.SetRequest(c.Request().WithContext(context.WithoutCancel(c.Request().Context())))
	return s.withSession(c, func(ctx context.Context, session runner.Session) error {
		if err := session.Restart(ctx); err != nil {
			return err
		}
		return fresh(c, http.StatusOK, s.aboutSession(session.Info()))
	})
}

// fresh answers what may be another thing the next time.
func fresh(c echo.Context, status int, v any) error {
	c.Response().Header().Set(echo.HeaderCacheControl, "no-store")
	return writeJSON(c, status, echo.MIMEApplicationJSON, v)
}
