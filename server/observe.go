package server

import (
	"errors"
	"net/http"
	"time"

	"notebox/access"
	"notebox/executor/problem"
	"notebox/runner"
)

// Observer is told what the server does; metrics are one. Its methods are called
// on the requests' own way, from many at the same time, and must not wait. What
// they are given comes from short lists, never from a caller.
type Observer interface {
	// Answered is called for each request when it is over. route is one of
	// Server.routes, as it is written there, or "none".
	Answered(method, route string, status int, took time.Duration)
	// Refused is called for each request that was turned away before it came to
	// the Runner, which says for itself whom it turns away.
	Refused(Refusal)
	// Stored is called for each run whose notebook and images were stored, after
	// its end; or could not be.
	Stored(took time.Duration)
	// Probed is called for each run of /readyz's own.
	Probed(ok bool)
}

// Refusal is why a request was turned away.
type Refusal string

// The refusals.
const (
	RefusedAuth      Refusal = "auth"      // 401: no key, or one that is not known
	RefusedForbidden Refusal = "forbidden" // 403: a page in a browser, a link that is not valid, what the operator does not allow
	RefusedBody      Refusal = "body"      // 413: more bytes than are taken
	RefusedSlow      Refusal = "slow"      // 408: a body that came, or events that were read, too slowly
	RefusedRate      Refusal = "rate"      // 429: more than is left free for others
	RefusedBusy      Refusal = "busy"      // 503: no request of this kind can be taken in now

	// What the caller's key does not allow, or not now; package access says so.
	RefusedRequests    = Refusal(access.ReasonRequests)
	RefusedRuns        = Refusal(access.ReasonRuns)
	RefusedCPU         = Refusal(access.ReasonCPU)
	RefusedSessions    = Refusal(access.ReasonSessions)
	RefusedEnvironment = Refusal(access.ReasonEnvironment)
	RefusedNetwork     = Refusal(access.ReasonNetwork)
)

// Refusals are all there are.
func Refusals() []Refusal {
	return []Refusal{
		RefusedAuth, RefusedForbidden, RefusedBody, RefusedSlow, RefusedRate, RefusedBusy,
		RefusedRequests, RefusedRuns, RefusedCPU, RefusedSessions, RefusedEnvironment, RefusedNetwork,
	}
}

// refusalOf is the one that p is, or "".
func refusalOf(p *problem.Error) Refusal {
	if known := (*runner.Error)(nil); errors.As(p.Cause, &known) {
		return ""
	}
	if p.Reason != "" {
		return Refusal(p.Reason)
	}
	switch p.Status {
	case http.StatusUnauthorized:
		return RefusedAuth
	case http.StatusForbidden:
		return RefusedForbidden
	case http.StatusRequestEntityTooLarge:
		return RefusedBody
	case http.StatusRequestTimeout:
		return RefusedSlow
	case http.StatusTooManyRequests:
		return RefusedRate
	case http.StatusServiceUnavailable:
		return RefusedBusy
	}
	return ""
}

// countRefusal tells the Observer of a problem, if it is a refusal.
func (s *Server) countRefusal(p *problem.Error) {
	if why := refusalOf(p); why != "" {
		s.observer.Refused(why)
	}
}

// noRoute is the route of a request for an address that does not exist.
const noRoute = "none"

// methodOf keeps what a stranger may write as a method out of names and labels.
func methodOf(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return method
	}
	return "other"
}

// unobserved is the Observer of a Server that has none.
type unobserved struct{}

func (unobserved) Answered(string, string, int, time.Duration) {}
func (unobserved) Refused(Refusal)                             {}
func (unobserved) Stored(time.Duration)                        {}
func (unobserved) Probed(bool)                                 {}
