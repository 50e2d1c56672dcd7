package server

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/labstack/echo/v4"
)

const (
	// maxConnections is far above the calls that run code at one time; each that is idle
	// costs some 20 KiB, and one with as many small header fields as it may have 600 KiB.
	maxConnections = 4096
	// fileReserve is for what a thousand runs have open at one time.
	fileReserve = 4096
	// strangerIdle is how long a kept connection waits for its next request that has not
	// had a good one yet: a client whose key was refused has no use for more.
	strangerIdle = 5 * time.Second
	// newcomerGrace is how long a new connection has to bring its first request before it is
	// worth less than others.
	newcomerGrace = 2 * time.Second
	// fullEvery is how often the log says that connections are closed.
	fullEvery = time.Minute
)

// mostConnections is what was asked for, or else maxConnections; at most half of the files
// that this process may have open, less a reserve. A connection in use has one file beside
// it, seldom two; the reserve is for sandboxes and for what runs store.
// Go raises the soft limit to the hard one at the start of every program (package os).
func mostConnections(asked int) (int, error) {
	files := openFiles()
	most := (files - min(files/4, fileReserve)) / 2
	if asked > most {
		return 0, fmt.Errorf("%d connections are more than %d, half of the %d files that this process may have open less a reserve: raise that limit (ulimit -n)", asked, most, files)
	}
	return min(cmp.Or(asked, maxConnections), most), nil
}

// connections bounds the connections of all clients. One more than that closes another, so that
// whoever opens many takes them from himself. It is, in this order,
//   - a stranger's before one that has had a good request, unless that is of an owner who has more
//     than the share;
//   - one of the address that has most;
//   - one that waits, before one that serves, before one that comes: whose first request may be on
//     its way;
//   - the one that has done so longest. Of those of one owner that serve, it is the newest.
//
// A stranger's may be serving: what is open to all can be asked for, and not read. If all others
// have had a good request and are serving, the one that has just come is closed.
//
// No address has a number of its own: behind a reverse proxy one has them all.
type connections struct {
	most   int           // at one time
	idle   time.Duration // strangerIdle; tests have less
	log    *slog.Logger
	mu     sync.Mutex
	all    map[net.Conn]*connection
	from   map[netip.Prefix]int
	of     map[string]int // known ones, by owner
	logged time.Time
}

// connection is one client's. connections.mu guards it.
type connection struct {
	net     net.Conn
	from    netip.Prefix
	since   time.Time // it was opened, or its last request was answered
	known   bool      // it has had a good request
	owner   string    // whose that was
	serving int       // requests
	asked   bool      // a request has come
}

type connectionKey struct{}

func newConnections(most int, log *slog.Logger) *connections {
	return &connections{most: most, idle: strangerIdle, log: log, all: map[net.Conn]*connection{}, from: map[netip.Prefix]int{}, of: map[string]int{}}
}

// guard has c bound the connections of server.
func (c *connections) guard(server *http.Server) {
	server.ConnContext = c.open
	server.ConnState = func(conn net.Conn, state http.ConnState) {
		if state == http.StateClosed || state == http.StateHijacked {
			c.closed(conn)
		}
	}
}

// open takes a new connection, and closes one if there are too many.
func (c *connections) open(ctx context.Context, conn net.Conn) context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	added := &connection{net: conn, from: prefixOf(conn), since: time.Now()}
	if len(c.all) >= c.most {
		least := c.least()
		if least == nil {
			least = added
		}
		if now := time.Now(); now.Sub(c.logged) >= fullEvery {
			c.logged = now
			c.log.Warn("there are too many connections: those are closed that wait", "most", c.most)
		}
		c.forget(least.net)
		_ = least.net.Close()
		if least == added {
			return ctx
		}
	}
	c.all[conn] = added
	c.from[added.from]++
	return context.WithValue(ctx, connectionKey{}, added)
}

// least is the connection that is worth least, or nil if none may be closed.
func (c *connections) least() (least *connection) {
	share, now := c.share(), time.Now()
	coming := 0
	for _, one := range c.all {
		if one.comes(now) {
			coming++
		}
	}
	if coming > c.most/4 { // a flood that says nothing, which ends no request
		now = now.Add(newcomerGrace)
	}
	for _, one := range c.all {
		switch {
		case one.known && one.serving > 0 && (one.owner == "" || c.counts(one, share)):
		case least == nil, c.less(one, least, share, now):
			least = one
		}
	}
	return least
}

func (c *connections) less(a, b *connection, share int, now time.Time) bool {
	switch {
	case c.counts(a, share) != c.counts(b, share):
		return c.counts(b, share)
	case c.from[a.from] != c.from[b.from]:
		return c.from[a.from] > c.from[b.from]
	case a.comes(now) != b.comes(now):
		return b.comes(now)
	case (a.serving > 0) != (b.serving > 0):
		return b.serving > 0
	case a.known && a.serving > 0: // what has gone on for long goes on
		return a.since.After(b.since)
	}
	return a.since.Before(b.since)
}

// comes reports whether a connection is new, and its first request may be on its way. If those
// that serve were worth more, who has filled all places with slow requests would have each
// newcomer closed by the next.
func (c *connection) comes(now time.Time) bool {
	return !c.asked && now.Sub(c.since) < newcomerGrace
}

// share is how many connections an owner may have that are worth more than strangers': half
// of all; and less than who has most, if all owners together leave newcomers less than a
// quarter. A newcomer would else be closed by the next one, before its first good request.
func (c *connections) share() int {
	known, most := 0, 0
	for _, n := range c.of {
		known += n
		most = max(most, n)
	}
	if 4*known > 3*c.most {
		return min(c.most/2, most-1)
	}
	return c.most / 2
}

// counts reports whether a connection is worth more than a stranger's. One of an owner who
// has more than the share is not: that owner could else keep new clients out.
func (c *connections) counts(one *connection, share int) bool {
	return one.known && c.of[one.owner] <= share
}

func (c *connections) closed(conn net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forget(conn)
}

func (c *connections) forget(conn net.Conn) {
	if one := c.all[conn]; one != nil {
		delete(c.all, conn)
		c.disown(one)
		if c.from[one.from]--; c.from[one.from] == 0 {
			delete(c.from, one.from)
		}
	}
}

// serve marks a connection as serving while its request is.
func (c *connections) serve(next echo.HandlerFunc) echo.HandlerFunc {
	return func(e echo.Context) error {
		one, ok := e.Request().Context().Value(connectionKey{}).(*connection)
		if !ok { // a request of the service's own
			return next(e)
		}
		c.change(one, 1)
		defer c.change(one, -1)
		return next(e)
	}
}

func (c *connections) change(one *connection, by int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	one.serving += by
	one.asked = true
	one.since = time.Now()
	if one.serving == 0 && !one.known {
		since := one.since
		time.AfterFunc(c.idle, func() { c.expire(one, since) })
	}
}

// expire closes a stranger's connection that has waited since then.
func (c *connections) expire(one *connection, since time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !one.known && one.serving == 0 && one.since.Equal(since) {
		_ = one.net.Close()
	}
}

// ofLinks is the owner of connections on which signed links were read, whoever did.
const ofLinks = "links"

// good marks the connection of a request that had the right to be answered, by its owner.
func (c *connections) good(ctx context.Context, owner string) {
	if one, ok := ctx.Value(connectionKey{}).(*connection); ok {
		c.mu.Lock()
		defer c.mu.Unlock()
		if _, there := c.all[one.net]; !there {
			return // it was closed for another
		}
		c.disown(one)
		one.known, one.owner = true, owner
		c.of[owner]++
	}
}

// disown takes a connection from the count of its owner. The lock is held.
func (c *connections) disown(one *connection) {
	if !one.known {
		return
	}
	if c.of[one.owner]--; c.of[one.owner] == 0 {
		delete(c.of, one.owner)
	}
}

// prefixOf is the address that a connection comes from: of IPv6 the network, of whose
// addresses one machine has as many as it likes.
func prefixOf(conn net.Conn) netip.Prefix {
	const network = 64
	from, err := netip.ParseAddrPort(conn.RemoteAddr().String())
	if err != nil {
		return netip.Prefix{}
	}
	addr := from.Addr().Unmap().WithZone("")
	prefix, _ := addr.Prefix(min(network, addr.BitLen()))
	return prefix
}
