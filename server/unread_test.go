package server

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/agent/agenttest"
	"notebox/runner"
	"notebox/storage"
)

// withFolder keeps what runs leave on disk: mem:// would count as memory of replies.
func withFolder(t *testing.T) func(*Config) {
	store, err := storage.Open(context.Background(), storage.Options{URL: "file://" + t.TempDir(), KeyFile: t.TempDir() + "/keys"})
	require.NoError(t, err)
	t.Cleanup(func() { _ = store.Close() })
	return func(c *Config) { c.Store = store }
}

// heap is what is in use, in bytes, when all garbage is gone.
func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // what a sync.Pool keeps outlives one
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// ask sends a request on a connection of its own, of whose answer nothing is read.
func (s *service) ask(method, path, body string, headers ...string) net.Conn {
	s.t.Helper()
	conn := s.dial()
	s.t.Cleanup(func() { _ = conn.Close() })
	require.NoError(s.t, conn.(*net.TCPConn).SetReadBuffer(4096))
	_, err := fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n%s\r\n%s",
		method, path, len(body), strings.Join(append(headers, ""), "\r\n"), body)
	require.NoError(s.t, err)
	return conn
}

// TestUnreadRepliesHoldLittleMemory: replies of 16 MiB (8 in text, 8 in outputs) wait for
// clients that read nothing. Each may hold as much as a piece in memory, and what a
// connection has; 24 of them held 0.4 to 1.5 GiB.
func TestUnreadRepliesHoldLittleMemory(t *testing.T) {
	const clients, output, most = 24, 8 << 20, 2 << 20
	code := `{"code":"x"}`
	asked := agenttest.Dialogue{Question: "much", Turns: []agenttest.Turn{{Text: strings.Repeat("x", output)}}}
	for _, c := range []struct {
		desc    string
		path    string
		body    string
		headers []string
	}{
		{"a reply", "/v1/execute", code, nil},
		{"events", "/v1/execute", code, []string{"Accept: text/event-stream"}},
		{"a reply that is kept", "/v1/execute", code, []string{"Idempotency-Key: %d"}},
		{"a reply that was kept", "/v1/execute", code, []string{"Idempotency-Key: same"}},
		{"events of a reply that was kept", "/v1/execute", code, []string{"Idempotency-Key: same", "Accept: text/event-stream"}},
		{"a tool's call", "/v1/tools/call", `{"call":{"id":"c","type":"function","function":{"name":"execute_python","arguments":"{\"code\":\"x\"}"}}}`, nil},
		{"an answer of a model", "/run", `{"input":"much"}`, nil},
		{"events of a model", "/run", `{"input":"much"}`, []string{"Accept: text/event-stream"}},
	} {
		t.Run(c.desc, func(t *testing.T) {
			s := askService(t, func(cfg *Config) { withFolder(t)(cfg); cfg.Agent.AtOnce = clients }, asked)
			var ended atomic.Int32
			text := stdout(strings.Repeat(strings.Repeat("x", 1023)+"\n", output>>10))
			s.run = func(_ context.Context, spec runner.Spec, events runner.Sink) (*runner.Outcome, error) {
				events.Output(runner.Event{Kind: runner.EventOutput, Output: []byte(text)})
				ended.Add(1)
				return executed(spec, runner.StatusOK, text), nil
			}
			before := heap()
			for i := range clients {
				headers := append([]string{}, c.headers...)
				for h := range headers {
					headers[h] = strings.ReplaceAll(headers[h], "%d", fmt.Sprint(i))
				}
				s.ask(http.MethodPost, c.path, c.body, headers...)
			}
			if c.path != "/run" {
				require.Eventually(t, func() bool {
					return ended.Load() == clients || strings.HasSuffix(strings.Join(c.headers, ""), "same") && ended.Load() > 0
				}, time.Minute, 10*time.Millisecond)
			}
			var held int64
			require.Eventuallyf(t, func() bool {
				held = (heap() - before) / clients
				return held < most
			}, 20*time.Second, 200*time.Millisecond, "each unread reply holds too much memory")
			t.Logf("an unread reply holds %d KiB", held>>10)
		})
	}
}
