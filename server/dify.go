package server

import (
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"notebox/executor"
	"notebox/executor/intake"
	"notebox/executor/problem"
	"notebox/server/body"
	"notebox/server/dify"
	"notebox/server/web"
)

// difyState is what the calls of package dify share.
type difyState struct {
	runTime       time.Duration // 0 is dify.RunTime
	conversations locks         // by owner and conversation
}

// difyRoutes are the calls of package dify.
func (s *Server) difyRoutes() []web.Route {
	routes := []web.Route{
		web.On(http.MethodGet, "/", s.difyHello).WithoutKey(),
		web.On(http.MethodGet, dify.FilesPrefix+":sandbox_id/:filename", s.serveDifyFile).WithoutKey(), // signed
		web.On(http.MethodGet, "/dify/openapi.json", s.serveDifyOpenAPI).WithoutKey(),
	}
	for _, call := range dify.Calls() {
		routes = append(routes, web.On(http.MethodPost, call.Path(), s.difyCall(call)))
	}
	return routes
}

// difyHello answers GET /: that the service is there, or, to a browser, where to read on.
func (s *Server) difyHello(c echo.Context) error {
	if strings.Contains(c.Request().Header.Get(echo.HeaderAccept), "text/html") {
		c.Response().Header().Set(echo.HeaderLocation, "docs") // relative: a proxy may have put a path before it
		return c.NoContent(http.StatusFound)
	}
	return web.WriteJSON(c, http.StatusOK, echo.MIMEApplicationJSON, map[string]string{"status": "ok", "message": "notebox is running"})
}

// serveDifyOpenAPI answers GET /dify/openapi.json.
func (s *Server) serveDifyOpenAPI(c echo.Context) error {
	document, err := dify.Document(s.Base(c.Request()))
	if err != nil {
		return err
	}
	return c.Blob(http.StatusOK, echo.MIMEApplicationJSON, document)
}

// difyCall answers a call.
func (s *Server) difyCall(call dify.Call) echo.HandlerFunc {
	return func(c echo.Context) error {
		arrived := time.Now()
		if err := s.Executor.SessionsOffered(); err != nil {
			return err
		}
		work := s.Intake.Workspace(web.Owner(c))
		defer work.Clear(c.Request().Context())
		fields, err := s.difyFields(c.Request(), work, call)
		if err != nil {
			return ofDify(err)
		}
		answer, err := call.Do(c.Request().Context(), &dify.Request{
			Fields: fields, Arrived: arrived, RunTime: s.dify.runTime,
			Sandboxes: &difySandboxes{s, c, web.Caller(c)},
		})
		if err != nil {
			return ofDify(err)
		}
		return web.WriteJSON(c, http.StatusOK, echo.MIMEApplicationJSON, answer)
	}
}

// difyFields reads a call's body, in the way of readJSON. A large one keeps its place, as in
// readMessage.
func (s *Server) difyFields(r *http.Request, work *intake.Workspace, call dify.Call) (fields dify.Fields, err error) {
	mediaType, _, err := body.TypeOf(r)
	if err != nil {
		return nil, err
	}
	if r.ContentLength > s.MaxBody {
		return nil, problem.TooLarge("", "the body is larger than %d bytes", s.MaxBody)
	}
	sent, err := work.Spool(http.MaxBytesReader(nil, r.Body, s.MaxBody))
	if err != nil {
		return nil, body.Problem(err, body.NotWhole)
	}
	isJSON := mediaType == echo.MIMEApplicationJSON || strings.HasSuffix(mediaType, "+json") || r.Header.Get(echo.HeaderContentType) == ""
	err = s.Bodies.WithText(r, work, sent, func(raw []byte) error {
		fields, err = call.Decode(raw, isJSON)
		return err
	})
	if sent.Size < executor.LargeProgram {
		work.Leave()
	}
	return fields, err
}

// difyFace is how errors look to Dify.
type difyFace struct{}

// Owns implements web.Face.
func (difyFace) Owns(path string) bool { return dify.Owns(path) }

// Answer implements web.Face.
func (difyFace) Answer(p *problem.Error, err error) (status int, body any) {
	var invalid *dify.InvalidError
	_ = errors.As(err, &invalid)
	return dify.Failure(int(p.Status), p.Field, p.Text, invalid)
}

// difyError is an error of package dify, with its public face.
type difyError struct {
	p   *problem.Error
	err error
}

func (e *difyError) Error() string { return e.p.Error() }

func (e *difyError) Unwrap() []error { return []error{e.p, e.err} }

// ofDify gives an error of package dify its public face.
func ofDify(err error) error {
	var invalid *dify.InvalidError
	switch {
	case errors.Is(err, dify.ErrTime):
		return &difyError{&problem.Error{Status: http.StatusServiceUnavailable, Text: dify.ErrTime.Error(), RetryAfter: time.Second, Cause: err}, err}
	case errors.As(err, &invalid) && !errors.As(err, new(*problem.Error)):
		return &difyError{&problem.Error{Status: http.StatusUnprocessableEntity, Text: invalid.Error()}, err}
	}
	return err
}
