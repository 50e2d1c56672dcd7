package executor

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/access"
	"notebox/runner"
)

func TestCPUTime(t *testing.T) {
	l := runner.Limits{Timeout: 30 * time.Second, CPUs: 2}
	for _, c := range []struct {
		desc string
		out  *runner.Outcome
		err  error
		want time.Duration
	}{
		{"as it was measured", &runner.Outcome{Usage: runner.Usage{CPU: time.Second, Wall: time.Minute, Queue: time.Second}}, nil, time.Second},
		{"code that runs on at the kernel's exit", &runner.Outcome{Usage: runner.Usage{CPU: time.Second, CPUOfJob: 3 * time.Second, Wall: time.Minute}}, nil, 3 * time.Second},
		{"code in variables that keep a kernel from starting", nil, &runner.Error{Code: runner.CodeEnv}, time.Minute},
		{"a sandbox that could not say", &runner.Outcome{Usage: runner.Usage{Queue: 10 * time.Second}}, nil, 100 * time.Second},
		{"left while it waited", &runner.Outcome{Usage: runner.Usage{Queue: time.Minute}}, nil, 0},
		{"turned away", nil, &runner.Error{Code: runner.CodeFull}, 0},
		{"closed before its turn in a session", nil, &runner.GoneError{Reason: runner.GoneClosed}, 0},
		{"lost in the middle of a session", nil, &runner.GoneError{Reason: runner.GoneLost}, time.Minute},
		{"cancelled before its turn", &runner.Outcome{Status: runner.StatusCancelled, Usage: runner.Usage{Queue: time.Minute}}, nil, 0},
		{"a sandbox that broke off", nil, errors.New("a frame that is none"), time.Minute},
	} {
		require.Equal(t, c.want, cpuTime(c.out, c.err, time.Minute, l), c.desc)
	}
}

func TestMayNetwork(t *testing.T) {
	keys, err := access.New([]access.Entry{
		access.NamedEntry("alice", access.Limits{NoNetwork: true}, access.SecretOf("a")), access.PlainEntry("b"),
	}, access.Options{})
	require.NoError(t, err)
	alice, err := keys.Caller("a")
	require.NoError(t, err)
	bob, err := keys.Caller("b")
	require.NoError(t, err)
	for _, c := range []struct {
		desc     string
		caller   *access.Caller
		operator bool
		status   int
	}{
		{"nobody has one", bob, false, 403},
		{"nor without keys", nil, false, 403},
		{"the key has none", alice, true, 403},
		{"both agree", bob, true, 0},
		{"without keys", nil, true, 0},
	} {
		err := mayNetwork(c.caller, c.operator)
		if c.status == 0 {
			require.NoError(t, err, c.desc)
			continue
		}
		require.Equal(t, c.status, int(ProblemOf(err).Status), c.desc)
		require.Equal(t, "network", ProblemOf(err).Field, c.desc)
	}
}
