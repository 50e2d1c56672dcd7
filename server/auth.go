package server

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"

	"github.com/labstack/echo/v4"

	"notebox/server/web"
)

// CheckListen refuses to serve without keys anywhere but on loopback, unless
// noAuth says that this is meant. addr is host:port.
func CheckListen(addr string, haveKeys, noAuth bool) error {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("listen address: %w", err)
	}
	if haveKeys || noAuth {
		return nil
	}
	if ip, err := netip.ParseAddr(host); strings.EqualFold(host, "localhost") || err == nil && ip.Unmap().IsLoopback() {
		return nil
	}
	return fmt.Errorf("listen address %s: without API keys only loopback is served: set --api-keys-file, or --no-auth if everyone who can reach it may run code", addr)
}

// requireKey lets a request pass that carries one of the keys, and counts it; without
// any keys configured, every request (browser.go says which those can be).
func (s *Server) requireKey(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		caller, err := s.Keys.Caller(web.PresentedKey(c.Request().Header))
		if err != nil {
			c.Response().Header().Set(echo.HeaderWWWAuthenticate, `Bearer realm="notebox"`)
			return web.NeedsKey()
		}
		web.SetCaller(c, caller)
		s.connections.good(c.Request().Context(), caller.Owner())
		if !web.Passed(c) { // which the peer has counted
			if err := caller.Request(); err != nil {
				return err
			}
		}
		if c.Request().Method != http.MethodDelete { // what ends something is no more to read
			if err := s.Unread.MayBegin(caller.Owner()); err != nil {
				return err
			}
		}
		return next(c)
	}
}
