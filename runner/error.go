package runner

import "time"

// Code says what kind of failure of the service an Error is.
type Code string

// The failures that a caller can do something about.
const (
	CodeFull        Code = "full"        // no place to run or to wait: come back later
	CodeShare       Code = "share"       // no place to wait for this owner: come back later
	CodeUnavailable Code = "unavailable" // sandboxes cannot be started now
	CodeEnv         Code = "env"         // the kernel does not start with Spec.Env, and did without
	CodePackages    Code = "packages"    // the kernel does not start with the packages of its image that a caller chose
)

// Error is a failure of the service with a message that a stranger may read.
type Error struct {
	Code       Code
	Message    string        // public: no host path, no image digest
	RetryAfter time.Duration // when to come back; 0 if unknown
	Err        error         // the cause, for the log; may be nil
}

func (e *Error) Error() string {
	if e.Err == nil {
		return e.Message
	}
	return e.Message + ": " + e.Err.Error()
}

func (e *Error) Unwrap() error { return e.Err }
