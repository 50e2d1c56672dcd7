package web

import (
	"errors"
	"net/http"
	"slices"
	"strings"

	"notebox/access"
	"notebox/agent/tool"
	"notebox/environments"
	"notebox/executor"
	"notebox/executor/problem"
)

// ToolLanguage is what the tool runs where neither the application nor the model says it.
const ToolLanguage = "python"

// AboutTool is what a model is told of all languages.
func (k *Kit) AboutTool() tool.About {
	return tool.About{Timeout: min(k.Limits.Timeout, k.MaxTimeout), MaxTimeout: k.MaxTimeout, Network: k.Network != nil}
}

// ToolLanguages are those that a caller's models may use: first the one that is wanted, or
// for "" Python, or without that the default. There is one at least.
func (k *Kit) ToolLanguages(caller *access.Caller, wanted string) ([]tool.Language, error) {
	return k.LanguagesBeside(nil, caller, wanted)
}

// LanguagesBeside are ToolLanguages where an environment has a session that lives: that
// needs no image any more. live may be nil.
func (k *Kit) LanguagesBeside(live *environments.Environment, caller *access.Caller, wanted string) ([]tool.Language, error) {
	there := func(e *environments.Environment) bool { return e == live || k.Available(e.Name) }
	first := k.Executor.ByLanguage(wanted)
	switch {
	case wanted == "":
		first = k.Executor.ByLanguage(ToolLanguage)
	case first == nil || !caller.Sees(first.Name, first.Language):
		return nil, problem.Unfit("language", "%s is not known; there are: %s", problem.Quote(wanted), strings.Join(k.Executor.Languages(), ", "))
	case !there(first):
		return nil, k.Executor.MustBeAvailable(first)
	}
	all := k.LanguagesOf(caller, there)
	if len(all) == 0 {
		return nil, problem.NotFound()
	}
	if i := slices.IndexFunc(all, func(l tool.Language) bool { return first != nil && l.Name == first.Language }); i > 0 {
		l := all[i]
		all = slices.Insert(slices.Delete(all, i, i+1), 0, l)
	}
	return all, nil
}

// LanguagesOf are those that a caller sees and that are there, the default first.
func (k *Kit) LanguagesOf(caller *access.Caller, there func(*environments.Environment) bool) (all []tool.Language) {
	for i := range k.Environments {
		e := &k.Environments[i]
		if !caller.Sees(e.Name, e.Language) || !there(e) {
			continue
		}
		l := tool.Language{Name: e.Language, Aliases: e.Aliases, Title: e.DisplayName, Packages: e.PackageNames(), Notes: e.Notes}
		if k.Executor.CanInstall(e) {
			l.Dependencies, l.Allowed = e.Dependencies.Notation, k.Dependencies.Allowed()
		}
		all = append(all, l)
	}
	return all
}

// OfModel is what a model is told of an error that it can do something about, nil of another.
// The program cannot be run, or its packages cannot be installed, also while the registry is
// away. The model goes on without packages.
func OfModel(err error) error {
	var p *problem.Error
	switch {
	case errors.As(err, &p) && p.OfPackages():
		return tool.PackagesError("%s", p.Detail())
	case errors.As(err, &p) && p.Field == "code" && p.Status < http.StatusInternalServerError:
		return &tool.CallError{Reason: "its program " + p.Text}
	}
	return nil
}

// ToolResult is what a message tells of a reply.
func ToolResult(a *executor.Result) tool.Result {
	r := tool.Result{Status: string(a.Status), Text: a.Text, Hint: a.Hint}
	if a.Error != nil {
		r.Error = &tool.Raised{Name: a.Error.Name, Message: a.Error.Message, Traceback: a.Error.Traceback, Line: a.Error.Line}
	}
	for _, i := range a.Images {
		r.Images = append(r.Images, tool.Image{Name: i.Name, MediaType: i.MediaType, URL: i.URL, Data: i.Data, Error: i.Error})
	}
	for _, f := range a.Files {
		r.Files = append(r.Files, tool.File{Path: f.Path, Bytes: f.Bytes, URL: f.URL, Error: f.Error})
	}
	return r
}
