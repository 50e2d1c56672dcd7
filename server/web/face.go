package web

import "notebox/executor/problem"

// Face is how a protocol that has a form of its own for errors answers them.
type Face interface {
	// Owns reports whether an address is the protocol's.
	Owns(path string) bool
	// Answer is the answer to a request that failed with err, whose public face is p. body
	// is sent as JSON.
	Answer(p *problem.Error, err error) (status int, body any)
}
