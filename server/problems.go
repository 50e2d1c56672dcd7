package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"notebox/access"
	"notebox/runner"
)

// runProblemOf gives an error of a run, or of a session, its public face.
func runProblemOf(err error) *problem {
	var p *problem
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
		return goneProblem(gone)
	case errors.Is(err, runner.ErrNoSession):
		return notFound()
	case errors.As(err, &ofFile):
		return ofSessionFile("path", ofFile)
	case errors.As(err, &ofRunner):
		return ofRunnerError(ofRunner, err)
	case errors.Is(err, errWorkspace):
		return &problem{status: http.StatusServiceUnavailable, text: "files of requests cannot be kept at this time", retryAfter: diskRetry, cause: err}
	case errors.Is(err, context.Canceled), errors.Is(err, errClientGone):
		return &problem{status: statusClientGone, text: "the client is gone"}
	}
	return &problem{status: http.StatusInternalServerError, text: "the service failed; its log says why", cause: err}
}

func ofRunnerError(known *runner.Error, err error) *problem {
	p := &problem{status: http.StatusServiceUnavailable, text: known.Message, retryAfter: known.RetryAfter, cause: err}
	switch known.Code {
	case runner.CodeEnv:
		return &problem{status: http.StatusUnprocessableEntity, field: "env", text: known.Message, cause: err}
	case runner.CodePackages:
		return &problem{status: http.StatusUnprocessableEntity, field: packagesField, text: known.Message, cause: err}
	case runner.CodeShare:
		p.status = http.StatusTooManyRequests
		return p
	}
	if text, ok := strings.CutPrefix(p.text, packagesField+": "); ok { // as package dependencies says it
		p.field, p.text = packagesField, text
	}
	return p
}

// ofAccess gives a refusal its public face: what passes by itself is 429.
func ofAccess(r *access.Refusal) *problem {
	p := &problem{status: http.StatusForbidden, field: r.Field, text: r.Message, reason: r.Reason}
	if r.RetryAfter > 0 {
		p.status, p.retryAfter = http.StatusTooManyRequests, r.RetryAfter
	}
	return p
}

// goneTexts say to a caller how a session ended.
var goneTexts = map[runner.GoneReason]string{
	runner.GoneClosed:  "it was closed",
	runner.GoneExpired: "its time to live was over",
	runner.GoneIdle:    "nothing had used it for its idle time",
	runner.GoneEvicted: "room was short, and it had been idle for longest",
	runner.GoneLost:    "its sandbox ended by itself, or could not be found again after a restart of the service",
}

// goneText is one sentence on how a session ended.
func goneText(gone *runner.GoneError) string {
	why, ok := goneTexts[gone.Reason]
	if !ok {
		why = "it has ended"
	}
	return fmt.Sprintf("the session is over since %s: %s", gone.At.UTC().Format(time.RFC3339), why)
}

func goneProblem(gone *runner.GoneError) *problem {
	return &problem{
		status: http.StatusGone, text: goneText(gone) + "; its variables and files are lost; POST /v1/sessions opens another",
		cause: gone.Err,
	}
}

// fileStatuses are those of what cannot be done by the state of /mnt/data.
var fileStatuses = map[runner.FileCode]int{
	runner.FileNotFound: http.StatusNotFound,
	runner.FileExists:   http.StatusConflict,
	runner.FileNotPlain: http.StatusConflict,
	runner.FileBusy:     http.StatusConflict,
	runner.FileNoRoom:   http.StatusRequestEntityTooLarge,
	runner.FileRefused:  http.StatusUnprocessableEntity,
}

// ofInputs is the error of a run, or of an opening, whose inputs the session did not take.
func ofInputs(err error) error {
	var failed *runner.FileError
	if !errors.As(err, &failed) {
		return err
	}
	p := ofSessionFile("files", failed)
	p.text = quote(failed.Path) + ": " + p.text
	return p
}

// ofSessionFile is what a caller is told of a file. The text is from within the sandbox.
func ofSessionFile(field string, err *runner.FileError) *problem {
	status, ok := fileStatuses[err.Code]
	text := oneLine(cut(err.Message))
	if !ok || text == "" {
		return &problem{status: http.StatusUnprocessableEntity, field: field, text: "this cannot be done with this file", cause: err}
	}
	return &problem{status: status, field: field, text: text}
}
