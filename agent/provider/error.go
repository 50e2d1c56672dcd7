package provider

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"
)

// Error is that a model gave no answer.
type Error struct {
	Status     int           // of the provider's answer; 0: there was none, or it broke off
	RetryAfter time.Duration // that the provider asked for; 0: it did not
	Tries      int
	passes     bool
	cause      error
}

// Error implements error. Its text may hold what the provider said; see Public.
func (e *Error) Error() string { return e.Public() + ": " + e.cause.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.cause }

// Passes reports whether the same may go well later.
func (e *Error) Passes() bool { return e.passes }

// Public is a text for strangers: without the provider's own words, which may name
// accounts and parts of keys.
func (e *Error) Public() string {
	switch {
	case e.Status == http.StatusUnauthorized || e.Status == http.StatusForbidden:
		return "the model's provider does not accept the service's key"
	case e.Status == http.StatusTooManyRequests:
		return "the model's provider takes no more requests at this time"
	case e.Status == http.StatusNotFound:
		return "the model's provider does not have the model, or not under this address"
	case e.Status != 0:
		return fmt.Sprintf("the model's provider answered with status %d", e.Status)
	}
	return "the model's provider could not be reached, or broke off"
}

// errBrokeOff is a stream without its end.
var errBrokeOff = fmt.Errorf("the answer broke off: %w", io.ErrUnexpectedEOF)

// ofStatus is the error of an answer that is none.
func ofStatus(status int, h http.Header, cause error) *Error {
	return &Error{Status: status, RetryAfter: retryAfter(h, time.Now()), passes: passes(status, h), cause: cause}
}

// ofStream is an error event of a provider, within a stream.
func ofStream(cause error) *Error { return &Error{passes: true, cause: cause} }

// ofConnection is any error without an answer.
func ofConnection(ctx context.Context, cause error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var failed net.Error
	broke := errors.As(cause, &failed) || errors.Is(cause, io.ErrUnexpectedEOF) || errors.Is(cause, io.EOF)
	return &Error{passes: broke, cause: cause}
}

func passes(status int, h http.Header) bool {
	switch h.Get("X-Should-Retry") { // both makers' own word for it
	case "true":
		return true
	case "false":
		return false
	}
	return status == http.StatusRequestTimeout || status == http.StatusConflict ||
		status == http.StatusTooManyRequests || status >= http.StatusInternalServerError
}

// retryAfter reads the header, in seconds or as a date (RFC 9110, section 10.2.3).
func retryAfter(h http.Header, now time.Time) time.Duration {
	text := h.Get("Retry-After")
	if seconds, err := strconv.ParseFloat(text, 64); err == nil && seconds > 0 && seconds < 1e6 {
		return time.Duration(seconds * float64(time.Second))
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(at.Sub(now), 0)
	}
	return 0
}
