package web

import (
	"errors"
	"log/slog"
	"net/http"
	"notebox/executor"
	"notebox/executor/problem"
	"notebox/server/body"
	"strings"

	"github.com/labstack/echo/v4"
)

// Problem gives any error of a handler its public face.
func Problem(err error) *problem.Error {
	var p *problem.Error
	var ofEcho *echo.HTTPError
	var tooManyBytes *http.MaxBytesError
	var slow *body.SlowError
	var unsent *UnsentError
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

// ProblemBody is the JSON of a problem. Its type is about:blank, for which
// RFC 9457 asks that title be the status's phrase.
type ProblemBody struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
	Field  string `json:"field,omitempty"`
}

// ProblemBodyOf returns the JSON of p.
func ProblemBodyOf(p *problem.Error) ProblemBody {
	return ProblemBody{"about:blank", http.StatusText(int(p.Status)), int(p.Status), p.Detail(), p.Field}
}

// RecoverPanic makes a 500 of a panic, whose stack goes to the log only.
func RecoverPanic(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) (err error) {
		defer func() {
			v := recover()
			if v == nil {
				return
			}
			if v == http.ErrAbortHandler { // net/http's own way to cut a connection
				panic(v)
			}
			err = problem.Panicked(v)
		}()
		return next(c)
	}
}

// LevelOf is that of a problem in the log: an error if it is one of ours.
func LevelOf(p *problem.Error) slog.Level {
	if p.Status >= http.StatusInternalServerError {
		return slog.LevelError
	}
	return slog.LevelDebug
}

// NeedsKey refuses who has no key, or one that is not known.
func NeedsKey() *problem.Error {
	return &problem.Error{Status: http.StatusUnauthorized, Text: "an API key is needed, as Authorization: Bearer or X-API-Key"}
}

// PresentedKey prefers Authorization; one of another scheme, which a proxy may
// have left there, does not hide X-API-Key.
func PresentedKey(h http.Header) string {
	scheme, key, _ := strings.Cut(h.Get(echo.HeaderAuthorization), " ")
	if strings.EqualFold(scheme, "Bearer") {
		return strings.TrimSpace(key)
	}
	return h.Get("X-API-Key")
}
