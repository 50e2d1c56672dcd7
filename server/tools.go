package server

import (
	"net/http"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"notebox/access"
	"notebox/agent/tool"
	"notebox/environments"
	"notebox/executor/problem"
	"notebox/server/body"
	"notebox/server/web"
)

// toolLanguage is what the tool runs where neither the application nor the model says it.
const toolLanguage = "python"

// toolList is the answer of GET /v1/tools.
type toolList struct {
	Name string `json:"name"`
	// Tools has for each notation a list that can be the tools of a request to a model.
	Tools map[tool.Notation][]any `json:"tools"`
}

// listTools answers GET /v1/tools.
func (s *Server) listTools(c echo.Context) error {
	query, err := body.Query(c.Request(), "notation", "session", "language")
	if err != nil {
		return err
	}
	notations := tool.Notations()
	if name := query.Get("notation"); name != "" {
		n, err := notationOf(name)
		if err != nil {
			return err
		}
		notations = []tool.Notation{n}
	}
	caller := web.Caller(c)
	about := s.aboutTool()
	if given := query.Get("session"); given != "" {
		session, err := body.ParseBool("session", given)
		if err != nil {
			return err
		}
		about.Session = *session
	}
	if about.Languages, err = s.toolLanguages(caller, query.Get("language")); err != nil {
		return err
	}
	if query.Get("language") != "" || about.Session { // a session has one
		about.Languages = about.Languages[:1]
	}
	answer := toolList{tool.Name, map[tool.Notation][]any{}}
	for _, n := range notations {
		answer.Tools[n] = []any{tool.Definition(n, about)}
	}
	return web.WriteJSON(c, http.StatusOK, echo.MIMEApplicationJSON, answer)
}

func notationOf(name string) (tool.Notation, error) {
	n := tool.Notation(name)
	if !n.Known() {
		return "", problem.Unfit("notation", "%s is not known; there are chat_completions, responses, anthropic and gemini", problem.Quote(name))
	}
	return n, nil
}

// aboutTool is what a model is told of all languages.
func (s *Server) aboutTool() tool.About {
	return tool.About{Timeout: min(s.Limits.Timeout, s.MaxTimeout), MaxTimeout: s.MaxTimeout, Network: s.Network != nil}
}

// toolLanguages are those that a caller's models may use: first the one that is wanted, or
// for "" Python, or without that the default. There is one at least.
func (s *Server) toolLanguages(caller *access.Caller, wanted string) ([]tool.Language, error) {
	return s.languagesBeside(nil, caller, wanted)
}

// languagesBeside are toolLanguages where an environment has a session that lives: that
// needs no image any more. live may be nil.
func (s *Server) languagesBeside(live *environments.Environment, caller *access.Caller, wanted string) ([]tool.Language, error) {
	there := func(e *environments.Environment) bool { return e == live || s.Available(e.Name) }
	first := s.Executor.ByLanguage(wanted)
	switch {
	case wanted == "":
		first = s.Executor.ByLanguage(toolLanguage)
	case first == nil || !caller.Sees(first.Name, first.Language):
		return nil, problem.Unfit("language", "%s is not known; there are: %s", problem.Quote(wanted), strings.Join(s.Executor.Languages(), ", "))
	case !there(first):
		return nil, s.Executor.MustBeAvailable(first)
	}
	all := s.languagesOf(caller, there)
	if len(all) == 0 {
		return nil, problem.NotFound()
	}
	if i := slices.IndexFunc(all, func(l tool.Language) bool { return first != nil && l.Name == first.Language }); i > 0 {
		l := all[i]
		all = slices.Insert(slices.Delete(all, i, i+1), 0, l)
	}
	return all, nil
}

// languagesOf are those that a caller sees and that are there, the default first.
func (s *Server) languagesOf(caller *access.Caller, there func(*environments.Environment) bool) (all []tool.Language) {
	for i := range s.Environments {
		e := &s.Environments[i]
		if !caller.Sees(e.Name, e.Language) || !there(e) {
			continue
		}
		l := tool.Language{Name: e.Language, Aliases: e.Aliases, Title: e.DisplayName, Packages: packageNames(e), Notes: e.Notes}
		if s.Executor.CanInstall(e) {
			l.Dependencies, l.Allowed = e.Dependencies.Notation, s.Dependencies.Allowed()
		}
		all = append(all, l)
	}
	return all
}

func packageNames(env *environments.Environment) (names []string) {
	for _, p := range env.Packages {
		names = append(names, p.Name)
	}
	return names
}
