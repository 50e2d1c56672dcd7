package server

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"syscall"
)

// redactedError is an error whose text is fit for the log. What it is to
// errors.Is and errors.As is the whole of it.
type redactedError struct {
	text  string
	whole error
}

func (e *redactedError) Error() string { return e.text }
func (e *redactedError) Unwrap() error { return e.whole }

// runKeyParts is how many components of a run's key are the service's own:
// runs/<date>/<run>/<kind>, see storage.RunKey. What follows is a name that the
// user's code chose.
const runKeyParts = 4

// withoutKey is an error of the store about an object whose key holds a name from
// a run. Stores and file systems quote keys, in one spelling or another; what is
// at the bottom of the error says why all the same.
func withoutKey(err error, key string) error {
	text := leaf(err).Error()
	parts := strings.SplitN(key, "/", runKeyParts+1)
	if len(parts) > runKeyParts {
		for part := range strings.SplitSeq(parts[runKeyParts], "/") {
			if strings.Contains(text, part) || strings.Contains(text, url.PathEscape(part)) {
				text = fmt.Sprintf("an error of type %T", leaf(err))
			}
		}
	}
	return &redactedError{text, err}
}

// leaf is the cause of a cause … of err.
func leaf(err error) error {
	for {
		next := errors.Unwrap(err)
		if next == nil {
			if many, ok := err.(interface{ Unwrap() []error }); ok && len(many.Unwrap()) > 0 {
				next = many.Unwrap()[len(many.Unwrap())-1]
			}
		}
		if next == nil {
			return err
		}
		err = next
	}
}

// withoutURL is an error of fetching a file, whose address is the caller's data
// and may be a signed one.
func withoutURL(err error) error {
	var refused refusal
	var lookup *net.DNSError
	var system syscall.Errno
	text := ""
	switch {
	case errors.As(err, &refused):
		text = refused.Error()
	case errors.As(err, &lookup):
		text = "lookup: " + lookup.Err
	case errors.As(err, &system):
		text = system.Error()
	default:
		text = fmt.Sprintf("an error of type %T", leaf(err))
	}
	return &redactedError{text, err}
}
