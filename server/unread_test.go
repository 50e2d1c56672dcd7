package server

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"image"
	"image/png"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/access"
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
	_, err := fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n%s\r\n%s",
		method, path, len(body), strings.Join(append(headers, ""), "\r\n"), body)
	require.NoError(s.t, err)
	return conn
}

// TestUnreadRepliesHoldLittleMemory: replies of 8 MiB (4 in text, 4 in outputs) wait for
// clients that read nothing. Each may hold as much as a piece in memory, and what a
// connection has.
func TestUnreadRepliesHoldLittleMemory(t *testing.T) {
	const clients, output, most = 16, 4 << 20, 1 << 20
	code := `{"code":"x"}`
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
	} {
		t.Run(c.desc, func(t *testing.T) {
			s := newService(t, withFolder(t))
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
				conn := s.ask(http.MethodPost, c.path, c.body, headers...)
				require.NoError(t, conn.(*net.TCPConn).SetReadBuffer(4096), "as sockets would hold most of a reply")
			}
			runs := int32(clients)
			if strings.Contains(strings.Join(c.headers, ""), "same") {
				runs = 1
			}
			require.Eventually(t, func() bool { return ended.Load() == runs }, time.Minute, 10*time.Millisecond)
			var held int64
			require.Eventuallyf(t, func() bool {
				held = (heap() - before) / clients
				return held < most
			}, time.Minute, 200*time.Millisecond, "each unread reply holds too much memory")
			t.Logf("an unread reply holds %d KiB", held>>10)
		})
	}
}

// TestJoinedRepliesAreInTurns: of many who wait for one reply, a few have it in memory at a
// time.
func TestJoinedRepliesAreInTurns(t *testing.T) {
	const clients, output, most = 60, 8 << 20, 80 * (8 << 20)
	for _, accept := range []string{"application/json", "text/event-stream"} {
		t.Run(accept, func(t *testing.T) {
			s := newService(t, withFolder(t))
			s.putOut(output)
			run, release := s.run, make(chan struct{})
			s.run = func(ctx context.Context, spec runner.Spec, events runner.Sink) (*runner.Outcome, error) {
				<-release
				return run(ctx, spec, events)
			}
			ask := func() *http.Request {
				req := s.request(http.MethodPost, "/v1/execute", "application/json", strings.NewReader(`{"code":"x"}`))
				req.Header.Set("Idempotency-Key", "same")
				req.Header.Set("Accept", accept)
				return req
			}
			before, ended, peak := heap(), make(chan struct{}), make(chan int64)
			go func() {
				var m runtime.MemStats
				highest := int64(0)
				for {
					runtime.ReadMemStats(&m)
					highest = max(highest, int64(m.HeapAlloc))
					select {
					case <-ended:
						peak <- highest
						return
					case <-time.After(5 * time.Millisecond):
					}
				}
			}()
			var all sync.WaitGroup
			for range clients {
				all.Go(func() {
					resp, err := http.DefaultTransport.RoundTrip(ask())
					if err != nil {
						t.Error(err)
						return
					}
					defer resp.Body.Close()
					_, err = io.Copy(io.Discard, resp.Body)
					if err != nil || resp.StatusCode != http.StatusOK {
						t.Error(resp.Status, err)
					}
				})
			}
			require.Eventually(t, func() bool {
				s.server.connections.mu.Lock()
				defer s.server.connections.mu.Unlock()
				return len(s.server.connections.all) == clients
			}, time.Minute, time.Millisecond)
			time.Sleep(200 * time.Millisecond) // until they wait for the run
			close(release)
			all.Wait()
			close(ended)
			held := <-peak - before
			t.Logf("%d joined replies hold at most %d MiB", clients, held>>20)
			require.Less(t, held, int64(most))
		})
	}
}

// putOut has every run put out so many bytes, in two ways.
func (s *service) putOut(bytes int) {
	text := stdout(strings.Repeat(strings.Repeat("x", 1023)+"\n", bytes>>10))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.run = func(_ context.Context, spec runner.Spec, events runner.Sink) (*runner.Outcome, error) {
		events.Output(runner.Event{Kind: runner.EventOutput, Output: []byte(text)})
		return executed(spec, runner.StatusOK, text), nil
	}
}

// TestPlaceIsKeptUntilTheReplyIsSent: with runs-at-once=1 a caller has one unread reply,
// and not as many as it likes. Who reads has the place when it has the reply.
func TestPlaceIsKeptUntilTheReplyIsSent(t *testing.T) {
	for _, c := range []struct {
		desc    string
		path    string
		body    string
		headers []string
	}{
		{"a reply", "/v1/execute", `{"code":"x"}`, nil},
		{"events", "/v1/execute", `{"code":"x"}`, []string{"Accept: text/event-stream"}},
		{"a tool's call", "/v1/tools/call", `{"call":{"id":"c","type":"function","function":{"name":"execute_python","arguments":"{\"code\":\"x\"}"}}}`, nil},
	} {
		t.Run(c.desc, func(t *testing.T) {
			s := newService(t, withFolder(t), withLines(t, access.Options{}, named("alice", "a", "runs-at-once=1"), named("bob", "b", "")))
			s.putOut(8 << 20)
			conn := s.ask(http.MethodPost, c.path, c.body, append([]string{"X-API-Key: a"}, c.headers...)...)
			require.Eventually(t, func() bool {
				_, replies := s.waits()
				return replies == 1
			}, 20*time.Second, 10*time.Millisecond)
			again := func(key string) int {
				req := s.request(http.MethodPost, "/v1/execute", "application/json", strings.NewReader(`{"code":"x"}`))
				req.Header.Set("X-API-Key", key)
				return s.do(req).StatusCode
			}
			require.Equal(t, http.StatusTooManyRequests, again("a"))
			require.Equal(t, http.StatusOK, again("b"))
			s.putOut(1 << 10)
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			require.NoError(t, err)
			body := bufio.NewReader(resp.Body)
			for line, done := "", false; err == nil && !(done && line == "\n"); {
				line, err = body.ReadString('\n')
				done = done || line == "event: done\n"
			}
			require.Contains(t, []error{nil, io.EOF}, err)
			for range 5 { // on other connections than that one
				require.Equal(t, http.StatusOK, again("a"))
			}
			require.Eventually(t, func() bool {
				bytes, replies := s.waits()
				return bytes == 0 && replies == 0 && !s.hasFiles()
			}, 10*time.Second, 10*time.Millisecond)
		})
	}
}

// waits is what the service has for clients that read slowly.
func (s *service) waits() (bytes int64, replies int) {
	return s.server.Unread.Waits()
}

// TestUnreadIsBounded: who does not read begins nothing more, until what waits is read or
// given up; others are not kept out.
func TestUnreadIsBounded(t *testing.T) {
	const slack = 1 << 20 // what sockets may take meanwhile
	for _, c := range []struct {
		desc  string
		keys  []string
		most  func(waits int64) int64
		right bool
	}{
		{"one caller has all", []string{"a"}, func(n int64) int64 { return n - slack }, false},
		{"one caller has room", []string{"a"}, func(n int64) int64 { return n + slack }, true},
		{"several leave room", []string{"a", "b"}, func(n int64) int64 { return 2*n - 2*slack }, false},
		{"there is room for several", []string{"a", "b"}, func(n int64) int64 { return 2*n + slack }, true},
	} {
		t.Run(c.desc, func(t *testing.T) {
			s := newService(t, withFolder(t), func(cfg *Config) { cfg.Keys, _ = NewKeys(c.keys...) })
			s.putOut(8 << 20)
			conn := s.ask(http.MethodPost, "/v1/execute", `{"code":"x"}`, "X-API-Key: a")
			before := int64(0)
			require.Eventually(t, func() bool { // until sockets are full
				last := before
				before, _ = s.waits()
				return last > 0 && last == before
			}, 20*time.Second, 50*time.Millisecond)
			s.server.Unread.Bound(c.most(before))
			do := func(method, key string) answer {
				req := s.request(method, "/v1/executions/run_01KABCDEFGHJKMNPQRSTVWXYZ0", "", nil)
				req.Header.Set("X-API-Key", key)
				return s.do(req)
			}
			if c.right {
				require.Equal(t, http.StatusNotFound, do(http.MethodGet, "a").StatusCode)
				return
			}
			requireTooMany(t, do(http.MethodGet, "a"), "waits to be read")
			require.Equal(t, http.StatusNotFound, do(http.MethodDelete, "a").StatusCode, "it may end what goes on")
			for _, other := range c.keys[1:] {
				require.Equal(t, http.StatusNotFound, do(http.MethodGet, other).StatusCode)
			}
			_ = conn.Close()
			require.Eventually(t, func() bool { return do(http.MethodGet, "a").StatusCode == http.StatusNotFound }, 10*time.Second, 20*time.Millisecond)
		})
	}
}

// TestUnreadResultsOfMCP: as TestUnreadRepliesHoldLittleMemory, for results with four images
// of a megabyte.
func TestUnreadResultsOfMCP(t *testing.T) {
	const clients, most = 12, 1 << 20
	s := newService(t, withFolder(t))
	noise := image.NewRGBA(image.Rect(0, 0, 512, 512))
	_, _ = rand.Read(noise.Pix)
	var shown bytes.Buffer
	require.NoError(t, png.Encode(&shown, noise))
	display := strings.Replace(picture(""), onePixel, base64.StdEncoding.EncodeToString(shown.Bytes()), 1)
	var ended atomic.Int32
	s.run = func(_ context.Context, spec runner.Spec, _ runner.Sink) (*runner.Outcome, error) {
		ended.Add(1)
		return executed(spec, runner.StatusOK, display, display, display, display), nil
	}
	begun := s.mcpRequest(http.MethodPost, initialize, nil)
	session := "Mcp-Session-Id: " + begun.Header.Get("Mcp-Session-Id")
	before := heap()
	for i := range clients {
		conn := s.ask(http.MethodPost, "/mcp", fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"run_python","arguments":{"code":"x"}}}`, i+2),
			session, "Accept: application/json, text/event-stream")
		require.NoError(t, conn.(*net.TCPConn).SetReadBuffer(4096), "as sockets would hold most of a result")
	}
	require.Eventually(t, func() bool { return ended.Load() == clients }, time.Minute, 10*time.Millisecond)
	var held int64
	require.Eventuallyf(t, func() bool {
		held = (heap() - before) / clients
		return held < most
	}, time.Minute, 200*time.Millisecond, "each unread result holds too much memory")
	t.Logf("an unread result holds %d KiB", held>>10)
}
