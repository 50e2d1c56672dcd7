// Package web is what the protocols share of HTTP: who calls, how an answer is sent, how fast
// a client must be, errors.
package web

import (
	"log/slog"

	"github.com/labstack/echo/v4"

	"notebox/access"
)

// What is known of a request is kept in its echo.Context, under these keys.
const (
	callerKey  = "caller"  // its *access.Caller
	runKey     = "run"     // its run's id
	sessionKey = "session" // its session's id
	peerKey    = "peer"    // the service that it is passed on to
	passedKey  = "passed"  // true: a peer has passed it on
)

// SetCaller says who calls.
func SetCaller(c echo.Context, caller *access.Caller) { c.Set(callerKey, caller) }

// NoteRun says which run a request is about.
func NoteRun(c echo.Context, id string) { c.Set(runKey, id) }

// NoteSession says which session a request is about.
func NoteSession(c echo.Context, id string) { c.Set(sessionKey, id) }

// NotePeer says to which service a request is passed on.
func NotePeer(c echo.Context, address string) { c.Set(peerKey, address) }

// SetPassed says that a peer has passed a request on to this service.
func SetPassed(c echo.Context) { c.Set(passedKey, true) }

// Passed reports whether one has.
func Passed(c echo.Context) bool { return c.Get(passedKey) != nil }

// Run is the run that a request is about; "" if it is about none.
func Run(c echo.Context) string {
	id, _ := c.Get(runKey).(string)
	return id
}

// Caller is who calls; nil on a service without keys.
func Caller(c echo.Context) *access.Caller {
	caller, _ := c.Get(callerKey).(*access.Caller)
	return caller
}

// Owner is under what the caller's things are kept; "" on a service without keys.
func Owner(c echo.Context) string { return Caller(c).Owner() }

// Who is the run and the caller of a request, as far as they are known.
func Who(c echo.Context) []slog.Attr {
	var attrs []slog.Attr
	if run, ok := c.Get(runKey).(string); ok {
		attrs = append(attrs, slog.String("run", run))
	}
	if session, ok := c.Get(sessionKey).(string); ok {
		attrs = append(attrs, slog.String("session", session))
	}
	if peer, ok := c.Get(peerKey).(string); ok {
		attrs = append(attrs, slog.String("peer", peer))
	}
	if owner := Owner(c); owner != "" {
		attrs = append(attrs, slog.String("owner", owner))
	}
	if name := Caller(c).Name(); name != "" {
		attrs = append(attrs, slog.String("caller", name))
	}
	return attrs
}
