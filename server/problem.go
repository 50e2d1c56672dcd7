package server

import (
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"notebox/executor"
	"notebox/executor/problem"
	"notebox/server/body"
	"notebox/server/web"
)

// problemOf gives any error of a handler its public face.
func problemOf(err error) *problem.Error {
	var p *problem.Error
	var ofEcho *echo.HTTPError
	var tooManyBytes *http.MaxBytesError
	var slow *body.SlowError
	var unsent *web.UnsentError
	switch {
	case errors.As(err, &p):
		return p
	case errors.As(err, &unsent):
		return &problem.Error{Status: problem.StatusClientGone, Text: "the client is gone", Cause: err}
	case errors.As(err, &tooManyBytes):
		return problem.TooLarge("", "the body is larger than %d bytes", tooManyBytes.Limit)
	case errors.As(err, &ofEcho):
		return ofRouter(ofEcho)
	case errors.As(err, &slow):
		return &problem.Error{Status: http.StatusRequestTimeout, Text: "the body came too slowly"}
	}
	return executor.ProblemOf(err)
}

// ofRouter translates what echo itself answers.
func ofRouter(err *echo.HTTPError) *problem.Error {
	switch err.Code {
	case http.StatusNotFound:
		return problem.NotFound()
	case http.StatusMethodNotAllowed:
		return &problem.Error{Status: problem.Status(err.Code), Text: "this address does not take this method; the Allow header lists those that it takes"}
	}
	return &problem.Error{Status: problem.Status(err.Code), Text: http.StatusText(err.Code)}
}

// problemBody is the JSON of a problem. Its type is about:blank, for which
// RFC 9457 asks that title be the status's phrase.
type problemBody struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
	Field  string `json:"field,omitempty"`
}

func problemBodyOf(p *problem.Error) problemBody {
	return problemBody{"about:blank", http.StatusText(int(p.Status)), int(p.Status), p.Detail(), p.Field}
}

// answerError replaces echo's default error handler.
func (s *Server) answerError(err error, c echo.Context) {
	p := problemOf(err)
	if why := refusalOf(p); why != "" {
		s.observer.Refused(why)
	}
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
	var body any = problemBodyOf(p)
	for _, face := range s.faces {
		if face.Owns(c.Request().URL.Path) {
			mediaType = echo.MIMEApplicationJSON
			status, body = face.Answer(p, err)
		}
	}
	if err := web.WriteJSON(c, status, mediaType, body); err != nil {
		s.log.DebugContext(c.Request().Context(), "answer not written", "error", err)
	}
}
