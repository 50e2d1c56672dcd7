package server

import (
	"bytes"
	"io"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"notebox/executor/intake"
	"notebox/executor/problem"
	"notebox/notebook"
	"notebox/server/mcp"
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
	work := s.intake.Workspace(ownerOf(c))
	defer work.Clear(c.Request().Context())
	r, err := s.readMessage(c.Request(), work)
	if err != nil {
		return err
	}
	served, err := s.mcp.Serve(c.Response(), r, ownerOf(c), s.base(r))
	if err == nil && !served {
		return &problem.Error{Status: http.StatusTooManyRequests, Text: "there are too many MCP sessions; close some", RetryAfter: mcpRetry}
	}
	return err
}

// readMessage reads the body of a request as those of other calls are, by way of the disk
// and in a place of its owner's, before the SDK has all of it in memory. A large one keeps
// the place until it is answered: it is in memory until then.
func (s *Server) readMessage(r *http.Request, work *intake.Workspace) (*http.Request, error) {
	if r.Method != http.MethodPost {
		return r, nil
	}
	body, err := work.Spool(http.MaxBytesReader(nil, r.Body, mcp.MaxBody))
	if err != nil {
		return nil, ofBody(err, notWhole)
	}
	own := r.WithContext(r.Context())
	return own, s.withText(r, work, body, func(raw []byte) error {
		if notebook.ShapeOf(raw).Values > mcp.MaxValues {
			return problem.Malformed("", "the message has more than %d values", mcp.MaxValues)
		}
		own.Body = io.NopCloser(bytes.NewReader(raw))
		if len(raw) < largeProgram {
			work.Leave()
		}
		return nil
	})
}
