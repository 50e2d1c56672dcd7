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

// routes is the one list of all calls; openapi.json describes each of them.
func (s *Server) routes() []web.Route {
	return append([]web.Route{
		web.On(http.MethodPost, "/v1/execute", s.execute),
		web.On(http.MethodGet, executionsPrefix+":id", s.getExecution),
		web.On(http.MethodDelete, executionsPrefix+":id", s.cancelExecution),
		web.On(http.MethodPost, "/run", s.runAgent),
		web.On(http.MethodPost, "/foo", s.runAgent),
		web.On(http.MethodGet, "/v1/environments", s.listEnvironments),
		web.On(http.MethodPost, strings.TrimSuffix(filesPrefix, "/"), s.keepInputs),
		web.On(http.MethodGet, filesPrefix+"*", s.serveFile).WithoutKey(), // signed
		web.On(http.MethodDelete, filesPrefix+"*", s.dropInput),
		web.On(http.MethodGet, "/v1/tools", s.listTools),
		web.On(http.MethodPost, "/v1/tools/call", s.callTool),
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
		web.On(http.MethodPost, mcpPath, s.serveMCP),
		web.On(http.MethodGet, mcpPath, s.serveMCP),
		web.On(http.MethodDelete, mcpPath, s.serveMCP),
		web.On(http.MethodGet, "/healthz", s.healthz).WithoutKey(),
		web.On(http.MethodGet, "/readyz", s.readyz).WithoutKey(),
		web.On(http.MethodGet, "/metrics", s.serveMetrics),
		web.On(http.MethodGet, "/openapi.json", s.serveOpenAPI).WithoutKey(),
		web.On(http.MethodGet, "/docs", s.serveDocs).WithoutKey(),
		web.On(http.MethodGet, "/docs/:asset", s.servePageAsset).WithoutKey(),
		web.On(http.MethodGet, "/redoc", s.serveRedoc).WithoutKey(),
	}, s.difyRoutes()...)
}

func (s *Server) newEcho(allowOrigins []string) *echo.Echo {
	e := echo.New()
	e.HTTPErrorHandler = s.answerError
	e.Logger.SetOutput(io.Discard)
	e.StdLogger = log.New(io.Discard, "", 0)
	// Pre, so that these hold for addresses and methods that do not exist too.
	e.Pre(s.connections.serve, s.traceRequests, s.logRequests, s.Pace.Keep, s.Unread.Deliver, web.RecoverPanic, harden, s.browsers.guard)
	if cors := s.browsers.cors(allowOrigins); cors != nil {
		e.Pre(cors)
	}
	for _, r := range s.routes() {
		handler := s.requireKey(r.Handler)
		if r.Open {
			handler = openly(r.Handler)
		}
		e.Add(r.Method, r.Path, handler)
		if r.Method == http.MethodGet {
			e.Add(http.MethodHead, r.Path, handler)
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
