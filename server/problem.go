package server

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"notebox/server/dify"
)

func unsupportedMedia(format string, args ...any) *problem {
	return &problem{status: http.StatusUnsupportedMediaType, text: fmt.Sprintf(format, args...)}
}

// problemOf gives any error of a handler its public face.
func problemOf(err error) *problem {
	var p *problem
	var ofEcho *echo.HTTPError
	var tooManyBytes *http.MaxBytesError
	var slow *slowBodyError
	var unsent *unsentError
	var invalid *dify.InvalidError
	switch {
	case errors.Is(err, dify.ErrTime):
		return &problem{status: http.StatusServiceUnavailable, text: dify.ErrTime.Error(), retryAfter: time.Second, cause: err}
	case errors.As(err, &p):
		return p
	case errors.As(err, &invalid):
		return &problem{status: http.StatusUnprocessableEntity, text: invalid.Error()}
	case errors.As(err, &unsent):
		return &problem{status: statusClientGone, text: "the client is gone", cause: err}
	case errors.As(err, &tooManyBytes):
		return tooLarge("", "the body is larger than %d bytes", tooManyBytes.Limit)
	case errors.As(err, &ofEcho):
		return ofRouter(ofEcho)
	case errors.As(err, &slow):
		return &problem{status: http.StatusRequestTimeout, text: "the body came too slowly"}
	}
	return runProblemOf(err)
}

// ofRouter translates what echo itself answers.
func ofRouter(err *echo.HTTPError) *problem {
	switch err.Code {
	case http.StatusNotFound:
		return notFound()
	case http.StatusMethodNotAllowed:
		return &problem{status: err.Code, text: "this address does not take this method; the Allow header lists those that it takes"}
	}
	return &problem{status: err.Code, text: http.StatusText(err.Code)}
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
	s.drain(c.Request(), p.status)
	h := c.Response().Header()
	if p.status == http.StatusServiceUnavailable || p.status == http.StatusTooManyRequests {
		// rounded up, and at least a second: 0 would mean "at once"
		seconds := max(1, int((p.retryAfter+time.Second-1)/time.Second))
		h.Set(echo.HeaderRetryAfter, strconv.Itoa(seconds))
	}
	h.Set("Cache-Control", "no-store")
	status, mediaType := p.status, "application/problem+json"
	var body any = problemBody{"about:blank", http.StatusText(p.status), p.status, p.detail(), p.field}
	if dify.Owns(c.Request().URL.Path) {
		mediaType = echo.MIMEApplicationJSON
		status, body = difyFailure(p, err)
	}
	if err := writeJSON(c, status, mediaType, body); err != nil {
		s.log.DebugContext(c.Request().Context(), "answer not written", "error", err)
	}
}
