package server

import (
	"net/http"

	"notebox/runner"
)

// networkOf is the network of a request's run; nil where it asks for none.
func (s *Server) networkOf(req *request) (runner.Network, error) {
	if req.Network == nil || !*req.Network {
		return nil, nil
	}
	if s.network == nil {
		return nil, &problem{status: http.StatusForbidden, field: "network", text: "this service's operator allows none"}
	}
	return s.network, nil
}
