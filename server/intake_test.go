package server

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/executor"
	"notebox/executor/intake"
	"notebox/server/web"
)

// TestIntakeIsShared: one key's slow bodies, of whatever call, leave places for another's.
func TestIntakeIsShared(t *testing.T) {
	const form = "multipart/form-data; boundary=b"
	part := func(name string) string { return "--b\r\nContent-Disposition: form-data; name=" + name + "\r\n\r\n" }
	large := strings.Repeat("x", 2*intake.SpoolMemory)
	for _, c := range []struct{ desc, path, contentType, head string }{
		{"JSON", "/v1/execute", "application/json", `{"code":"` + large},
		{"text", "/v1/execute", "text/x-python", large},
		{"a form", "/v1/execute", form, part("files; filename=a") + "x"},
		{"kept inputs", "/v1/files", form, part("files; filename=a") + "x"},
		{"a session", sessionsPath, "application/json", `{"env":{"A":"` + large},
		{"a tool call", "/v1/tools/call", "application/json", `{"call":"` + large},
		{"a Dify agent's file", "/write_file", "application/json", `{"content":"` + large},
		{"a message of MCP", mcpPath, "application/json", `{"jsonrpc":"2.0","id":1,"method":"` + large},
	} {
		t.Run(c.desc, func(t *testing.T) {
			s := withSessions(t, newSessions(t), withKeys(t, "one", "two"), func(c *Config) { c.MaxIntake = 4 })
			statuses := make(chan int, 4)
			for n := range 4 {
				body, send := io.Pipe()
				defer send.Close()
				req := s.request(http.MethodPost, c.path, c.contentType, body)
				req.Header.Set("X-API-Key", "one")
				go func() {
					if resp, err := http.DefaultTransport.RoundTrip(req); err == nil {
						statuses <- resp.StatusCode
						_ = resp.Body.Close()
					}
				}()
				go func() {
					_, _ = io.WriteString(send, c.head)
					if n >= 2 { // its answer comes before a body that is not at its end
						_ = send.Close()
					}
				}()
				require.Eventually(t, func() bool { return s.server.Intake.Taken() == min(n+1, 2) }, time.Minute, time.Millisecond)
			}
			for range 2 {
				require.Equal(t, http.StatusTooManyRequests, <-statuses, "half of the places is for others")
			}
			a := s.upload(keyed("two"), "a", "abc")
			require.Equal(t, http.StatusCreated, a.StatusCode, "%s", a.body)
			a = s.do(s.with(fmt.Sprintf(`{"code":%q}`, large), "X-API-Key", "two"))
			require.Equal(t, http.StatusOK, a.StatusCode, "%s", a.body)
		})
	}
}

// TestBodyTime: a body has a total time by its size.
func TestBodyTime(t *testing.T) {
	for _, c := range []struct {
		bytes int64
		least time.Duration
		most  time.Duration
	}{
		{0, 0, 0},
		{1 << 20, time.Minute, 65 * time.Second},
		{DefaultMaxBody, 5 * time.Minute, 8 * time.Minute},
		{executor.DefaultMaxUpload, time.Hour, 150 * time.Minute},
	} {
		took := web.BodyTime(c.bytes)
		require.True(t, c.least <= took && took <= c.most, "%d bytes may take %v", c.bytes, took)
	}
}
