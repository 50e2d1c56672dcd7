// Package functiontool is the function tool for models: GET /v1/tools has its definition in
// each provider's notation, POST /v1/tools/call takes a call as the model wrote it and answers
// with the message that goes back to the model. Package agent/tool knows the notations.
package functiontool

import (
	"net/http"

	"notebox/server/web"
)

// handler answers the calls.
type handler struct{ *web.Kit }

// Routes are the calls.
func Routes(kit *web.Kit) []web.Route {
	h := &handler{kit}
	return []web.Route{
		web.On(http.MethodGet, "/v1/tools", h.listTools),
		web.On(http.MethodPost, "/v1/tools/call", h.callTool).NamesSession(),
	}
}
