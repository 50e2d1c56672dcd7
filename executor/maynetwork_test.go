package executor

import (
	"testing"

	"github.com/stretchr/testify/require"

	"notebox/access"
)

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
		err := MayNetwork(c.caller, c.operator)
		if c.status == 0 {
			require.NoError(t, err, c.desc)
			continue
		}
		require.Equal(t, c.status, int(ProblemOf(err).Status), c.desc)
		require.Equal(t, "network", ProblemOf(err).Field, c.desc)
	}
}
