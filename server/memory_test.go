package server

import (
	"context"
	"net"
	"net/http"
	"sync"
)

// memoryAddr is where a service in a bubble listens, see inMemory.
const memoryAddr = "127.0.0.1:80"

// inMemory gives a service a network without sockets, so that it can be in a bubble of
// synctest.
func inMemory(c *Config) { c.ListenAddr = memoryAddr }

// memory is a net.Listener on memoryAddr.
type memory struct {
	conns  chan net.Conn
	closed chan struct{}
	close  func()
}

func newMemory() *memory {
	m := &memory{conns: make(chan net.Conn), closed: make(chan struct{})}
	m.close = sync.OnceFunc(func() { close(m.closed) })
	return m
}

func (m *memory) Accept() (net.Conn, error) {
	select {
	case c := <-m.conns:
		return c, nil
	case <-m.closed:
		return nil, net.ErrClosed
	}
}

func (m *memory) Close() error { m.close(); return nil }

func (m *memory) Addr() net.Addr { return memoryName{} }

// transport sends requests to the listener.
func (m *memory) transport() *http.Transport {
	return &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		near, far := net.Pipe()
		select {
		case m.conns <- far:
			return near, nil
		case <-m.closed:
			return nil, net.ErrClosed
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}}
}

type memoryName struct{}

func (memoryName) Network() string { return "memory" }
func (memoryName) String() string  { return memoryAddr }
