package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"notebox/agent"
	"notebox/agent/tool"
)

// Error is a request that notebox refused, or failed at.
type Error struct {
	Status     int           `json:"status"`
	Detail     string        `json:"detail"`
	Field      string        `json:"field"` // that is wrong; may be empty
	RetryAfter time.Duration `json:"-"`     // 0: it makes no sense to ask again soon
}

func (e *Error) Error() string {
	return fmt.Sprintf("notebox answered %d: %s", e.Status, e.Detail)
}

// maxProblem bounds what is read of a refusal, in bytes.
const maxProblem = 64 << 10

// problemOf reads a problem (RFC 9457), or whatever a proxy sends in its place.
func problemOf(res *http.Response) *Error {
	raw, _ := io.ReadAll(io.LimitReader(res.Body, maxProblem)) // what there is
	e := &Error{}
	_ = json.Unmarshal(raw, e)
	e.Status = res.StatusCode
	if e.Detail == "" {
		e.Detail = http.StatusText(res.StatusCode)
	}
	if e.Status == http.StatusTooManyRequests || e.Status == http.StatusServiceUnavailable {
		seconds, _ := strconv.Atoi(res.Header.Get("Retry-After"))
		e.RetryAfter = time.Duration(max(seconds, 0)) * time.Second
	}
	return e
}

// packagesField is that of a run's packages.
const packagesField = "dependencies"

// ofPackages reports whether it is about nothing but the packages that a run wants: without
// them it goes on, also while their registry is away.
func (e *Error) ofPackages() bool {
	return e.Field == packagesField || strings.HasPrefix(e.Field, packagesField+"[")
}

func isGone(err error) bool {
	var e *Error
	return errors.As(err, &e) && (e.Status == http.StatusNotFound || e.Status == http.StatusGone)
}

// ofRun is the error of a run as agent.Executor has it.
func ofRun(err error, r agent.Run) error {
	var e *Error
	switch {
	case !errors.As(err, &e):
		return err
	case r.Session != "" && isGone(err):
		return fmt.Errorf("%w: %w", agent.ErrNoSession, err)
	case e.ofPackages():
		return tool.PackagesError("%s", e.Detail)
	case e.Field == "code" && e.Status < http.StatusInternalServerError:
		return &tool.CallError{Reason: "its program: " + e.Detail}
	}
	return err
}
