package server

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/runner"
)

// sendOn sends a request without a body on a connection, and returns its status; 0 if the
// service has closed the connection.
func sendOn(conn net.Conn, path, key string) int {
	fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: localhost\r\nX-API-Key: %s\r\n\r\n", path, key)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	return resp.StatusCode
}

// count is how many connections there are.
func (s *service) count() int {
	s.server.connections.mu.Lock()
	defer s.server.connections.mu.Unlock()
	return len(s.server.connections.all)
}

// isClosed waits until the service has closed a connection on which nothing is to come.
func isClosed(conn net.Conn, within time.Duration) bool {
	_ = conn.SetReadDeadline(time.Now().Add(within))
	_, err := conn.Read(make([]byte, 1))
	timedOut, ok := err.(net.Error)
	return err != nil && (!ok || !timedOut.Timeout())
}

func TestIdleConnectionsTakeNoPlace(t *testing.T) {
	const most, strangers = 8, 100
	s := newService(t, func(c *Config) {
		c.Keys, _ = NewKeys("key-a")
		c.MaxConnections = most
	})
	honest := s.dial()
	defer honest.Close()
	require.Equal(t, http.StatusOK, sendOn(honest, "/v1/environments", "key-a"))
	var idle []net.Conn
	for i := range strangers {
		conn := s.dial()
		defer conn.Close()
		if i%2 == 0 { // half of them say something
			require.Contains(t, []int{http.StatusUnauthorized, 0}, sendOn(conn, "/v1/environments", "wrong"))
		}
		idle = append(idle, conn)
	}
	require.Eventually(t, func() bool { return s.count() <= most }, 10*time.Second, 10*time.Millisecond)
	require.Equal(t, http.StatusOK, sendOn(honest, "/v1/environments", "key-a"), "it waits, and has had a good request")
	another := s.dial()
	defer another.Close()
	require.Equal(t, http.StatusOK, sendOn(another, "/v1/environments", "key-a"))
	require.True(t, isClosed(idle[0], 5*time.Second), "who has waited longest goes first")
	require.Equal(t, 1, strings.Count(s.logged.String(), "too many connections"))
}

func TestConnectionsThatServeAreNotClosed(t *testing.T) {
	s := newService(t, func(c *Config) { c.MaxConnections = 2 })
	s.run = func(ctx context.Context, spec runner.Spec, _ runner.Sink) (*runner.Outcome, error) {
		<-ctx.Done()
		return executed(spec, runner.StatusCancelled), nil
	}
	var running []net.Conn
	for range 2 {
		running = append(running, s.ask(http.MethodPost, "/v1/execute", `{"code":"x"}`))
	}
	require.Eventually(t, func() bool {
		s.server.connections.mu.Lock()
		defer s.server.connections.mu.Unlock()
		return len(s.server.connections.all) == 2 && s.server.connections.least() == nil
	}, 10*time.Second, time.Millisecond)
	require.True(t, isClosed(s.dial(), 5*time.Second), "the newest is closed")
	for _, conn := range running {
		require.False(t, isClosed(conn, 50*time.Millisecond))
	}
}

// TestStrangersThatDoNotReadTakeNoPlace: what is open to all is larger than sockets hold, and
// is asked for without a key, and not read.
func TestStrangersThatDoNotReadTakeNoPlace(t *testing.T) {
	const most = 8
	s := newService(t, func(c *Config) {
		c.Keys, _ = NewKeys("key-a")
		c.MaxConnections = most
	})
	for range most {
		conn := s.dial()
		defer conn.Close()
		require.NoError(t, conn.(*net.TCPConn).SetReadBuffer(4096))
		_, _ = fmt.Fprint(conn, strings.Repeat("GET /docs/swagger-ui-bundle.js HTTP/1.1\r\nHost: localhost\r\n\r\n", 8))
	}
	require.Eventually(t, func() bool {
		s.server.connections.mu.Lock()
		defer s.server.connections.mu.Unlock()
		serving := 0
		for _, one := range s.server.connections.all {
			serving += one.serving
		}
		return serving == most
	}, 10*time.Second, 10*time.Millisecond)
	honest := s.dial()
	defer honest.Close()
	require.Equal(t, http.StatusOK, sendOn(honest, "/v1/environments", "key-a"))
}

func TestStrangersWaitShortly(t *testing.T) {
	s := newService(t, func(c *Config) { c.Keys, _ = NewKeys("key-a") })
	s.server.connections.idle = 50 * time.Millisecond
	for _, c := range []struct {
		desc, path, key string
		status          int
		closed          bool
	}{
		{"with a key", "/v1/environments", "key-a", http.StatusOK, false},
		{"without", "/v1/environments", "", http.StatusUnauthorized, true},
		{"at what is open to all", "/healthz", "", http.StatusOK, true},
		{"with a link that is not valid", "/v1/files/runs/x", "", http.StatusForbidden, true},
	} {
		t.Run(c.desc, func(t *testing.T) {
			conn := s.dial()
			defer conn.Close()
			require.Equal(t, c.status, sendOn(conn, c.path, c.key))
			within := 10 * time.Second
			if !c.closed {
				within = 300 * time.Millisecond
			}
			require.Equal(t, c.closed, isClosed(conn, within))
		})
	}
}

// TestManyConnectionsOfOneAddress: an address loses its own, whatever it has been told.
func TestManyConnectionsOfOneAddress(t *testing.T) {
	for _, c := range []struct {
		desc  string
		from  []string // of connections, from the oldest on
		known []int    // which of them have had a good request
		same  bool     // these are of one owner
		lost  int      // when one of another address is added
	}{
		{"the oldest of the address that has most", []string{"192.0.2.1:1", "192.0.2.2:1", "192.0.2.2:2", "192.0.2.3:1"}, nil, false, 1},
		{"a stranger's first", []string{"192.0.2.2:1", "192.0.2.2:2", "192.0.2.3:1"}, []int{0, 1}, false, 2},
		{"else one that waits", []string{"192.0.2.3:1", "192.0.2.2:1", "192.0.2.2:2"}, []int{0, 1, 2}, false, 1},
		{"one network of IPv6 is one address", []string{"192.0.2.1:1", "[2001:db8::1]:1", "[2001:db8::2]:1"}, nil, false, 1},
		{"a proxy's are all of one address", []string{"10.0.0.1:1", "10.0.0.1:2", "10.0.0.1:3"}, []int{0, 2}, false, 1},
		{"of an owner who has more than half, as a stranger's", []string{"192.0.2.1:1", "192.0.2.1:2", "192.0.2.3:1"}, []int{0, 1}, true, 0},
	} {
		t.Run(c.desc, func(t *testing.T) {
			all := newConnections(len(c.from), slog.New(slog.DiscardHandler))
			var opened []*fakeConn
			for i, from := range c.from {
				conn := &fakeConn{from: from}
				ctx := all.open(t.Context(), conn)
				for _, known := range c.known {
					if known == i {
						owner := from
						if c.same {
							owner = "one"
						}
						all.good(ctx, owner)
					}
				}
				opened = append(opened, conn)
			}
			all.open(t.Context(), &fakeConn{from: "198.51.100.1:1"})
			for i, conn := range opened {
				require.Equal(t, i == c.lost, conn.closed, "connection %d", i)
			}
			require.Equal(t, len(c.from), len(all.all))
		})
	}
}

// TestOwnersLeaveNewcomersRoom: two owners who hold half of all each do not have each
// newcomer closed for the next one.
func TestOwnersLeaveNewcomersRoom(t *testing.T) {
	const most = 8
	all := newConnections(most, slog.New(slog.DiscardHandler))
	open := func(n int, owner string) *fakeConn {
		conn := &fakeConn{from: fmt.Sprintf("192.0.2.%d:1", n)}
		if ctx := all.open(t.Context(), conn); owner != "" {
			all.good(ctx, owner)
		}
		return conn
	}
	for n := range most {
		open(n, []string{"one", ofLinks}[n%2])
	}
	first, second := open(most, ""), open(most+1, "")
	require.False(t, first.closed)
	require.False(t, second.closed)
	require.Equal(t, most, all.of["one"]+all.of[ofLinks]+2)
}

// TestServingConnectionsOfOneKey: a key that is served on all connections keeps others out no
// more than one whose connections wait. If there are no keys, the newest is closed.
func TestServingConnectionsOfOneKey(t *testing.T) {
	for owner, stays := range map[string]bool{"one": true, "": false} {
		all := newConnections(4, slog.New(slog.DiscardHandler))
		var opened []*fakeConn
		for range 4 {
			conn := &fakeConn{from: "192.0.2.1:1"}
			ctx := all.open(t.Context(), conn)
			all.good(ctx, owner)
			all.change(ctx.Value(connectionKey{}).(*connection), 1)
			opened = append(opened, conn)
		}
		other := &fakeConn{from: "192.0.2.1:2"}
		ctx := all.open(t.Context(), other)
		require.Equal(t, !stays, other.closed, owner)
		require.Equal(t, stays, opened[3].closed, owner)
		if !stays {
			continue
		}
		all.change(ctx.Value(connectionKey{}).(*connection), 1)
		all.good(ctx, "two")
		for range 9 { // which take their places from their own
			next := all.open(t.Context(), &fakeConn{from: "192.0.2.1:3"})
			all.good(next, owner)
			all.change(next.Value(connectionKey{}).(*connection), 1)
		}
		require.False(t, other.closed)
		require.False(t, opened[0].closed, "what has gone on for long goes on")
	}
}

// TestNewcomersHaveTime: slow requests on all connections keep nobody out of the same address,
// as behind a reverse proxy, be they a key's or strangers'.
func TestNewcomersHaveTime(t *testing.T) {
	for _, owner := range []string{"one", ""} {
		synctest.Test(t, func(t *testing.T) {
			all := newConnections(40, slog.New(slog.DiscardHandler))
			slow := func() {
				ctx := all.open(t.Context(), &fakeConn{from: "192.0.2.1:1"})
				if owner != "" {
					all.good(ctx, owner)
				}
				all.change(ctx.Value(connectionKey{}).(*connection), 1)
			}
			for range 40 {
				slow()
			}
			other, silent := &fakeConn{from: "192.0.2.1:2"}, &fakeConn{from: "192.0.2.1:3"}
			ctx := all.open(t.Context(), other)
			all.open(t.Context(), silent)
			for range 40 {
				slow()
			}
			require.False(t, other.closed, owner)
			all.good(ctx, "two")
			all.change(ctx.Value(connectionKey{}).(*connection), 1)

			time.Sleep(newcomerGrace)
			slow()
			require.True(t, silent.closed, "it says nothing")
			require.False(t, other.closed, owner)
		})
	}
}

// TestASilentFloodEndsNoRequests: but for a quarter of them, slow ones of a key above its share are
// worth more than connections that say nothing.
func TestASilentFloodEndsNoRequests(t *testing.T) {
	const most = 40
	all := newConnections(most, slog.New(slog.DiscardHandler))
	var slow []*fakeConn
	for range most {
		conn := &fakeConn{from: "192.0.2.1:1"}
		ctx := all.open(t.Context(), conn)
		all.good(ctx, "one")
		all.change(ctx.Value(connectionKey{}).(*connection), 1)
		slow = append(slow, conn)
	}
	for range 3 * most {
		all.open(t.Context(), &fakeConn{from: "192.0.2.1:2"})
	}
	closed := 0
	for _, conn := range slow {
		if conn.closed {
			closed++
		}
	}
	require.LessOrEqual(t, closed, most/4+1)
}

// fakeConn is a connection from somewhere else.
type fakeConn struct {
	net.Conn
	from   string
	closed bool
}

func (c *fakeConn) RemoteAddr() net.Addr { return fakeAddr(c.from) }
func (c *fakeConn) Close() error         { c.closed = true; return nil }

type fakeAddr string

func (fakeAddr) Network() string  { return "tcp" }
func (a fakeAddr) String() string { return string(a) }

func TestMostConnections(t *testing.T) {
	most, err := mostConnections(0)
	require.NoError(t, err)
	require.Positive(t, most)
	require.LessOrEqual(t, most, min(maxConnections, openFiles()/2), "half is for files")
	_, err = mostConnections(openFiles())
	require.ErrorContains(t, err, "ulimit")
}
