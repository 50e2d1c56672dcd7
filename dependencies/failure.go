package dependencies

import (
	"errors"
	"fmt"
	"time"

	"notebox/runner"
)

// Failure is a set that cannot be had: the caller's affair, as code that raises is. Name
// and Message are for callers; Message is the installer's words, which quote whatever a
// registry says.
type Failure struct {
	Name    string
	Message string
}

// The names of failures. The installers have exceptions of the first two.
const (
	Unresolvable = "Unresolvable" // there is no such package or version, or they do not go together
	TooLarge     = "TooLarge"     // more than a layer may be
	TooSlow      = "TooSlow"      // not installed within the time limit
	Unusable     = "Unusable"     // installed, and no kernel starts with them
	TooNoisy     = "TooNoisy"     // the installer said more than it may
	Crashed      = "Crashed"      // the installer died of what it did
)

// unreachable is the installers' exception for a registry that does not answer.
const unreachable = "Unreachable"

func (f *Failure) Error() string { return f.Name + ": " + f.Message }

// unreachableRetry is when to come back, and for how long nobody else is let try: a
// registry that is away is away for all.
const unreachableRetry = 5 * time.Second

func cutOff(err error) error {
	return &runner.Error{
		Code: runner.CodeUnavailable, RetryAfter: unreachableRetry, Err: err,
		Message: "dependencies: the package registry cannot be reached; sets of packages that were installed before still work",
	}
}

// errNoRoom is the cause if all layers are in use.
var errNoRoom = errors.New("no layer can be removed")

func noRoom() error {
	return &runner.Error{
		Code: runner.CodeFull, RetryAfter: time.Minute, Err: errNoRoom,
		Message: "dependencies: no room for another set of packages, as those that are kept are in use",
	}
}

func tooLarge(most int64) *Failure {
	return &Failure{TooLarge, fmt.Sprintf("the packages are larger than %d MiB, which is what a set may have", most>>20)}
}
