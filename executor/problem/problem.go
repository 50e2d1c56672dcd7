// Package problem has the errors that a caller may read, whichever protocol it speaks.
package problem

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"notebox/access"
	"notebox/notebook"
)

// Status is what kind of problem it is. Its number is that of HTTP's status codes (RFC
// 9110, section 15), so that protocols above HTTP need no table.
type Status int

// The kinds of problems.
const (
	StatusMalformed   Status = 400 // it is not of the schema
	StatusForbidden   Status = 403
	StatusNotFound    Status = 404
	StatusConflict    Status = 409
	StatusGone        Status = 410
	StatusTooLarge    Status = 413
	StatusUnfit       Status = 422 // it is understood, but out of range or not supported
	StatusTooMany     Status = 429 // of this caller
	StatusClientGone  Status = 499 // nobody is told (nginx's number, as HTTP has none)
	StatusFailed      Status = 500
	StatusUnavailable Status = 503
	StatusTimeout     Status = 504
)

// Known reports whether callers may be told of it.
func (s Status) Known() bool {
	return slices.Contains([]Status{StatusMalformed, StatusForbidden, StatusNotFound, StatusConflict, StatusGone, StatusTooLarge, StatusUnfit,
		StatusTooMany, StatusFailed, StatusUnavailable, StatusTimeout}, s)
}

// Error is an error that a stranger may read. Over HTTP it is sent as
// application/problem+json (RFC 9457), with the field as an extension.
type Error struct {
	Status     Status
	Field      string // what is wrong in the request, "files[2].name"; may be empty
	Text       string // public: no host path, no image digest, no stack trace
	RetryAfter time.Duration
	Reason     access.Reason // why the caller's key did not allow it; else ""
	Cause      error         // for the log
}

func (p *Error) Error() string {
	if p.Cause == nil {
		return p.Detail()
	}
	return p.Detail() + ": " + p.Cause.Error()
}

func (p *Error) Unwrap() error { return p.Cause }

// Detail is what the caller is told.
func (p *Error) Detail() string {
	if p.Field == "" {
		return p.Text
	}
	return p.Field + ": " + p.Text
}

// OfPackages reports whether it is about nothing but the packages of a request.
func (p *Error) OfPackages() bool {
	return p.Field == PackagesField || strings.HasPrefix(p.Field, PackagesField+"[")
}

// Malformed is a request that is not of the schema.
func Malformed(field, format string, args ...any) *Error {
	return &Error{Status: StatusMalformed, Field: field, Text: fmt.Sprintf(format, args...)}
}

// Unfit is a field that is understood, but out of range or not supported.
func Unfit(field, format string, args ...any) *Error {
	return &Error{Status: StatusUnfit, Field: field, Text: fmt.Sprintf(format, args...)}
}

// TooLarge is more bytes than are taken.
func TooLarge(field, format string, args ...any) *Error {
	return &Error{Status: StatusTooLarge, Field: field, Text: fmt.Sprintf(format, args...)}
}

// Forbidden is what the operator, or the caller's key, does not allow.
func Forbidden(format string, args ...any) *Error {
	return &Error{Status: StatusForbidden, Text: fmt.Sprintf(format, args...)}
}

// NotFound says no more: whether a thing is gone, expired or somebody else's
// is not the caller's business.
func NotFound() *Error {
	return &Error{Status: StatusNotFound, Text: "there is nothing at this address"}
}

// PackagesField is the field of a request with packages.
const PackagesField = "dependencies"

// MaxQuoted bounds how much of a caller's own text an error repeats, in bytes.
const MaxQuoted = 100

// Quote repeats a caller's text in an error, in ASCII, cut to a sensible length.
func Quote(s string) string {
	return strconv.Quote(Cut(s))
}

// Printable keeps a name as it is if that is plain, else quotes it.
func Printable(name string) string {
	quoted := Quote(name)
	if name != "" && quoted == `"`+name+`"` && !strings.ContainsAny(name, " .[]") {
		return name
	}
	return quoted
}

// Cut repeats a caller's text, cut to a sensible length.
func Cut(s string) string {
	if len(s) > MaxQuoted {
		return strings.ToValidUTF8(s[:MaxQuoted], "") + "…"
	}
	return s
}

// OneLine keeps a hostile name from looking like more than a name.
func OneLine(name string) string {
	return strings.Join(strings.Fields(notebook.Plain(name)), " ")
}

// Failed is a failure of the service's own.
func Failed(cause error) *Error {
	return &Error{Status: StatusFailed, Text: "the service failed; its log says why", Cause: cause}
}

// Panicked is the problem of what panicked with v; to be called where it is recovered.
func Panicked(v any) *Error {
	return Failed(fmt.Errorf("panic: %s\n%s", panicText(v), debug.Stack()))
}

// panicText is what the log has of a panic: the text of the language's own, and of
// others, which may quote what is a caller's, the type. The stack has the place.
func panicText(v any) string {
	if own, ok := v.(runtime.Error); ok {
		return own.Error()
	}
	return fmt.Sprintf("a value of type %T", v)
}
