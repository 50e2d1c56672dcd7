package functiontool

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"notebox/agent/tool"
	"notebox/executor/problem"
	"notebox/server/body"
	"notebox/server/web"
)

// toolList is the answer of GET /v1/tools.
type toolList struct {
	Name string `json:"name"`
	// Tools has for each notation a list that can be the tools of a request to a model.
	Tools map[tool.Notation][]any `json:"tools"`
}

// listTools answers GET /v1/tools.
func (s *handler) listTools(c echo.Context) error {
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
	about := s.AboutTool()
	session := new(bool)
	if given := query.Get("session"); given != "" {
		if err := body.BoolField("session", &session).Set([]byte(given)); err != nil {
			return err
		}
	}
	about.Session = *session
	if about.Languages, err = s.ToolLanguages(caller, query.Get("language")); err != nil {
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
