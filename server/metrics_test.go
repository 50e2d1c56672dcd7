package server

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestMetricsRoute is for callers, and only if there are metrics.
func TestMetricsRoute(t *testing.T) {
	shown := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("runs 1\n")) })
	none := newService(t)
	none.requireProblem(none.get("/metrics"), 404, "nothing at this address")
	open := newService(t, func(c *Config) { c.Metrics = shown })
	require.Equal(t, "runs 1\n", string(open.get("/metrics").body))
	closed := newService(t, withKeys(t, "one"), func(c *Config) { c.Metrics = shown })
	closed.requireProblem(closed.get("/metrics"), 401, "API key")
	require.Equal(t, "runs 1\n", string(closed.call(http.MethodGet, "/metrics", "X-API-Key", "one").body))
}
