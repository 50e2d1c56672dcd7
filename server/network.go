package server

import (
	"notebox/access"
	"notebox/runner"
)

// networkOf is the network of a request's run; nil where it asks for none.
func (s *Server) networkOf(req *request, caller *access.Caller) (runner.Network, error) {
	if req.Network == nil || !*req.Network {
		return nil, nil
	}
	if err := mayNetwork(caller, s.network != nil); err != nil {
		return nil, err
	}
	return s.network, nil
}
