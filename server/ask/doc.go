// Package ask answers questions by an agent, which writes code and has it run: POST /run, and
// POST /foo, as older programs call it.
//
//  1. readQuestion (question.go) reads what is asked, and its files.
//  2. handler.ask (ask.go) makes an agent for the caller, and has it answer.
//  3. What the agent wants to run begins at the executor, as its caller's (runs.go).
package ask

import (
	"net/http"

	"notebox/server/web"
)

// handler answers questions.
type handler struct {
	*web.Kit
	questions *questions // nil: no model is configured
}

// Routes are the calls. config may be nil: then no model is configured, and they say so.
func Routes(kit *web.Kit, config *Config) []web.Route {
	h := &handler{kit, newQuestions(config, func() bool { return kit.Keys.Len() > 1 })}
	return []web.Route{
		web.On(http.MethodPost, "/run", h.ask),
		web.On(http.MethodPost, "/foo", h.ask),
	}
}
