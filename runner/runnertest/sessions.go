package runnertest

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"notebox/runner/admission"
	"notebox/runner/pool"
	"notebox/runner/session"
)

// Sessions returns sessions whose sandboxes are a host's, at most so many; 0 is no bound.
// They are closed at the end of the test, and leave nothing.
func Sessions(t testing.TB, host *Fake, maxSandboxes int) *session.Sessions {
	log := Log(t)
	pool := pool.New(host.Engine("test"), pool.Options{Log: log, MaxSandboxes: maxSandboxes})
	all := session.New(pool, admission.New(nil, admission.Limits{MaxRunning: 100}), session.Options{MaxSessions: 1000, Log: log})
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		require.NoError(t, all.Close(ctx))
		require.NoError(t, pool.Close(ctx))
		require.Empty(t, host.Sandboxes(""))
	})
	return all
}
