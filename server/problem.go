package server

import (
	"net/http"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"notebox/server/web"
)

// answerError replaces echo's default error handler.
func (s *Server) answerError(err error, c echo.Context) {
	p := web.Problem(err)
	s.countRefusal(p)
	s.logProblem(c, p)
	if c.Response().Committed {
		return
	}
	web.Drain(c.Request(), int(p.Status))
	h := c.Response().Header()
	if p.Status == http.StatusServiceUnavailable || p.Status == http.StatusTooManyRequests {
		// rounded up, and at least a second: 0 would mean "at once"
		seconds := max(1, int((p.RetryAfter+time.Second-1)/time.Second))
		h.Set(echo.HeaderRetryAfter, strconv.Itoa(seconds))
	}
	h.Set("Cache-Control", "no-store")
	status, mediaType := int(p.Status), "application/problem+json"
	var body any = web.ProblemBodyOf(p)
	for _, face := range s.faces {
		if face.Owns(c.Request().URL.Path) {
			mediaType = echo.MIMEApplicationJSON
			status, body = face.Answer(p, err)
		}
	}
	if err := web.WriteJSON(c, status, mediaType, body); err != nil {
		s.Log.DebugContext(c.Request().Context(), "answer not written", "error", err)
	}
}
