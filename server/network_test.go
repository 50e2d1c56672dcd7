package server

import (
	"context"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

// noNetwork is a runner.Network that answers nothing.
type noNetwork struct{}

func (noNetwork) Serve(context.Context, string, net.Listener) {}
func (noNetwork) CA() []byte                                  { return nil }

func TestNetworkIsForWhoAsks(t *testing.T) {
	s := newService(t, func(c *Config) { c.Network = noNetwork{} })
	for _, c := range []struct {
		desc, body string
		network    bool
	}{
		{"asked for", `{"code":"x","network":true}`, true},
		{"refused", `{"code":"x","network":false}`, false},
		{"null", `{"code":"x","network":null}`, false},
		{"not mentioned", `{"code":"x"}`, false},
	} {
		t.Run(c.desc, func(t *testing.T) {
			s.t = t
			s.replied(s.postJSON(c.body))
			runs := s.started()
			require.Equal(t, c.network, runs[len(runs)-1].Network != nil)
		})
	}
	require.Contains(t, string(s.get("/v1/environments").body), `"network":true`)
}

func TestNetworkIsPartOfWhatIsAsked(t *testing.T) {
	s := newService(t, func(c *Config) { c.Network = noNetwork{} })
	s.replied(s.do(s.with(`{"code":"x"}`, idempotent, "k")))
	require.Equal(t, 409, s.do(s.with(`{"code":"x","network":true}`, idempotent, "k")).StatusCode)
}

func TestNoNetworkWithoutTheOperator(t *testing.T) {
	s := newService(t)
	s.requireProblem(s.postJSON(`{"code":"x","network":true}`), 403, "network: this service's operator allows none")
	require.Empty(t, s.started())
	require.Contains(t, string(s.get("/v1/environments").body), `"network":false`)
}
