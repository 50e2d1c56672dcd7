package server

import (
	"io"
	"log"
	"net/http"

	"notebox/executor/problem"
	"notebox/server/web"

	"github.com/labstack/echo/v4"
)

// own are the calls of no protocol.
func (s *Server) own() []web.Route {
	return []web.Route{
		web.On(http.MethodGet, "/healthz", s.healthz).WithoutKey(),
		web.On(http.MethodGet, "/readyz", s.readyz).WithoutKey(),
		web.On(http.MethodGet, "/metrics", s.serveMetrics),
		web.On(http.MethodGet, "/openapi.json", s.serveOpenAPI).WithoutKey(),
		web.On(http.MethodGet, "/docs", answerWith(s.pages.ServeDocs)).WithoutKey(),
		web.On(http.MethodGet, "/docs/:asset", s.servePageAsset).WithoutKey(),
		web.On(http.MethodGet, "/redoc", answerWith(s.pages.ServeRedoc)).WithoutKey(),
		web.On(http.MethodGet, "/page/frame", answerWith(s.page.ServeFrame)).WithoutKey(),
		web.On(http.MethodGet, "/page/:asset", s.servePagePart).WithoutKey(),
	}
}

func (s *Server) newEcho(allowOrigins []string) *echo.Echo {
	e := echo.New()
	e.HTTPErrorHandler = s.answerError
	e.Logger.SetOutput(io.Discard)
	e.StdLogger = log.New(io.Discard, "", 0)
	// Pre, so that these hold for addresses and methods that do not exist too.
	e.Pre(s.connections.serve, s.traceRequests, s.logRequests, s.Pace.Keep, s.Unread.Deliver, web.RecoverPanic, harden)
	if s.Peers != nil {
		e.Pre(s.arrive)
	}
	e.Pre(s.browsers.guard)
	if cors := s.browsers.cors(allowOrigins); cors != nil {
		e.Pre(cors)
	}
	for _, r := range s.calls {
		handler := s.requireKey(s.pass(r))
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
