package server

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/labstack/echo/v4"

	"notebox/agent/tool"
	"notebox/environments"
	"notebox/executor"
	"notebox/executor/intake"
	"notebox/executor/problem"
	"notebox/notebook"
	"notebox/server/body"
	"notebox/server/mcp"
	"notebox/server/web"
)

// mcpPath is where the Model Context Protocol is served, see package mcp.
const mcpPath = "/mcp"

// mcpRetry is what a client with too many MCP sessions is told to wait.
const mcpRetry = time.Minute

// serveMCP answers the one address of MCP's streamable HTTP.
func (s *Server) serveMCP(c echo.Context) error {
	if s.browsers.keys && !s.browsers.known(c.Request()) { // the protocol wants it checked in any case
		return problem.Forbidden("pages of this Origin may not call this service")
	}
	work := s.Intake.Workspace(web.Owner(c))
	defer work.Clear(c.Request().Context())
	r, count, err := s.readMessage(c.Request(), work)
	if err != nil {
		return err
	}
	for range count - 1 { // each of a batch is as a request by itself
		if err := web.Caller(c).Request(); err != nil {
			return err
		}
	}
	served, err := s.mcp.Serve(c.Response(), r, web.Owner(c), s.Base(r))
	if err == nil && !served {
		return &problem.Error{Status: http.StatusTooManyRequests, Text: "there are too many MCP sessions; close some", RetryAfter: mcpRetry}
	}
	return err
}

// readMessage reads the body of a request as those of other calls are, by way of the disk
// and in a place of its owner's, before the SDK has all of it in memory. A large one keeps
// the place until it is answered: it is in memory until then. count is how many messages
// there are.
func (s *Server) readMessage(r *http.Request, work *intake.Workspace) (own *http.Request, count int, err error) {
	if r.Method != http.MethodPost {
		return r, 1, nil
	}
	sent, err := work.Spool(http.MaxBytesReader(nil, r.Body, mcp.MaxBody))
	if err != nil {
		return nil, 0, body.Problem(err, body.NotWhole)
	}
	own = r.WithContext(r.Context())
	err = s.Bodies.WithText(r, work, sent, func(raw []byte) error {
		if notebook.ShapeOf(raw).Values > mcp.MaxValues {
			return problem.Malformed("", "the message has more than %d values", mcp.MaxValues)
		}
		count = messages(raw)
		own.Body = io.NopCloser(bytes.NewReader(raw))
		if len(raw) < executor.LargeProgram {
			work.Leave()
		}
		return nil
	})
	return own, count, err
}

// messages is how many messages a body has: those of a batch, up to where it is no JSON.
func messages(raw []byte) (n int) {
	dec := jsontext.NewDecoder(bytes.NewReader(raw), jsontext.AllowDuplicateNames(true))
	if dec.PeekKind() != jsontext.KindBeginArray {
		return 1
	}
	for _, err := dec.ReadToken(); err == nil && dec.PeekKind() != jsontext.KindEndArray; n++ {
		err = dec.SkipValue()
	}
	return n
}

// mcpCaller is the Service of who sent these headers.
func (s *Server) mcpCaller(head http.Header, base string) (mcp.Service, error) {
	caller, err := s.Keys.Caller(presentedKey(head))
	if err != nil {
		p := needsKey()
		return nil, &mcp.Refusal{Status: int(p.Status), Detail: p.Detail()}
	}
	return &mcp.Local{
		Executor: s.Executor, Caller: caller, Base: base, MaxCode: s.MaxBody, Told: s.toldOfMCP, Log: s.Log,
		Languages: func() (tool.About, error) {
			about := s.aboutTool()
			about.Languages = s.languagesOf(caller, func(e *environments.Environment) bool { return s.Available(e.Name) })
			return about, nil
		},
	}, nil
}

// toldOfMCP gives an error of a call its public face, and tells the log and the Observer.
func (s *Server) toldOfMCP(ctx context.Context, err error, who ...slog.Attr) *problem.Error {
	p := web.Problem(err)
	s.countRefusal(p)
	who = append(who, slog.Int("status", int(p.Status)))
	if p.Cause != nil {
		who = append(who, slog.String("error", p.Cause.Error()))
	}
	s.Log.LogAttrs(ctx, levelOf(p), "a call of MCP failed", who...)
	return p
}
