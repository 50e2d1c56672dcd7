package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"notebox/access"
	"notebox/runner"
	"notebox/server/dify"
)

// problem is an error that a stranger may read. It is sent as
// application/problem+json (RFC 9457), with the field as an extension.
type problem struct {
	status     int
	field      string // what is wrong in the request, "files[2].name"; may be empty
	text       string // public: no host path, no image digest, no stack trace
	retryAfter time.Duration
	reason     access.Reason // why the caller's key did not allow it; else ""
	cause      error         // for the log
}

func (p *problem) Error() string {
	if p.cause == nil {
		return p.detail()
	}
	return p.detail() + ": " + p.cause.Error()
}

func (p *problem) Unwrap() error { return p.cause }

func (p *problem) detail() string {
	if p.field == "" {
		return p.text
	}
	return p.field + ": " + p.text
}

// ofPackages reports whether it is about nothing but the packages of a request.
func (p *problem) ofPackages() bool {
	return p.field == packagesField || strings.HasPrefix(p.field, packagesField+"[")
}

// malformed is a request that is not of the schema.
func malformed(field, format string, args ...any) *problem {
	return &problem{status: http.StatusBadRequest, field: field, text: fmt.Sprintf(format, args...)}
}

// unfit is a field that is understood, but out of range or not supported.
func unfit(field, format string, args ...any) *problem {
	return &problem{status: http.StatusUnprocessableEntity, field: field, text: fmt.Sprintf(format, args...)}
}

func tooLarge(field, format string, args ...any) *problem {
	return &problem{status: http.StatusRequestEntityTooLarge, field: field, text: fmt.Sprintf(format, args...)}
}

func unsupportedMedia(format string, args ...any) *problem {
	return &problem{status: http.StatusUnsupportedMediaType, text: fmt.Sprintf(format, args...)}
}

func forbidden(format string, args ...any) *problem {
	return &problem{status: http.StatusForbidden, text: fmt.Sprintf(format, args...)}
}

// notFound says no more: whether a thing is gone, expired or somebody else's
// is not the caller's business.
func notFound() *problem {
	return &problem{status: http.StatusNotFound, text: "there is nothing at this address"}
}

// statusClientGone is logged for a request whose client did not wait; nobody
// receives it (nginx's 499, as net/http has no name for it).
const statusClientGone = 499

// problemOf gives any error of a handler its public face.
func problemOf(err error) *problem {
	var p *problem
	var ofRunner *runner.Error
	var ofEcho *echo.HTTPError
	var tooManyBytes *http.MaxBytesError
	var slow *slowBodyError
	var unsent *unsentError
	var refused *access.Refusal
	var invalid *dify.InvalidError
	var gone *runner.GoneError
	var ofFile *runner.FileError
	switch {
	case errors.Is(err, dify.ErrTime):
		return &problem{status: http.StatusServiceUnavailable, text: dify.ErrTime.Error(), retryAfter: time.Second, cause: err}
	case errors.As(err, &p):
		return p
	case errors.As(err, &invalid):
		return &problem{status: http.StatusUnprocessableEntity, text: invalid.Error()}
	case errors.As(err, &refused):
		return ofAccess(refused)
	case errors.As(err, &gone):
		return goneProblem(gone)
	case errors.Is(err, runner.ErrNoSession):
		return notFound()
	case errors.As(err, &ofFile):
		return ofSessionFile("path", ofFile)
	case errors.As(err, &unsent):
		return &problem{status: statusClientGone, text: "the client is gone", cause: err}
	case errors.As(err, &ofRunner) && ofRunner.Code == runner.CodeEnv:
		return &problem{status: http.StatusUnprocessableEntity, field: "env", text: ofRunner.Message, cause: err}
	case errors.As(err, &ofRunner) && ofRunner.Code == runner.CodePackages:
		return &problem{status: http.StatusUnprocessableEntity, field: "dependencies", text: ofRunner.Message, cause: err}
	case errors.As(err, &ofRunner) && ofRunner.Code == runner.CodeShare:
		return &problem{status: http.StatusTooManyRequests, text: ofRunner.Message, retryAfter: ofRunner.RetryAfter, cause: err}
	case errors.As(err, &ofRunner):
		p := &problem{status: http.StatusServiceUnavailable, text: ofRunner.Message, retryAfter: ofRunner.RetryAfter, cause: err}
		if text, ok := strings.CutPrefix(p.text, packagesField+": "); ok { // as package dependencies says it
			p.field, p.text = packagesField, text
		}
		return p
	case errors.Is(err, errWorkspace):
		return &problem{status: http.StatusServiceUnavailable, text: "files of requests cannot be kept at this time", retryAfter: diskRetry, cause: err}
	case errors.As(err, &tooManyBytes):
		return tooLarge("", "the body is larger than %d bytes", tooManyBytes.Limit)
	case errors.As(err, &ofEcho):
		return ofRouter(ofEcho)
	case errors.As(err, &slow):
		return &problem{status: http.StatusRequestTimeout, text: "the body came too slowly"}
	case errors.Is(err, context.Canceled), errors.Is(err, errClientGone):
		return &problem{status: statusClientGone, text: "the client is gone"}
	}
	return &problem{status: http.StatusInternalServerError, text: "the service failed; its log says why", cause: err}
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
	if why := p.refusal(); why != "" {
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
