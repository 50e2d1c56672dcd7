package dify

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"notebox/executor"
	"notebox/executor/intake"
	"notebox/executor/problem"
	"notebox/server/body"
	"notebox/server/web"
)

// handler answers the calls.
type handler struct {
	*web.Kit
	conversations locks            // by owner and conversation
	page          echo.HandlerFunc // what a browser gets at GET /
}

// Routes are the calls. Dify asks GET / whether the service is there; page answers it to a
// browser.
func Routes(kit *web.Kit, page echo.HandlerFunc) []web.Route {
	s := &handler{Kit: kit, page: page}
	routes := []web.Route{
		web.On(http.MethodGet, "/", s.hello).WithoutKey(),
		web.On(http.MethodGet, FilesPrefix+":sandbox_id/:filename", s.serveFile).WithoutKey(), // signed
		web.On(http.MethodGet, "/dify/openapi.json", s.serveOpenAPI).WithoutKey(),
	}
	for _, call := range Calls() {
		routes = append(routes, web.On(http.MethodPost, call.Path(), s.call(call)).NamesSession())
	}
	return routes
}

// hello answers GET /: that the service is there, or, to a browser, the page to try it on.
func (s *handler) hello(c echo.Context) error {
	c.Response().Header().Add(echo.HeaderVary, echo.HeaderAccept)
	if strings.Contains(c.Request().Header.Get(echo.HeaderAccept), "text/html") {
		return s.page(c)
	}
	return web.WriteJSON(c, http.StatusOK, echo.MIMEApplicationJSON, map[string]string{"status": "ok", "message": "notebox is running"})
}

// serveOpenAPI answers GET /dify/openapi.json.
func (s *handler) serveOpenAPI(c echo.Context) error {
	document, err := Document(s.Base(c.Request()))
	if err != nil {
		return err
	}
	return c.Blob(http.StatusOK, echo.MIMEApplicationJSON, document)
}

// call answers a call.
func (s *handler) call(call Call) echo.HandlerFunc {
	return func(c echo.Context) error {
		arrived := time.Now()
		if err := s.Executor.SessionsOffered(); err != nil {
			return err
		}
		work := s.Intake.Workspace(web.Owner(c))
		defer work.Clear(c.Request().Context())
		fields, err := s.fields(c.Request(), work, call)
		if err != nil {
			return ofCall(err)
		}
		answer, err := call.Do(c.Request().Context(), &Request{
			Fields: fields, Arrived: arrived,
			Sandboxes: &sessions{s, c, web.Caller(c)},
		})
		if err != nil {
			return ofCall(err)
		}
		return web.WriteJSON(c, http.StatusOK, echo.MIMEApplicationJSON, answer)
	}
}

// fields reads a call's body. A large one keeps its place until the call is answered: it is in
// memory until then.
func (s *handler) fields(r *http.Request, work *intake.Workspace, call Call) (fields Fields, err error) {
	mediaType, _, err := body.TypeOf(r)
	if err != nil {
		return nil, err
	}
	isJSON := mediaType == echo.MIMEApplicationJSON || strings.HasSuffix(mediaType, "+json") || r.Header.Get(echo.HeaderContentType) == ""
	err = s.Bodies.Text(r, work, func(raw []byte) error {
		if len(raw) < executor.LargeProgram {
			work.Leave()
		}
		fields, err = call.Decode(raw, isJSON)
		return err
	})
	return fields, err
}

// Face is how errors look to Dify.
type Face struct{}

// Owns implements web.Face.
func (Face) Owns(path string) bool {
	return path == "/" || strings.HasPrefix(path, FilesPrefix) ||
		slices.ContainsFunc(Calls(), func(c Call) bool { return c.Path() == path })
}

// Answer implements web.Face.
func (Face) Answer(p *problem.Error, err error) (status int, body any) {
	var invalid *InvalidError
	_ = errors.As(err, &invalid)
	return Failure(int(p.Status), p.Field, p.Text, invalid)
}

// callError is an error of a call, with its public face.
type callError struct {
	p   *problem.Error
	err error
}

func (e *callError) Error() string { return e.p.Error() }

func (e *callError) Unwrap() []error { return []error{e.p, e.err} }

// ofCall gives an error of a call its public face.
func ofCall(err error) error {
	var invalid *InvalidError
	switch {
	case errors.Is(err, ErrTime):
		return &callError{&problem.Error{Status: http.StatusServiceUnavailable, Text: ErrTime.Error(), RetryAfter: time.Second, Cause: err}, err}
	case errors.As(err, &invalid) && !errors.As(err, new(*problem.Error)):
		return &callError{&problem.Error{Status: http.StatusUnprocessableEntity, Text: invalid.Error()}, err}
	}
	return err
}
