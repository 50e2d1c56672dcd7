package executor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"notebox/access"
	"notebox/dependencies"
	"notebox/environments"
	"notebox/executor/problem"
	"notebox/notebook"
	"notebox/runner"
)

// Bounds on what a request may set.
const (
	MaxEnv      = 256      // variables
	maxEnvBytes = 64 << 10 // of names and values; Linux refuses one of 128 KiB
	// maxProgram bounds a program as a notebook, in bytes: a control character is one byte
	// of code and six of JSON, and a run has several copies of it.
	maxProgram = 64 << 20
)

// envName is what POSIX calls a name; shells refuse others.
var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// plan is a request that was found good: what to run, and in what.
type plan struct {
	spec        runner.Spec
	environment *environments.Environment
	inputs      *Inputs // their URLs are not fetched yet
	entrypoint  string  // the program's file below /mnt/data; "" for code
	language    string  // the notebook's; "" if it names none, or there is no notebook
	linkImages  bool
	started     time.Time
	base        string     // what links start with
	session     *inSession // nil: in a sandbox of its own

	dependencies dependencies.Set // packages to be there
	installs     bool             // those like it may have packages: of a session when it is opened

	going atomic.Pointer[sink] // of the run, while it goes on and after
}

// makePlan checks everything in a request that can be checked before a file is
// fetched or a sandbox taken.
func (x *Executor) makePlan(ctx context.Context, o *Order, caller *access.Caller) (*plan, error) {
	cells, book, err := o.program()
	if err != nil {
		return nil, err
	}
	p := &plan{inputs: new(o.Inputs), // the rest of o is for nothing while it waits
		linkImages: o.LinkImages}
	if p.entrypoint, err = o.entrypoint(); err != nil {
		return nil, err
	}
	if err := x.readLanguage(ctx, p, o, book, caller); err != nil {
		return nil, err
	}
	if o.Session == nil {
		p.environment, err = x.environment(p, o)
	} else {
		err = x.planSession(p, o, cells, book, caller)
	}
	if err != nil {
		return nil, err
	}
	env := p.environment
	if err := caller.MayUse(env.Name, env.Language); err != nil {
		return nil, err
	}
	if o.Session == nil {
		if err := x.MustBeAvailable(env); err != nil {
			return nil, err
		}
	}
	if p.entrypoint != "" {
		cell := p.command()
		if cell == "" {
			if cell, err = entrypointCell(env, p.entrypoint); err != nil {
				return nil, err
			}
		}
		cells = []string{cell}
	}
	if p.dependencies, err = x.dependenciesOf(env, o.Dependencies); err != nil {
		return nil, err
	}
	p.installs = x.CanInstall(env) && !o.NoPackages
	p.spec = runner.Spec{
		Environment: EnvironmentOf(*env),
		StopOnError: o.StopOnError == nil || *o.StopOnError,
		Limits:      LimitsOf(*env, x.limits),
	}
	if p.spec.Network, err = x.networkOf(o.Network, caller); err != nil {
		return nil, err
	}
	p.spec.Command = p.command()
	if p.spec.Limits.Timeout, err = x.timeout(o.Timeout, p.spec.Limits.Timeout); err != nil {
		return nil, err
	}
	if p.spec.Env, err = kernelEnv(o.Env); err != nil {
		return nil, err
	}
	if err := o.Inputs.Check(p.spec.Limits.DataSize); err != nil {
		return nil, err
	}
	_, span := x.tracer.Start(ctx, "notebook.New")
	defer EndSpan(span)()
	err = x.intake.InTurn(ctx, caller.Owner(), o.size(), func() (err error) {
		p.spec.Notebook, err = MakeNotebook(cells, book, p.kernel())
		return err
	})
	if err != nil {
		return nil, err
	}
	if len(p.spec.Notebook) > maxProgram {
		return nil, problem.TooLarge("code", "has more than %d bytes as a notebook", maxProgram)
	}
	span.SetAttributes(attribute.Int("notebox.notebook.bytes", len(p.spec.Notebook)))
	p.started, p.base = x.now(), o.Base
	p.spec.Owner = caller.Owner()
	if !o.Until.IsZero() {
		p.spec.WaitUntil = o.Until
		p.spec.Limits.Timeout = min(x.maxTimeout, time.Until(o.Until))
	}
	p.spec.ID, err = NewID("run_", p.started)
	return p, err
}

// readLanguage sets the plan's language. Only so many large notebooks are read at one time.
func (x *Executor) readLanguage(ctx context.Context, p *plan, o *Order, book []byte, caller *access.Caller) error {
	if book == nil {
		return nil
	}
	return x.intake.InTurn(ctx, caller.Owner(), o.size(), func() error {
		p.language = notebook.Language(book)
		return nil
	})
}

// command is the one that the plan runs in a session beside its kernel; "" for code.
func (p *plan) command() string {
	if p.session == nil {
		return ""
	}
	return p.session.command
}

// size is how long the program is, bytes.
func (o *Order) size() int64 {
	n := len(o.Notebook)
	if o.Code != nil {
		n += len(*o.Code)
	}
	for _, cell := range o.Cells {
		n += len(cell)
	}
	return int64(n)
}

// program returns the code as cells, or the notebook; neither for an entrypoint.
func (o *Order) program() (cells []string, book []byte, err error) {
	hasBook := len(o.Notebook) > 0 && !bytes.Equal(o.Notebook, []byte("null"))
	var given []string
	for name, there := range map[string]bool{"code": o.Code != nil, "cells": o.Cells != nil, "notebook": hasBook, "entrypoint": o.Entrypoint != nil} {
		if there {
			given = append(given, name)
		}
	}
	slices.Sort(given)
	switch {
	case len(given) == 0:
		return nil, nil, problem.Malformed("code", "exactly one of code, cells, notebook and entrypoint must be given; none is")
	case len(given) > 1:
		return nil, nil, problem.Malformed(given[1], "exactly one of code, cells, notebook and entrypoint must be given; there are %s", strings.Join(given, " and "))
	case o.Entrypoint != nil:
		return nil, nil, nil
	case hasBook:
		return nil, o.Notebook, nil
	case o.Code != nil:
		if *o.Code == "" {
			return nil, nil, problem.Malformed("code", "is empty")
		}
		return []string{withoutBOM(*o.Code)}, nil, nil
	case len(o.Cells) == 0:
		return nil, nil, problem.Malformed("cells", "is empty")
	}
	for _, cell := range o.Cells {
		cells = append(cells, withoutBOM(cell))
	}
	return cells, nil, nil
}

// withoutBOM drops the U+FEFF that some editors begin a file with, as those who read files do.
func withoutBOM(code string) string { return strings.TrimPrefix(code, "\ufeff") }

// environment finds the one for the request's language: the field's, the notebook's, the
// media type's, or the default's. If several are given they must agree. What an
// entrypoint is called says it where nothing else does.
func (x *Executor) environment(p *plan, o *Order) (*environments.Environment, error) {
	var chosen *environments.Environment
	choose := func(field, language string) error {
		env := x.ByLanguage(language)
		if env == nil {
			return problem.Unfit(field, "%s is not known; there are: %s", problem.Quote(language), strings.Join(x.Languages(), ", "))
		}
		if chosen != nil && chosen.Name != env.Name {
			return problem.Unfit(field, "is %s, which does not agree with the %s", problem.Quote(language), map[bool]string{true: "notebook's language", false: "Content-Type"}[p.language != ""])
		}
		chosen = env
		return nil
	}
	if p.language != "" {
		if err := choose("notebook.metadata.kernelspec.language", p.language); err != nil {
			return nil, err
		}
	}
	if env := x.byMediaType(o.MediaType); env != nil {
		chosen = env
	}
	if o.Language != nil {
		if err := choose("language", *o.Language); err != nil {
			return nil, err
		}
	}
	if chosen == nil {
		chosen = x.byExtension(p.entrypoint)
	}
	if chosen == nil {
		chosen = &x.environments[0]
	}
	return chosen, nil
}

// ByLanguage finds an environment by its language or an alias; nil if there is none.
func (x *Executor) ByLanguage(language string) *environments.Environment {
	return x.find(func(e *environments.Environment) bool {
		return strings.EqualFold(e.Language, language) || slices.ContainsFunc(e.Aliases, func(name string) bool { return strings.EqualFold(name, language) })
	})
}

// find returns the first environment that is meant, nil if none is.
func (x *Executor) find(isMeant func(*environments.Environment) bool) *environments.Environment {
	for i := range x.environments {
		if isMeant(&x.environments[i]) {
			return &x.environments[i]
		}
	}
	return nil
}

// Languages are those that can be run now.
func (x *Executor) Languages() []string {
	var out []string
	for _, e := range x.environments {
		if x.available(e.Name) {
			out = append(out, e.Language)
		}
	}
	return out
}

// MustBeAvailable refuses an environment whose image is not installed.
func (x *Executor) MustBeAvailable(env *environments.Environment) error {
	if x.available(env.Name) {
		return nil
	}
	return &problem.Error{Status: problem.StatusUnavailable, Field: "language", Text: fmt.Sprintf("the image of %s is not installed: notebox image build %s", env.Name, env.Name)}
}

// timeout is the time limit of a run that asks for it, or for none.
func (x *Executor) timeout(asked *float64, otherwise time.Duration) (time.Duration, error) {
	if asked == nil {
		return min(otherwise, x.maxTimeout), nil
	}
	f := *asked
	if math.IsNaN(f) || f <= 0 || f > x.maxTimeout.Seconds() {
		return 0, problem.Unfit("timeout", "must be above 0 and at most %v seconds", x.maxTimeout.Seconds())
	}
	// the shortest that is told apart from no time at all
	return max(time.Duration(f*float64(time.Second)), time.Millisecond), nil
}

// kernelEnv checks the variables of a request.
func kernelEnv(given map[string]string) (map[string]string, error) {
	if len(given) > MaxEnv {
		return nil, problem.Unfit("env", "there are more than %d variables", MaxEnv)
	}
	out, size := map[string]string{}, 0
	for _, name := range slices.Sorted(maps.Keys(given)) {
		value := given[name]
		field := "env." + problem.Printable(problem.Cut(name))
		if !envName.MatchString(name) {
			return nil, problem.Unfit(field, "is not the name of a variable: letters, digits and _, and no digit first")
		}
		if strings.ContainsRune(value, 0) {
			return nil, problem.Unfit(field, "has a NUL character in it, which no variable can hold")
		}
		if size += len(name) + len(value); size > maxEnvBytes {
			return nil, problem.Unfit("env", "names and values have more than %d bytes together", maxEnvBytes)
		}
		out[name] = value
	}
	return out, nil
}

// kernel is what the notebook says that it is for.
func (p *plan) kernel() notebook.Kernel {
	if p.spec.Command != "" {
		return notebook.Kernel{Name: Bash, DisplayName: "Bash", Language: Bash}
	}
	return KernelOf(p.environment)
}

// KernelOf is what a notebook for an environment says that it is for.
func KernelOf(env *environments.Environment) notebook.Kernel {
	return notebook.Kernel{Name: env.Kernel.Name, DisplayName: env.DisplayName, Language: env.Language}
}

// MakeNotebook makes a notebook of cells, or has one that a caller sent be for a kernel.
func MakeNotebook(cells []string, book []byte, kernel notebook.Kernel) ([]byte, error) {
	if book == nil {
		raw, err := notebook.New(cells, kernel)
		return raw, ofNotebook("", problem.StatusUnfit, err)
	}
	raw, err := notebook.Adopt(book, kernel)
	return raw, ofNotebook("notebook", problem.StatusMalformed, err)
}

// ofNotebook makes a caller's error of what is wrong with a caller's notebook.
func ofNotebook(within string, status problem.Status, err error) error {
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
		status = problem.StatusUnfit
	}
	return &problem.Error{Status: status, Field: field, Text: fmt.Sprint(invalid.Reason)}
}

// LimitsOf are those of an environment's sandboxes: the service's, and no less than what
// the environment needs.
func LimitsOf(env environments.Environment, l runner.Limits) runner.Limits {
	needs := env.Needs
	l.Memory = max(l.Memory, int64(needs.Memory))
	l.DataSize = max(l.DataSize, int64(needs.DataSize))
	l.TmpSize = max(l.TmpSize, int64(needs.TmpSize))
	l.Pids = max(l.Pids, needs.Pids)
	l.Timeout = max(l.Timeout, time.Duration(needs.Timeout))
	return l
}

// EnvironmentOf is what sandboxes of an environment are started from.
func EnvironmentOf(env environments.Environment) runner.Environment {
	k := env.Kernel
	return runner.Environment{Name: env.Name, Image: env.Image, Kernel: runner.Kernel{
		Name: k.Name, WarmUp: k.WarmUp, Interrupts: k.Interrupts, Finishes: k.Finishes, Env: k.Env,
	}}
}
