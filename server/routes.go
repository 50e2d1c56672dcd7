package server

import (
	"io"
	"log"
	"net/http"
	"strings"

	"notebox/executor/problem"
	"notebox/server/web"

	"github.com/labstack/echo/v4"
)

// route is one call of the API.
type route struct {
	method  string
	path    string
	handler echo.HandlerFunc
	open    bool // needs no API key
}

// routes is the one list of all calls; openapi.json describes each of them.
func (s *Server) routes() []route {
	return append([]route{
		{http.MethodPost, "/v1/execute", s.execute, false},
		{http.MethodGet, executionsPrefix + ":id", s.getExecution, false},
		{http.MethodDelete, executionsPrefix + ":id", s.cancelExecution, false},
		{http.MethodPost, "/run", s.runAgent, false},
		{http.MethodPost, "/foo", s.runAgent, false},
		{http.MethodGet, "/v1/environments", s.listEnvironments, false},
		{http.MethodPost, strings.TrimSuffix(filesPrefix, "/"), s.keepInputs, false},
		{http.MethodGet, filesPrefix + "*", s.serveFile, true}, // signed
		{http.MethodDelete, filesPrefix + "*", s.dropInput, false},
		{http.MethodGet, "/v1/tools", s.listTools, false},
		{http.MethodPost, "/v1/tools/call", s.callTool, false},
		{http.MethodPost, sessionsPath, s.openSession, false},
		{http.MethodGet, sessionsPath, s.listSessions, false},
		{http.MethodGet, sessionPath, s.getSession, false},
		{http.MethodDelete, sessionPath, s.closeSession, false},
		{http.MethodPost, sessionPath + "/interrupt", s.interruptSession, false},
		{http.MethodPost, sessionPath + "/restart", s.restartSession, false},
		{http.MethodPost, sessionPath + "/move", s.moveSessionFile, false},
		{http.MethodGet, sessionPath + "/files", s.listSessionFiles, false},
		{http.MethodGet, sessionPath + "/files/*", s.readSessionFile, false},
		{http.MethodPut, sessionPath + "/files/*", s.writeSessionFile, false},
		{http.MethodDelete, sessionPath + "/files/*", s.deleteSessionFile, false},
		{http.MethodPost, mcpPath, s.serveMCP, false},
		{http.MethodGet, mcpPath, s.serveMCP, false},
		{http.MethodDelete, mcpPath, s.serveMCP, false},
		{http.MethodGet, "/healthz", s.healthz, true},
		{http.MethodGet, "/readyz", s.readyz, true},
		{http.MethodGet, "/metrics", s.serveMetrics, false},
		{http.MethodGet, "/openapi.json", s.serveOpenAPI, true},
		{http.MethodGet, "/docs", s.serveDocs, true},
		{http.MethodGet, "/docs/:asset", s.servePageAsset, true},
		{http.MethodGet, "/redoc", s.serveRedoc, true},
	}, s.difyRoutes()...)
}

func (s *Server) newEcho(allowOrigins []string) *echo.Echo {
	e := echo.New()
	e.HTTPErrorHandler = s.answerError
	e.Logger.SetOutput(io.Discard)
	e.StdLogger = log.New(io.Discard, "", 0)
	// Pre, so that these hold for addresses and methods that do not exist too.
	e.Pre(s.connections.serve, s.traceRequests, s.logRequests, s.pace.Keep, s.unread.Deliver, s.recoverPanic, harden, s.browsers.guard)
	if cors := s.browsers.cors(allowOrigins); cors != nil {
		e.Pre(cors)
	}
	for _, r := range s.routes() {
		handler := s.requireKey(r.handler)
		if r.open {
			handler = openly(r.handler)
		}
		e.Add(r.method, r.path, handler)
		if r.method == http.MethodGet {
			e.Add(http.MethodHead, r.path, handler)
		}
	}
	return e
}

// openly is of what is in memory anyway, or in the store: nothing of it is put aside.
func openly(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		web.Direct(c)
		return next(c)
	}
}

// serveMetrics answers GET /metrics.
func (s *Server) serveMetrics(c echo.Context) error {
	if s.metrics == nil {
		return problem.NotFound()
	}
	s.metrics.ServeHTTP(c.Response(), c.Request())
	return nil
}

// harden sets what every response says: no answer is sniffed for another type,
// or tells another site the address that it came from.
func harden(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		h := c.Response().Header()
		h.Set(echo.HeaderXContentTypeOptions, "nosniff")
		h.Set(echo.HeaderReferrerPolicy, "no-referrer")
		return next(c)
	}
}

// base is what links start with. X-Forwarded-* is not looked at: anybody may
// send it, so a service behind a proxy has --public-url.
func (s *Server) base(r *http.Request) string {
	if s.publicURL != "" {
		return s.publicURL
	}
	if r.TLS != nil {
		return "https://" + r.Host
	}
	return "http://" + r.Host
}
