package executor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"notebox/access"
	"notebox/dependencies"
	"notebox/environments"
	"notebox/executor/problem"
	"notebox/notebook"
	"notebox/runner"
)

// Dependencies gives environments the packages that requests ask for;
// *dependencies.Layers does.
type Dependencies interface {
	// Parse returns an error that is a *dependencies.InvalidError.
	Parse(of environments.Dependencies, entries []string) (dependencies.Set, error)
	Get(ctx context.Context, r dependencies.Request) (*dependencies.Layer, error)
	Allowed() []string
}

// maxInstallText bounds what a reply has of an installer's words, bytes: the end of them,
// where the reason is.
const maxInstallText = 16 << 10

// CanInstall reports whether requests for an environment may have dependencies.
func (x *Executor) CanInstall(env *environments.Environment) bool {
	return x.dependencies != nil && env.Dependencies != nil
}

// dependenciesOf checks the packages of a request.
func (x *Executor) dependenciesOf(env *environments.Environment, asked []string) (dependencies.Set, error) {
	switch {
	case len(asked) == 0:
		return dependencies.Set{}, nil
	case env.Dependencies == nil:
		return dependencies.Set{}, problem.Unfit("dependencies", "are not supported for %s", env.Language)
	case x.dependencies == nil:
		return dependencies.Set{}, &problem.Error{Status: problem.StatusForbidden, Field: "dependencies", Text: "this service's operator allows none"}
	}
	set, err := x.dependencies.Parse(*env.Dependencies, asked)
	var invalid *dependencies.InvalidError
	if !errors.As(err, &invalid) {
		return set, err
	}
	p := problem.Unfit("dependencies", "%s", invalid.Reason)
	if invalid.Index >= 0 {
		p.Field = fmt.Sprintf("dependencies[%d]", invalid.Index)
	}
	if invalid.Forbidden {
		p.Status = problem.StatusForbidden
	}
	return set, p
}

// Install is what a result says of the packages that were asked for.
type Install struct {
	Packages []environments.Package `json:"packages"` // with what they need; none if the image has all
	Seconds  float64                `json:"seconds"`
	Cached   bool                   `json:"cached"`
}

// Installing is the data of an install event.
type Installing struct {
	Text string `json:"text"`
}

// packages are those of one run.
type packages struct {
	layer   *dependencies.Layer // nil if none were asked for
	failure *dependencies.Failure
	said    tail // by the installer
	entry   *Install
}

// install has the packages of a plan in its environment. Its result must be released.
func (x *Executor) install(ctx context.Context, p *plan, place *access.Run, to Listener) (*packages, error) {
	in := new(packages)
	if p.dependencies.Empty() {
		return in, nil
	}
	layer, err := x.dependencies.Get(ctx, dependencies.Request{
		Environment: *p.environment, Base: p.spec.Environment, Set: p.dependencies, Owner: p.spec.Owner, ID: p.spec.ID,
		Text: func(text string) {
			text = notebook.Plain(text)
			in.said.add(text)
			to.Install(text)
		},
		Ran: charge(place),
	})
	switch {
	case errors.As(err, &in.failure):
		return in, nil
	case err != nil:
		return nil, err
	}
	in.layer, p.spec.Environment = layer, layer.Environment
	in.entry = &Install{append([]environments.Package{}, layer.Packages...), layer.Took.Round(time.Millisecond).Seconds(), layer.Cached}
	return in, nil
}

func (in *packages) release() {
	if in.layer != nil {
		in.layer.Release()
	}
}

// hinder reports whether a run did not begin because of them, which is their failure then.
func (in *packages) hinder(err error) bool {
	var unusable *runner.Error
	if in.layer == nil || !errors.As(err, &unusable) || unusable.Code != runner.CodePackages {
		return false
	}
	in.failure = &dependencies.Failure{Name: dependencies.Unusable, Message: unusable.Message}
	return true
}

// charge has the caller pay for the installer's CPU time.
func charge(place *access.Run) func(*runner.Outcome, error, time.Duration, runner.Limits) {
	return func(out *runner.Outcome, err error, took time.Duration, l runner.Limits) {
		place.Charge(cpuTime(out, err, took, l))
	}
}

// notInstalled is the result of a run that could not begin, with the installer's words.
func (x *Executor) notInstalled(ctx context.Context, p *plan, in *packages) *Result {
	f, events := in.failure, x.newSink(ctx, p, Silence{})
	a := x.result(context.WithoutCancel(ctx), p, &runner.Outcome{Status: runner.StatusError}, events)
	message := strings.TrimSpace(notebook.Plain(f.Message))
	a.Error = &Exception{Name: f.Name, Message: message}
	a.Text = shorten(context.WithoutCancel(ctx), events.keeper, endLine(in.said.String())+f.Name+": "+message+"\n")
	a.Hint = hintForPackages(p, f.Name)
	return a
}

func hintForPackages(p *plan, name string) string {
	what := "packages in dependencies cannot be had together, and no code was run: check their names and versions against what the installer says in text, or leave them out and"
	switch name {
	case dependencies.TooLarge:
		what = "packages in dependencies are larger than a set may be: ask for fewer or smaller ones, or"
	case dependencies.TooSlow:
		what = "packages in dependencies took too long to install: ask for fewer or smaller ones, or"
	case dependencies.TooNoisy, dependencies.Crashed:
		what = "installer of the packages in dependencies did not get to its end, and no code was run: ask for fewer or smaller ones, or"
	case dependencies.Unusable:
		what = "packages in dependencies hide what the kernel itself needs, and no code was run: leave out those that are other versions of its own parts, or"
	}
	return "The " + what + " use what is there, such as " + packagesOf(p) + "."
}

// installForSession is install for a session, which has no run to tell of it. The
// layer has to be released when the session is over. That may be said twice.
func (x *Executor) installForSession(ctx context.Context, caller *access.Caller, env *environments.Environment, set dependencies.Set, spec *runner.SessionSpec) (release func(), err error) {
	if set.Empty() {
		return func() {}, nil
	}
	place, err := caller.BeginRun()
	if err != nil {
		return nil, err
	}
	defer place.End()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(x.runs, cancel)() // the service ends
	layer, err := x.dependencies.Get(ctx, dependencies.Request{
		Environment: *env, Base: spec.Environment, Set: set, Owner: spec.Owner, ID: spec.ID, Ran: charge(place),
	})
	var failure *dependencies.Failure
	switch {
	case errors.As(err, &failure):
		return nil, problem.Unfit("dependencies", "%s: %s", failure.Name, problem.OneLine(failure.Message))
	case err != nil:
		return nil, err
	}
	spec.Environment = layer.Environment
	return layer.Release, nil
}

// tail keeps the end of a text.
type tail struct {
	text string
	cut  bool // it had more before
}

func (t *tail) add(more string) {
	t.text += more
	if surplus := len(t.text) - maxInstallText; surplus > maxInstallText { // seldom, as all is copied
		t.text, t.cut = t.text[surplus:], true
	}
}

// String begins with a whole line, or if the last one is too long, with a part of it.
func (t *tail) String() string {
	surplus := len(t.text) - maxInstallText
	if surplus <= 0 && !t.cut {
		return t.text
	}
	text := t.text[max(0, surplus):]
	if _, whole, ok := strings.Cut(text, "\n"); ok && whole != "" {
		text = whole
	}
	return "[…]\n" + strings.ToValidUTF8(text, "")
}
