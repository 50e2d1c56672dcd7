package executor

import (
	"errors"
	"time"

	"notebox/access"
	"notebox/executor/problem"
	"notebox/runner"
)

// networkOf is the network of who asks for one; nil if it is not asked for.
func (x *Executor) networkOf(asked *bool, caller *access.Caller) (runner.Network, error) {
	if asked == nil || !*asked {
		return nil, nil
	}
	return x.network, mayNetwork(caller, x.network != nil)
}

// mayNetwork refuses a run with a network if the operator, or the caller's key, does
// not allow one. operator is whether this service has any to give.
func mayNetwork(caller *access.Caller, operator bool) error {
	if !operator {
		return &problem.Error{Status: problem.StatusForbidden, Field: "network", Text: "this service's operator allows none"}
	}
	return caller.MayNetwork()
}

// cpuTime is what a run is charged, with what its variables had a kernel do at its
// start, and its code at the end. A sandbox that died could not say what it had
// used, so that all counts that it could have: else who makes it die would pay
// nothing. took is from the call of the runner to its answer.
func cpuTime(out *runner.Outcome, err error, took time.Duration, l runner.Limits) time.Duration {
	var notBegun *runner.Error
	var gone *runner.GoneError
	switch {
	case errors.As(err, &gone) && gone.Reason != runner.GoneLost:
		return 0 // it ended before the run had its turn
	case errors.As(err, &notBegun) && notBegun.Code != runner.CodeEnv && notBegun.Code != runner.CodePackages:
		return 0
	case err != nil:
		took = min(took, l.Timeout) // its wait for a place is in it, and not known
	case out.Usage.CPU > 0 || out.Usage.Wall > 0:
		return max(out.Usage.CPU, out.Usage.CPUOfJob)
	default:
		took -= out.Usage.Queue
	}
	return time.Duration(float64(took) * l.CPUs)
}
