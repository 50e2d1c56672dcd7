package executor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"notebox/access"
	"notebox/executor/intake"
	"notebox/executor/problem"
	"notebox/runner"
)

// ProblemOf gives an error of a run, or of a session, its public face.
func ProblemOf(err error) *problem.Error {
	var p *problem.Error
	var ofRunner *runner.Error
	var refused *access.Refusal
	var gone *runner.GoneError
	var ofFile *runner.FileError
	switch {
	case errors.As(err, &p):
		return p
	case errors.As(err, &refused):
		return ofAccess(refused)
	case errors.As(err, &gone):
		return &problem.Error{
			Status: problem.StatusGone, Text: GoneText(gone) + "; its variables and files are lost; POST /v1/sessions opens another",
			Cause: gone.Err,
		}
	case errors.Is(err, runner.ErrNoSession):
		return problem.NotFound()
	case errors.As(err, new(*runner.ElsewhereError)): // of a request that is not passed on
		return &problem.Error{Status: problem.StatusUnavailable, Text: "another service has this session", RetryAfter: time.Second, Cause: err}
	case errors.As(err, &ofFile):
		return OfSessionFile("path", ofFile)
	case errors.As(err, &ofRunner):
		return ofRunnerError(ofRunner, err)
	case errors.Is(err, intake.ErrWorkspace):
		return &problem.Error{Status: problem.StatusUnavailable, Text: "files of requests cannot be kept at this time", RetryAfter: intake.DiskRetry, Cause: err}
	case errors.Is(err, context.Canceled), errors.Is(err, ErrClientGone):
		return &problem.Error{Status: problem.StatusClientGone, Text: "the client is gone"}
	}
	return problem.Failed(err)
}

func ofRunnerError(known *runner.Error, err error) *problem.Error {
	p := &problem.Error{Status: problem.StatusUnavailable, Text: known.Message, RetryAfter: known.RetryAfter, Cause: err}
	switch known.Code {
	case runner.CodeEnv:
		return &problem.Error{Status: problem.StatusUnfit, Field: "env", Text: known.Message, Cause: err}
	case runner.CodePackages:
		return &problem.Error{Status: problem.StatusUnfit, Field: problem.PackagesField, Text: known.Message, Cause: err}
	case runner.CodeShare:
		p.Status = problem.StatusTooMany
		return p
	}
	if text, ok := strings.CutPrefix(p.Text, problem.PackagesField+": "); ok { // as package dependencies says it
		p.Field, p.Text = problem.PackagesField, text
	}
	return p
}

// ofAccess gives a refusal its public face: what passes by itself is 429.
func ofAccess(r *access.Refusal) *problem.Error {
	p := &problem.Error{Status: problem.StatusForbidden, Field: r.Field, Text: r.Message, Reason: r.Reason}
	if r.RetryAfter > 0 {
		p.Status, p.RetryAfter = problem.StatusTooMany, r.RetryAfter
	}
	return p
}

// goneTexts say to a caller how a session ended.
var goneTexts = map[runner.GoneReason]string{
	runner.GoneClosed:  "it was closed",
	runner.GoneExpired: "its time to live was over",
	runner.GoneIdle:    "nothing had used it for its idle time",
	runner.GoneEvicted: "room was short, and it had been idle for longest",
	runner.GoneService: "the service that had it has ended, or knows of it no more",
	runner.GoneLost:    "its sandbox ended by itself, or could not be found again after a restart of the service",
}

// GoneText is one sentence on how a session ended.
func GoneText(gone *runner.GoneError) string {
	why, ok := goneTexts[gone.Reason]
	if !ok {
		why = "it has ended"
	}
	if gone.At.IsZero() {
		return "the session is over: " + why
	}
	return fmt.Sprintf("the session is over since %s: %s", gone.At.UTC().Format(time.RFC3339), why)
}

// fileStatuses are those of what cannot be done by the state of /mnt/data.
var fileStatuses = map[runner.FileCode]problem.Status{
	runner.FileNotFound: problem.StatusNotFound,
	runner.FileExists:   problem.StatusConflict,
	runner.FileNotPlain: problem.StatusConflict,
	runner.FileBusy:     problem.StatusConflict,
	runner.FileNoRoom:   problem.StatusTooLarge,
	runner.FileRefused:  problem.StatusUnfit,
}

// ofInputs is the error of a run, or of an opening, whose inputs the session did not take.
func ofInputs(err error) error {
	var failed *runner.FileError
	if !errors.As(err, &failed) {
		return err
	}
	p := OfSessionFile("files", failed)
	p.Text = problem.Quote(failed.Path) + ": " + p.Text
	return p
}

// OfSessionFile is what a caller is told of a file. The text is from within the sandbox.
func OfSessionFile(field string, err *runner.FileError) *problem.Error {
	status, ok := fileStatuses[err.Code]
	text := problem.OneLine(problem.Cut(err.Message))
	if !ok || text == "" {
		return &problem.Error{Status: problem.StatusUnfit, Field: field, Text: "this cannot be done with this file", Cause: err}
	}
	return &problem.Error{Status: status, Field: field, Text: text}
}
