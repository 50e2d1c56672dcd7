package executor

import (
	"notebox/access"
	"notebox/runner"
)

// networkOf is the network of a request's run; nil where it asks for none.
func (x *Executor) networkOf(o *Order, caller *access.Caller) (runner.Network, error) {
	if o.Network == nil || !*o.Network {
		return nil, nil
	}
	if err := mayNetwork(caller, x.network != nil); err != nil {
		return nil, err
	}
	return x.network, nil
}
