package server

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"notebox/runner"
	"notebox/runner/admission"
	"notebox/runner/pool"
	"notebox/runner/runnertest"
	"notebox/runner/session"
)

// TestAStartThatFails is told alike in every form of request, whatever the cause: come back.
func TestAStartThatFails(t *testing.T) {
	host := runnertest.NewFake()
	host.OnStart = func(context.Context, runner.Environment) error { return errors.New("no epoll watches in /proc/sys/fs") }
	pool := pool.New(host.Engine("starts"), pool.Options{Log: slog.New(slog.DiscardHandler)})
	t.Cleanup(func() { require.NoError(t, pool.Close(context.Background())) })
	admission := admission.New(pool, admission.Limits{MaxRunning: 4})
	sessions := session.New(pool, admission, session.Options{MaxSessions: 4, Log: slog.New(slog.DiscardHandler)})
	t.Cleanup(func() { require.NoError(t, sessions.Close(context.Background())) })
	s := newService(t, func(c *Config) {
		c.Runner, c.Sessions, c.Pool = admission, sessions, pool.Stats
		c.Starts = func() error { return pool.Failing(python.Name) }
	})
	for _, c := range []struct{ desc, path, contentType, accept, body string }{
		{"JSON", "/v1/execute", "application/json", "", `{"code":"x"}`},
		{"text", "/v1/execute", "text/x-python", "", `x`},
		{"events", "/v1/execute", "application/json", "text/event-stream", `{"code":"x"}`},
		{"a session", "/v1/sessions", "application/json", "", `{}`},
		{"a tool call", "/v1/tools/call", "application/json", "", `{"call":{"code":"x"}}`},
		{"a Dify agent's sandbox", "/create_sandbox", "application/json", "", `{}`},
	} {
		t.Run(c.desc, func(t *testing.T) {
			req := s.request("POST", c.path, c.contentType, strings.NewReader(c.body))
			req.Header.Set("Accept", c.accept)
			a := s.do(req)
			require.Equal(t, 503, a.StatusCode, "%s", a.body)
			require.NotEmpty(t, a.Header.Get("Retry-After"))
			require.Contains(t, string(a.body), "a sandbox could not be started")
			require.NotContains(t, string(a.body), "epoll")
		})
	}
	t.Run("MCP", func(t *testing.T) {
		r := callMCP(t, s.mcpClient("", nil), "run_python", map[string]any{"code": "x"})
		require.True(t, r.IsError)
		require.Contains(t, mcpText(t, r), "a sandbox could not be started")
		require.NotContains(t, mcpText(t, r), "epoll")
	})
	s.requireProblem(s.get("/readyz"), 503, "a sandbox could not be started")
}
