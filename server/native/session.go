package native

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"notebox/executor"
	"notebox/server/web"
)

// Where sessions are.
const (
	sessionsPath = "/v1/sessions"
	sessionPath  = sessionsPath + "/:id"
)

// SessionEntry is a session as its owner sees it.
type SessionEntry struct {
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

func aboutSession(info executor.SessionInfo) SessionEntry {
	entry := SessionEntry{
		ID: info.ID, Language: info.Language, Environment: info.Environment, CreatedAt: executor.Stamp(info.Created), ExpiresAt: executor.Stamp(info.Expires),
		IdleSeconds: info.Idle.Seconds(), Status: "idle", Waiting: info.Waiting,
		KernelRestarts: info.KernelRestarts, Network: info.Network,
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

// findSession returns the session of a request's path.
func (s *handler) findSession(c echo.Context) (*executor.Session, error) {
	id := c.Param("id")
	if executor.IsSessionID(id) {
		web.NoteSession(c, id)
	}
	return s.Executor.FindSession(web.Caller(c), id)
}

// withSession calls do with the session of a request's path.
func (s *handler) withSession(c echo.Context, do func(context.Context, *executor.Session) error) error {
	session, err := s.findSession(c)
	if err != nil {
		return err
	}
	return do(c.Request().Context(), session)
}

// silentHeader says how many services did not tell their sessions.
const silentHeader = "Notebox-Silent-Services"

// listSessions answers GET /v1/sessions.
func (s *handler) listSessions(c echo.Context) error {
	all, err := s.Executor.SessionsOf(web.Caller(c))
	if err != nil {
		return err
	}
	answer := struct {
		Sessions []SessionEntry `json:"sessions"`
	}{[]SessionEntry{}}
	for _, info := range all {
		answer.Sessions = append(answer.Sessions, aboutSession(info))
	}
	if s.Peers != nil && !web.Passed(c) {
		answers, silent := s.Peers.Ask(c.Request(), sessionsPath)
		for _, raw := range answers {
			var theirs struct{ Sessions []SessionEntry }
			if err := json.Unmarshal(raw, &theirs); err != nil {
				silent++
			}
			answer.Sessions = append(answer.Sessions, theirs.Sessions...)
		}
		slices.SortStableFunc(answer.Sessions, func(a, b SessionEntry) int { return a.CreatedAt.Compare(b.CreatedAt) })
		if silent > 0 {
			c.Response().Header().Set(silentHeader, strconv.Itoa(silent))
		}
	}
	return web.Fresh(c, http.StatusOK, answer)
}

// getSession answers GET /v1/sessions/{id}.
func (s *handler) getSession(c echo.Context) error {
	return s.withSession(c, func(_ context.Context, session *executor.Session) error {
		return web.Fresh(c, http.StatusOK, aboutSession(session.Info()))
	})
}

// closeSession answers DELETE /v1/sessions/{id}.
func (s *handler) closeSession(c echo.Context) error {
	return s.withSession(c, func(ctx context.Context, session *executor.Session) error {
		return done(c, session.Close(ctx))
	})
}

// interruptSession answers POST /v1/sessions/{id}/interrupt.
func (s *handler) interruptSession(c echo.Context) error {
	return s.withSession(c, func(ctx context.Context, session *executor.Session) error {
		return done(c, session.Interrupt(ctx))
	})
}

// restartSession answers POST /v1/sessions/{id}/restart.
func (s *handler) restartSession(c echo.Context) error {
	return s.withSession(c, func(ctx context.Context, session *executor.Session) error {
		if err := session.Restart(ctx); err != nil {
			return err
		}
		return web.Fresh(c, http.StatusOK, aboutSession(session.Info()))
	})
}

// done answers what has nothing to say but that it was done.
func done(c echo.Context, err error) error {
	if err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}
