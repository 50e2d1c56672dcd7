// Package native is notebox's own HTTP API, as /openapi.json describes it: runs, sessions with
// their files, kept inputs, links.
package native

import (
	"net/http"
	"strings"

	"notebox/server/web"
)

// handler answers the calls.
type handler struct{ *web.Kit }

// Routes are the calls.
func Routes(kit *web.Kit) []web.Route {
	s := &handler{kit}
	return []web.Route{
		web.On(http.MethodPost, "/v1/execute", s.execute).NamesSession(),
		web.On(http.MethodGet, executionsPrefix+":id", s.getExecution),
		web.On(http.MethodDelete, executionsPrefix+":id", s.cancelExecution),
		web.On(http.MethodGet, "/v1/environments", s.listEnvironments),
		web.On(http.MethodPost, strings.TrimSuffix(FilesPrefix, "/"), s.keepInputs),
		web.On(http.MethodGet, FilesPrefix+"*", s.serveFile).WithoutKey(), // signed
		web.On(http.MethodDelete, FilesPrefix+"*", s.dropInput),
		web.On(http.MethodPost, sessionsPath, s.openSession),
		web.On(http.MethodGet, sessionsPath, s.listSessions),
		web.On(http.MethodGet, sessionPath, s.getSession),
		web.On(http.MethodDelete, sessionPath, s.closeSession),
		web.On(http.MethodPost, sessionPath+"/interrupt", s.interruptSession),
		web.On(http.MethodPost, sessionPath+"/restart", s.restartSession),
		web.On(http.MethodPost, sessionPath+"/move", s.moveSessionFile),
		web.On(http.MethodGet, sessionPath+"/files", s.listSessionFiles),
		web.On(http.MethodGet, sessionPath+"/files/*", s.readSessionFile),
		web.On(http.MethodPut, sessionPath+"/files/*", s.writeSessionFile),
		web.On(http.MethodDelete, sessionPath+"/files/*", s.deleteSessionFile),
	}
}
