package server

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"notebox/access"
	"notebox/agent/tool"
	"notebox/environments"
)

// toolLanguage is what the tool runs.
const toolLanguage = "python"

// toolList is the answer of GET /v1/tools.
type toolList struct {
	Name string `json:"name"`
	// Tools has for each notation a list that can be the tools of a request to a model.
	Tools map[tool.Notation][]any `json:"tools"`
}

// listTools answers GET /v1/tools.
func (s *Server) listTools(c echo.Context) error {
	query, err := parameters(c.Request(), "notation", "session")
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
	about, err := s.aboutTool(callerOf(c))
	if err != nil {
		return err
	}
	if given := query.Get("session"); given != "" {
		session, err := parseBool("session", given)
		if err != nil {
			return err
		}
		about.Session = *session
	}
	answer := toolList{tool.Name, map[tool.Notation][]any{}}
	for _, n := range notations {
		answer.Tools[n] = []any{tool.Definition(n, about)}
	}
	return writeJSON(c, http.StatusOK, echo.MIMEApplicationJSON, answer)
}

func notationOf(name string) (tool.Notation, error) {
	n := tool.Notation(name)
	if !n.Known() {
		return "", unfit("notation", "%s is not known; there are chat_completions, responses, anthropic and gemini", quote(name))
	}
	return n, nil
}

// aboutTool is what a model is told of the caller's Python.
func (s *Server) aboutTool(caller *access.Caller) (tool.About, error) {
	env := s.byLanguage(toolLanguage)
	if env == nil || !caller.Sees(env.Name, env.Language) {
		return tool.About{}, notFound()
	}
	return tool.About{
		Packages: packageNames(env), Notes: env.Notes,
		Timeout: min(s.limits.Timeout, s.maxTimeout), MaxTimeout: s.maxTimeout,
		Network: s.network != nil,
	}, nil
}

func packageNames(env *environments.Environment) (names []string) {
	for _, p := range env.Packages {
		names = append(names, p.Name)
	}
	return names
}
