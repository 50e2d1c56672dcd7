package server

import (
	"net/http"
	"time"

	"github.com/labstack/echo/v4"
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
	served, err := s.mcp.Serve(c.Response(), c.Request(), ownerOf(c), s.base(c.Request()))
	if err == nil && !served {
		return &problem{status: http.StatusTooManyRequests, text: "there are too many MCP sessions; close some", retryAfter: mcpRetry}
	}
	return err
}
