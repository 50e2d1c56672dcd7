package server

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/executor/intake"
	"notebox/runner"
)

func (s *service) dial() net.Conn {
	s.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	require.NoError(s.t, err)
	require.NoError(s.t, conn.SetDeadline(time.Now().Add(20*time.Second)))
	return conn
}

func TestSlowBodiesAreDropped(t *testing.T) {
	s := newService(t)
	s.server.Pace.Body = 300 * time.Millisecond
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			conn := s.dial()
			defer conn.Close()
			fmt.Fprintf(conn, "POST /v1/execute HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\nContent-Length: 1000\r\n\r\nx")
			start := time.Now()
			go func() { // a byte now and then does not help
				for range 20 {
					time.Sleep(50 * time.Millisecond)
					if _, err := conn.Write([]byte("x")); err != nil {
						return
					}
				}
			}()
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err == nil { // it may as well have been reset
				_ = resp.Body.Close()
				if resp.StatusCode != http.StatusRequestTimeout {
					t.Errorf("status %d", resp.StatusCode)
				}
			}
			if took := time.Since(start); took > 30*time.Second {
				t.Errorf("dropped after %v", took)
			}
		})
	}
	s.replied(s.postJSON(`{"code":"a good request beside them"}`))
	all.Wait()
	require.Len(t, s.started(), 1)
	require.Eventually(t, func() bool { return !s.hasFiles() }, time.Minute, 5*time.Millisecond)
}

func TestSlowBodiesThatNobodyReadsAreDropped(t *testing.T) {
	s := newService(t, func(c *Config) { c.Keys, _ = NewKeys("key-a") })
	s.server.Pace.Body = 300 * time.Millisecond
	conn := s.dial()
	defer conn.Close()
	fmt.Fprintf(conn, "POST /v1/execute HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\nContent-Length: 1000\r\n\r\nx")
	start := time.Now()
	_, err := io.ReadAll(conn)
	require.NoError(t, err)
	require.Less(t, time.Since(start), 30*time.Second)
}

func (s *service) hasFiles() bool {
	entries, err := os.ReadDir(s.temp)
	require.NoError(s.t, err)
	return len(entries) > 0
}

func TestRunsMayTakeLongerThanTheirBodies(t *testing.T) {
	s := newService(t)
	s.server.Pace.Body, s.server.Pace.Write = 100*time.Millisecond, 100*time.Millisecond
	s.run = func(ctx context.Context, spec runner.Spec, _ runner.Sink) (*runner.Outcome, error) {
		time.Sleep(400 * time.Millisecond)
		require.NoError(t, ctx.Err(), "the deadline of the body is no reason to cancel")
		return executed(spec, runner.StatusOK), nil
	}
	client := &http.Client{}
	for range 2 { // on one connection
		time.Sleep(150 * time.Millisecond)
		req := s.request("POST", "/v1/execute", "text/plain", strings.NewReader("x"))
		req.Header.Set("Expect", "100-continue")
		resp, err := client.Do(req)
		require.NoError(t, err)
		_, err = io.Copy(io.Discard, resp.Body)
		require.NoError(t, err)
		_ = resp.Body.Close()
		require.Equal(t, 200, resp.StatusCode)
	}
}

func TestSlowReadersAreDropped(t *testing.T) {
	s := newService(t)
	s.server.Pace.Write = 200 * time.Millisecond
	done := make(chan struct{})
	s.run = func(ctx context.Context, spec runner.Spec, events runner.Sink) (*runner.Outcome, error) {
		err := events.File(ctx, "big", io.LimitReader(zeros{}, 64<<20))
		return executed(spec, runner.StatusOK), err
	}
	link := s.replied(s.postJSON(`{"code":"x"}`)).Files[0]["url"].(string)
	conn := s.dial()
	defer conn.Close()
	fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", strings.TrimPrefix(link, s.url))
	go func() {
		defer close(done)
		for !strings.Contains(s.logged.String(), "route=/v1/files/*") {
			time.Sleep(10 * time.Millisecond)
		}
	}()
	select {
	case <-done:
	case <-time.After(15 * time.Second):
		require.Fail(t, "a client that does not read keeps its file open")
	}
}

func TestLargeReplyThatIsNotReadIsDropped(t *testing.T) {
	s := newService(t)
	s.server.Pace.Write = 200 * time.Millisecond
	s.run = func(_ context.Context, spec runner.Spec, _ runner.Sink) (*runner.Outcome, error) {
		return executed(spec, runner.StatusOK, stdout(strings.Repeat("x", 8<<20))), nil
	}
	conn := s.dial()
	defer conn.Close()
	require.NoError(t, conn.(*net.TCPConn).SetReadBuffer(4096))
	fmt.Fprintf(conn, "POST /v1/execute HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\nContent-Length: 1\r\n\r\nx")
	require.Eventually(t, func() bool { return strings.Contains(s.logged.String(), "route=/v1/execute") }, time.Minute, 10*time.Millisecond)
	require.Contains(t, s.logged.String(), "status=499", "the client's fault")
	require.NotContains(t, s.logged.String(), "level=ERROR")
}

func TestFastBodyEarnsNoLongPause(t *testing.T) {
	s := newService(t)
	s.server.Pace.Body = 300 * time.Millisecond
	conn := s.dial()
	defer conn.Close()
	fmt.Fprintf(conn, "POST /v1/execute HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n", 20<<20)
	_, err := io.CopyN(conn, zeros{}, 10<<20)
	require.NoError(t, err)
	start := time.Now()
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	_ = resp.Body.Close()
	require.Equal(t, http.StatusRequestTimeout, resp.StatusCode)
	require.Less(t, time.Since(start), 30*time.Second)
}

func TestIntakeIsBounded(t *testing.T) {
	s := newService(t, func(c *Config) { c.MaxIntake = 1 })
	conn := s.dial()
	defer conn.Close()
	fmt.Fprintf(conn, "POST /v1/execute HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n", 1<<20)
	_, err := io.CopyN(conn, zeros{}, 2*intake.SpoolMemory)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return s.server.Intake.Taken() == 1 }, time.Minute, time.Millisecond)
	large := `{"code":"` + strings.Repeat("x", 2*intake.SpoolMemory) + `"}`
	a := s.postJSON(large)
	require.Equal(t, http.StatusServiceUnavailable, a.StatusCode, "%s", a.body)
	require.Contains(t, string(a.body), "too many large requests are being read")
	require.Equal(t, "2", a.Header.Get("Retry-After"))
	s.run = func(_ context.Context, spec runner.Spec, _ runner.Sink) (*runner.Outcome, error) {
		return executed(spec, runner.StatusOK), nil
	}
	require.Equal(t, http.StatusOK, s.postJSON(`{"code":"small ones pass"}`).StatusCode)
	_ = conn.Close()
	require.Eventually(t, func() bool { return s.server.Intake.Taken() == 0 }, time.Minute, time.Millisecond)
	s.run = func(_ context.Context, spec runner.Spec, _ runner.Sink) (*runner.Outcome, error) {
		if s.server.Intake.Taken() != 0 {
			return nil, fmt.Errorf("a run holds a place")
		}
		return executed(spec, runner.StatusOK), nil
	}
	s.replied(s.postJSON(large))
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

func TestRefusedBodiesAreReadOn(t *testing.T) {
	// A client that looks at the answer only after it has sent all sees it.
	s := newService(t, func(c *Config) { c.MaxBody = 1000 })
	conn := s.dial()
	defer conn.Close()
	const size = 30 << 20
	fmt.Fprintf(conn, "POST /v1/execute HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n", size)
	_, err := io.CopyN(conn, zeros{}, size)
	require.NoError(t, err)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	require.Equal(t, http.StatusRequestEntityTooLarge, resp.StatusCode)
	_ = resp.Body.Close()
}

func TestBodyThatIsAnnouncedTooLargeIsNotAskedFor(t *testing.T) {
	s := newService(t)
	conn := s.dial()
	defer conn.Close()
	fmt.Fprintf(conn, "POST /v1/execute HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 10000000000\r\nExpect: 100-continue\r\n\r\n")
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	require.Equal(t, http.StatusRequestEntityTooLarge, resp.StatusCode)
	_ = resp.Body.Close()
}

func TestEndlessBodiesUseNoMemory(t *testing.T) {
	s := newService(t)
	for _, contentType := range []string{"text/plain", "application/json", "multipart/form-data; boundary=b"} {
		s.t = t
		a := s.do(s.request("POST", "/v1/execute", contentType, io.LimitReader(zeros{}, 40<<20)))
		require.Contains(t, []int{413, 400}, a.StatusCode)
		s.requireNoFiles()
	}
}
