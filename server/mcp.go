package server

import (
	"bytes"
	"io"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

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
		return forbidden("pages of this Origin may not call this service")
	}
	r, err := s.readMessage(c.Request(), ownerOf(c))
	if err != nil {
		return err
	}
	served, err := s.mcp.Serve(c.Response(), r, ownerOf(c), s.base(r))
	if err == nil && !served {
		return &problem{status: http.StatusTooManyRequests, text: "there are too many MCP sessions; close some", retryAfter: mcpRetry}
	}
	return err
}

// readMessage reads the body of a request as those of other calls are, by way of the disk
// and in a place of its owner's, before the SDK has all of it in memory.
func (s *Server) readMessage(r *http.Request, owner string) (*http.Request, error) {
	if r.Method != http.MethodPost {
		return r, nil
	}
	work := s.newWorkspace(owner)
	defer s.clear(r.Context(), work)
	body, err := work.spool(http.MaxBytesReader(nil, r.Body, mcp.MaxBody))
	if err != nil {
		return nil, ofBody(err, notWhole)
	}
	own := r.WithContext(r.Context())
	return own, s.withText(r, work, body, func(raw []byte) error {
		if notebook.ShapeOf(raw).Values > mcp.MaxValues {
			return malformed("", "the message has more than %d values", mcp.MaxValues)
		}
		own.Body = io.NopCloser(bytes.NewReader(raw))
		return nil
	})
}
