package conversation

import (
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strings"

	"notebox/runner"
	"notebox/runner/internal/frame"
)

// errFailed is the cause if the harness says that it failed.
var errFailed = errors.New("the harness failed")

// failure is the harness's own, before there is a job.
func failure(payload []byte) error {
	return failureAs(payload, func(message string) string { return message })
}

// failureOfRun is one that may quote what is the user's: the log has its type.
func failureOfRun(payload []byte) error {
	return failureAs(payload, func(message string) string {
		name, _, _ := strings.Cut(message, ":")
		if !exceptionName.MatchString(name) {
			return "with a job"
		}
		return name
	})
}

// exceptionName is what a Python exception's type can be called.
var exceptionName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.]{0,63}$`)

func failureAs(payload []byte, public func(string) string) error {
	f, err := frame.Decode[frame.Failed](frame.KindFailed, payload)
	if err != nil {
		return err
	}
	err = fmt.Errorf("%w: %s", errFailed, public(f.Message))
	switch {
	case f.Packages:
		return &runner.Error{Code: runner.CodePackages, Message: "a run does not start with these packages", Err: err}
	case f.Env:
		return &runner.Error{Code: runner.CodeEnv, Message: "the kernel does not start with these variables", Err: err}
	}
	return err
}

// ExplainExit puts what a sandbox wrote before it ended into the log.
func ExplainExit(err error, log *slog.Logger) error {
	if exit := (*runner.ExitError)(nil); errors.As(err, &exit) {
		log.Error("a sandbox ended by itself", "exit_code", exit.Code, "stderr", exit.Log)
	}
	return err
}

// ExplainExitOfRun is ExplainExit for a sandbox that had a job: of a traceback, the
// log has the places in the harness and not the messages, which may quote what is
// the user's.
func ExplainExitOfRun(err error, log *slog.Logger) error {
	exit := (*runner.ExitError)(nil)
	if !errors.As(err, &exit) {
		return err
	}
	var places []string
	for line := range strings.Lines(exit.Log) {
		if place := tracebackPlace.FindString(line); place != "" {
			places = append(places, place)
		}
	}
	log.Error("a sandbox ended by itself", "exit_code", exit.Code, "traceback", places)
	return err
}

// tracebackPlace is a line of a Python traceback of the harness or its libraries.
var tracebackPlace = regexp.MustCompile(`^  File "/(opt/notebox|opt/venv|usr)/[^"]*", line \d+, in [\w<>]+`)
