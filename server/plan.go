package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"notebox/access"
	"notebox/dependencies"
	"notebox/environments"
	"notebox/notebook"
	"notebox/runner"
)

// Bounds on what a request may set.
const (
	maxEnv      = 256      // variables
	maxEnvBytes = 64 << 10 // of names and values; Linux refuses one of 128 KiB
)

// envName is what POSIX calls a name; shells refuse others.
var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// plan is a request that was found good: what to run, and in what.
type plan struct {
	spec        runner.Spec
	environment *environments.Environment
	inputs      *inputs // their URLs are not fetched yet
	entrypoint  string  // the program's file below /mnt/data; "" for code
	linkImages  bool
	started     time.Time
	base        string      // what links start with
	place       *access.Run // of the caller's runs; nil without keys
	session     *inSession  // nil: in a sandbox of its own

	dependencies dependencies.Set // packages to be there
	installs     bool             // those like it may have packages: of a session when it is opened

	going atomic.Pointer[sink] // of the run, while it goes on and after
}

// makePlan checks everything in a request that can be checked before a file is
// fetched or a sandbox taken.
func (s *Server) makePlan(ctx context.Context, req *request, caller *access.Caller) (*plan, error) {
	cells, book, err := req.program()
	if err != nil {
		return nil, err
	}
	p := &plan{inputs: ptr(req.inputs), // the rest of req is for nothing while it waits
		linkImages: req.linkImages}
	if p.entrypoint, err = req.entrypoint(); err != nil {
		return nil, err
	}
	if req.Session == nil {
		p.environment, err = s.environment(req, book, p.entrypoint)
	} else {
		err = s.planSession(p, req, cells, book, caller)
	}
	if err != nil {
		return nil, err
	}
	env := p.environment
	if err := caller.MayUse(env.Name, env.Language); err != nil {
		return nil, err
	}
	if req.Session == nil {
		if err := s.mustBeAvailable(env); err != nil {
			return nil, err
		}
	}
	if p.entrypoint != "" {
		if cells, err = p.entrypointCells(); err != nil {
			return nil, err
		}
	}
	if p.dependencies, err = s.dependenciesOf(env, req.Dependencies); err != nil {
		return nil, err
	}
	p.installs = s.canInstall(env)
	network, err := s.networkOf(req, caller)
	if err != nil {
		return nil, err
	}
	p.spec = runner.Spec{
		Environment: EnvironmentOf(*env),
		StopOnError: req.StopOnError == nil || *req.StopOnError,
		Network:     network,
		Limits:      LimitsOf(*env, s.limits),
	}
	p.spec.Command = p.command()
	if p.spec.Limits.Timeout, err = s.timeout(req.Timeout, p.spec.Limits.Timeout); err != nil {
		return nil, err
	}
	if p.spec.Env, err = kernelEnv(req.Env); err != nil {
		return nil, err
	}
	if room := p.spec.Limits.DataSize; req.inputs.size() > room {
		return nil, tooMuch(room)
	}
	if err := checkURLs(&req.inputs); err != nil {
		return nil, err
	}
	_, span := s.tracer.Start(ctx, "notebook.New")
	defer EndSpan(span)()
	err = s.inTurn(ctx, caller.Owner(), req.size(), func() (err error) {
		p.spec.Notebook, err = makeNotebook(cells, book, p.kernel())
		return err
	})
	if err != nil {
		return nil, err
	}
	span.SetAttributes(attribute.Int("notebox.notebook.bytes", len(p.spec.Notebook)))
	return p, nil
}

// tooMuch refuses inputs that /mnt/data, of so many bytes, cannot hold.
func tooMuch(room int64) *problem {
	return tooLarge("files", "together they are larger than /mnt/data, which holds %d bytes", room)
}

// command is the one that the plan runs in a session beside its kernel; "" for code.
func (p *plan) command() string {
	if p.session == nil {
		return ""
	}
	return p.session.command
}

// size is how long the program is, bytes.
func (req *request) size() int64 {
	n := len(req.Notebook)
	if req.Code != nil {
		n += len(*req.Code)
	}
	for _, cell := range req.Cells {
		n += len(cell)
	}
	return int64(n)
}

// program returns the code as cells, or the notebook; neither for an entrypoint.
func (req *request) program() (cells []string, book []byte, err error) {
	hasBook := len(req.Notebook) > 0 && !bytes.Equal(req.Notebook, []byte("null"))
	var given []string
	for name, there := range map[string]bool{"code": req.Code != nil, "cells": req.Cells != nil, "notebook": hasBook, "entrypoint": req.Entrypoint != nil} {
		if there {
			given = append(given, name)
		}
	}
	slices.Sort(given)
	switch {
	case len(given) == 0:
		return nil, nil, malformed("code", "exactly one of code, cells, notebook and entrypoint must be given; none is")
	case len(given) > 1:
		return nil, nil, malformed(given[1], "exactly one of code, cells, notebook and entrypoint must be given; there are %s", strings.Join(given, " and "))
	case req.Entrypoint != nil:
		return nil, nil, nil
	case hasBook:
		return nil, req.Notebook, nil
	case req.Code != nil:
		if *req.Code == "" {
			return nil, nil, malformed("code", "is empty")
		}
		return []string{withoutBOM(*req.Code)}, nil, nil
	case len(req.Cells) == 0:
		return nil, nil, malformed("cells", "is empty")
	}
	for _, cell := range req.Cells {
		cells = append(cells, withoutBOM(cell))
	}
	return cells, nil, nil
}

// withoutBOM drops the U+FEFF that some editors begin a file with, as those who read files do.
func withoutBOM(code text) string { return strings.TrimPrefix(string(code), "\ufeff") }

// environment finds the one for the request's language: the field's, the notebook's, the
// media type's, or the default's. Where several are given they must agree. What an
// entrypoint is called says it where nothing else does.
func (s *Server) environment(req *request, book []byte, entrypoint string) (*environments.Environment, error) {
	var chosen *environments.Environment
	choose := func(field, language string) error {
		env := s.byLanguage(language)
		if env == nil {
			return unfit(field, "%s is not known; there are: %s", quote(language), strings.Join(s.languages(), ", "))
		}
		if chosen != nil && chosen.Name != env.Name {
			return unfit(field, "is %s, which does not agree with the %s", quote(language), map[bool]string{true: "notebook's language", false: "Content-Type"}[book != nil])
		}
		chosen = env
		return nil
	}
	if book != nil {
		if language := notebook.Language(book); language != "" {
			if err := choose("notebook.metadata.kernelspec.language", language); err != nil {
				return nil, err
			}
		}
	}
	if env := s.byMediaType(req.mediaType); env != nil {
		chosen = env
	}
	if req.Language != nil {
		if err := choose("language", string(*req.Language)); err != nil {
			return nil, err
		}
	}
	if chosen == nil {
		chosen = s.byExtension(entrypoint)
	}
	if chosen == nil {
		chosen = &s.environments[0]
	}
	return chosen, nil
}

func (s *Server) byLanguage(language string) *environments.Environment {
	for i := range s.environments {
		e := &s.environments[i]
		names := append([]string{e.Language}, e.Aliases...)
		if slices.ContainsFunc(names, func(name string) bool { return strings.EqualFold(name, language) }) {
			return e
		}
	}
	return nil
}

// languages are those that can be run now.
func (s *Server) languages() []string {
	var out []string
	for _, e := range s.environments {
		if s.available(e.Name) {
			out = append(out, e.Language)
		}
	}
	return out
}

// mustBeAvailable refuses an environment whose image is not installed.
func (s *Server) mustBeAvailable(env *environments.Environment) error {
	if s.available(env.Name) {
		return nil
	}
	return &problem{status: http.StatusServiceUnavailable, field: "language", text: fmt.Sprintf("the image of %s is not installed: make images", env.Name)}
}

// timeout is the time limit of a run that asks for it, or for none.
func (s *Server) timeout(asked *seconds, otherwise time.Duration) (time.Duration, error) {
	if asked == nil {
		return min(otherwise, s.maxTimeout), nil
	}
	f := float64(*asked)
	if math.IsNaN(f) || f <= 0 || f > s.maxTimeout.Seconds() {
		return 0, unfit("timeout", "must be above 0 and at most %v seconds", s.maxTimeout.Seconds())
	}
	// the shortest that is told apart from no time at all
	return max(time.Duration(f*float64(time.Second)), time.Millisecond), nil
}

// kernelEnv checks the variables of a request.
func kernelEnv(given map[text]text) (map[string]string, error) {
	if len(given) > maxEnv {
		return nil, unfit("env", "there are more than %d variables", maxEnv)
	}
	out, size := map[string]string{}, 0
	for _, name := range slices.Sorted(maps.Keys(given)) {
		value := given[name]
		field := "env." + printable(cut(string(name)))
		if !envName.MatchString(string(name)) {
			return nil, unfit(field, "is not the name of a variable: letters, digits and _, and no digit first")
		}
		if strings.ContainsRune(string(value), 0) {
			return nil, unfit(field, "has a NUL character in it, which no variable can hold")
		}
		if size += len(name) + len(value); size > maxEnvBytes {
			return nil, unfit("env", "names and values have more than %d bytes together", maxEnvBytes)
		}
		out[string(name)] = string(value)
	}
	return out, nil
}

// kernel is what the notebook says that it is for.
func (p *plan) kernel() notebook.Kernel {
	if p.spec.Command != "" {
		return notebook.Kernel{Name: bash, DisplayName: "Bash", Language: bash}
	}
	return kernelOf(p.environment)
}

func kernelOf(env *environments.Environment) notebook.Kernel {
	return notebook.Kernel{Name: env.Kernel.Name, DisplayName: env.DisplayName, Language: env.Language}
}

func makeNotebook(cells []string, book []byte, kernel notebook.Kernel) ([]byte, error) {
	if book == nil {
		raw, err := notebook.New(cells, kernel)
		return raw, ofNotebook("", http.StatusUnprocessableEntity, err)
	}
	raw, err := notebook.Adopt(book, kernel)
	return raw, ofNotebook("notebook", http.StatusBadRequest, err)
}

// ofNotebook makes a caller's error of what is wrong with a caller's notebook.
func ofNotebook(within string, status int, err error) error {
	var invalid *notebook.InvalidError
	if !errors.As(err, &invalid) {
		return err
	}
	field := invalid.Field
	switch {
	case within != "" && field != "":
		field = within + "." + field
	case within != "":
		field = within
	}
	if invalid.Field == "nbformat" { // another version of the format is not malformed
		status = http.StatusUnprocessableEntity
	}
	return &problem{status: status, field: field, text: fmt.Sprint(invalid.Reason)}
}
