package server

import (
	"fmt"
	"net/http"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"notebox/access"
	"notebox/notebook"
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

func forbidden(format string, args ...any) *problem {
	return &problem{status: http.StatusForbidden, text: fmt.Sprintf(format, args...)}
}

// notFound says no more: whether a thing is gone, expired or somebody else's
// is not the caller's business.
func notFound() *problem {
	return &problem{status: http.StatusNotFound, text: "there is nothing at this address"}
}

// packagesField is the field of a request with packages.
const packagesField = "dependencies"

// statusClientGone is logged for a request whose client did not wait; nobody
// receives it (nginx's 499, as net/http has no name for it).
const statusClientGone = 499

// maxQuoted bounds how much of a caller's own text an error repeats, in bytes.
const maxQuoted = 100

// quote repeats a caller's text in an error, in ASCII, cut to a sensible length.
func quote(s string) string {
	if len(s) > maxQuoted {
		s = strings.ToValidUTF8(s[:maxQuoted], "") + "…"
	}
	return strconv.Quote(s)
}

// printable keeps a name as it is where that is plain, else quotes it.
func printable(name string) string {
	quoted := quote(name)
	if name != "" && quoted == `"`+name+`"` && !strings.ContainsAny(name, " .[]") {
		return name
	}
	return quoted
}

func cut(s string) string {
	if len(s) > maxQuoted {
		return strings.ToValidUTF8(s[:maxQuoted], "") + "…"
	}
	return s
}

// oneLine keeps a hostile name from looking like more than a name.
func oneLine(name string) string {
	return strings.Join(strings.Fields(notebook.Plain(name)), " ")
}

// panicked is the problem of what panicked with v; to be called where it is recovered.
func panicked(v any) *problem {
	return &problem{
		status: http.StatusInternalServerError,
		text:   "the service failed; its log says why",
		cause:  fmt.Errorf("panic: %s\n%s", panicText(v), debug.Stack()),
	}
}

// panicText is what the log has of a panic: the text of the language's own, and of
// others, which may quote what is a caller's, the type. The stack has the place.
func panicText(v any) string {
	if own, ok := v.(runtime.Error); ok {
		return own.Error()
	}
	return fmt.Sprintf("a value of type %T", v)
}
