package script

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"

	"notebox/client"
)

// Exit is an exit status of a shell.
type Exit int

// What a run ends with, as api.md has it.
const (
	OK          Exit = 0
	Raised      Exit = 1   // the code raised
	Mistake     Exit = 2   // in the call: a file that is not there, a language that nobody knows
	Failed      Exit = 3   // the service or the engine failed
	Timeout     Exit = 124 // as timeout(1) has it
	Interrupted Exit = 130 // 128 and SIGINT
	Killed      Exit = 137 // 128 and SIGKILL, also out of memory
	OutputLimit Exit = 141 // 128 and SIGPIPE
)

// exits are those of statuses.
var exits = map[string]Exit{
	"ok": OK, "error": Raised, "timeout": Timeout, "cancelled": Interrupted,
	"killed": Killed, "out_of_memory": Killed, "output_limit": OutputLimit,
}

// exitOf is that of a result.
func exitOf(r *client.Result) Exit {
	if exit, known := exits[r.Status]; known {
		return exit
	}
	return Failed
}

// Error is why there is no result.
type Error struct {
	Exit Exit
	Err  error
}

func (e *Error) Error() string { return e.Err.Error() }

func (e *Error) Unwrap() error { return e.Err }

// failedUnless is err, which is the engine's failure unless it says another one.
func failedUnless(err error) error {
	if e := (*Error)(nil); errors.As(err, &e) {
		return e
	}
	return &Error{Failed, err}
}

func mistake(format string, args ...any) error { return &Error{Mistake, fmt.Errorf(format, args...)} }

// Refused is the error of a request: the caller's mistake if the service says so.
func Refused(err error) error {
	var e *client.Error
	if !errors.As(err, &e) {
		var file *fs.PathError
		var unreached *net.OpError
		switch {
		case errors.As(err, &file): // of --file
			return &Error{Mistake, fmt.Errorf("%s: %w", file.Path, file.Err)}
		case errors.As(err, &unreached):
			err = fmt.Errorf("no notebox answers (%w): notebox serve starts one, and --url or NOTEBOX_URL names another", unreached)
		}
		return &Error{Failed, err}
	}
	said := errors.New(e.Detail) // the number says nothing to a person
	switch e.Status {
	case http.StatusUnauthorized:
		return &Error{Mistake, errors.New("the service wants an API key, or does not know this one: --api-key or NOTEBOX_API_KEY")}
	case http.StatusTooManyRequests, http.StatusRequestTimeout:
		return &Error{Failed, said}
	}
	if e.Status < http.StatusInternalServerError {
		return &Error{Mistake, said}
	}
	return &Error{Failed, said}
}
