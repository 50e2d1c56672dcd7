package mcp

import (
	"crypto/rand"
	"errors"
	"strings"

	"github.com/labstack/echo/v4"

	"notebox/runner"
	"notebox/server/web"
)

// mint begins the id of an MCP session of this service, so that its peers find it.
func (s *Endpoint) mint(owner string) string {
	id, err := s.Peers.Mint(Path, owner)
	if err != nil {
		return rand.Text() // of a session that only this service finds
	}
	return id
}

// elsewhere is a *runner.ElsewhereError if a peer has the MCP session of a request. A session that is
// over is not found by the handler, which has the protocol's word for it.
func (s *Endpoint) elsewhere(c echo.Context) error {
	id, owner := c.Request().Header.Get(idHeader), web.Owner(c)
	if s.Peers == nil || id == "" || s.Handler.owns(owner, id) {
		return nil
	}
	begin, _, _ := strings.Cut(id, "-")
	err := s.Peers.Find(Path, owner, begin)
	if errors.Is(err, runner.ErrNoSession) || errors.As(err, new(*runner.GoneError)) {
		return nil
	}
	return err
}
