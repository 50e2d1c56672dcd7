package channel

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net"
	"sync"
)

const (
	// Window is how many bytes of a channel may be under way in one direction, as
	// in the harness: enough for a fast download, and with all channels 16 MiB.
	Window = 256 << 10
	// MaxChannels of one sandbox at one time, as in the harness, which lets further
	// connections wait: more than a browser or a package manager opens.
	MaxChannels = 64
	// maxData is how much of a channel goes into one frame, in bytes, so that
	// others have their turn.
	maxData = 64 << 10
	// headerSize of a payload, bytes.
	headerSize = 5
)

type operation byte

const (
	opOpen   operation = 'o'
	opData   operation = 'd'
	opCredit operation = 'c'
	opEnd    operation = 'e'
	opClose  operation = 'q'
	opReset  operation = 'x'
)

// firstOurs is the lowest id of a channel that the service opens.
const firstOurs = 1 << 31

// Ours reports whether a payload is of a channel that the service opens.
func Ours(payload []byte) bool { return len(payload) > 1 && payload[1]&0x80 != 0 }

// errFull is that MaxChannels are open.
var errFull = fmt.Errorf("channel: more than %d", MaxChannels)

// Mux is a net.Listener of the connections from one sandbox, and opens others into it.
type Mux struct {
	send    func(payload []byte) error
	opening sync.Mutex

	mu      sync.Mutex
	changed *sync.Cond // accepting or closed
	open    map[uint32]*Conn
	last    uint32  // the highest id so far of the sandbox's
	ours    uint32  // the highest so far of the service's; 0 if there was none
	waiting []*Conn // opened, not accepted; at most MaxChannels
	closed  bool
}

// NewMux returns a Mux that sends payloads with send, which may wait, and is
// called from several goroutines.
func NewMux(send func(payload []byte) error) *Mux {
	m := &Mux{send: send, open: map[uint32]*Conn{}}
	m.changed = sync.NewCond(&m.mu)
	return m
}

// Receive takes one payload from the sandbox. It never waits. An error means that
// the sandbox does not keep to the protocol.
func (m *Mux) Receive(payload []byte) error {
	if len(payload) < headerSize {
		return fmt.Errorf("channel: a payload of %d bytes", len(payload))
	}
	op, id, data := operation(payload[0]), binary.BigEndian.Uint32(payload[1:]), payload[headerSize:]
	m.mu.Lock()
	defer m.mu.Unlock()
	if op == opOpen {
		return m.opened(id, data)
	}
	if id == 0 || id < firstOurs && id > m.last || id >= firstOurs && id > m.ours {
		return fmt.Errorf("channel: %q for channel %d, which was never open", rune(op), id)
	}
	c := m.open[id]
	switch {
	case op != opData && op != opCredit && len(data) > 0:
		return fmt.Errorf("channel: %q with data", rune(op))
	case op == opData:
		return c.received(data)
	case op == opCredit:
		return c.credited(data)
	case op == opEnd:
		return c.gotEnd()
	case op == opReset:
		if c != nil {
			c.over(errReset)
		}
		return nil
	}
	return fmt.Errorf("channel: operation %q", rune(op))
}

func (m *Mux) opened(id uint32, data []byte) error {
	switch {
	case id <= m.last || id >= firstOurs || len(data) > 0:
		return errors.New("channel: not an open as it should be")
	case len(m.open) >= MaxChannels:
		return errFull
	}
	m.last = id
	if m.closed {
		return nil
	}
	c := m.add(id)
	m.waiting = append(m.waiting, c)
	m.changed.Signal()
	return nil
}

// add makes a channel that is open. The lock is held.
func (m *Mux) add(id uint32) *Conn {
	c := &Conn{mux: m, id: id, credit: Window}
	c.changed = sync.NewCond(&m.mu)
	m.open[id] = c
	return c
}

// Open opens a channel into the sandbox. It may wait as the Mux's send does.
func (m *Mux) Open() (*Conn, error) {
	m.opening.Lock() // ids go up on the wire, too
	defer m.opening.Unlock()
	m.mu.Lock()
	switch {
	case m.closed:
		m.mu.Unlock()
		return nil, net.ErrClosed
	case len(m.open) >= MaxChannels || m.ours == math.MaxUint32:
		m.mu.Unlock()
		return nil, errFull
	}
	m.ours = max(m.ours+1, firstOurs)
	c := m.add(m.ours)
	m.mu.Unlock()
	if err := m.write(opOpen, c.id, nil); err != nil {
		m.mu.Lock()
		defer m.mu.Unlock()
		c.over(err)
		return nil, err
	}
	return c, nil
}

// Accept implements net.Listener; its connections are *Conn.
func (m *Mux) Accept() (net.Conn, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for len(m.waiting) == 0 && !m.closed {
		m.changed.Wait()
	}
	if m.closed {
		return nil, net.ErrClosed
	}
	c := m.waiting[0]
	m.waiting = m.waiting[1:]
	return c, nil
}

// Close implements net.Listener: it ends all connections too, without telling
// the sandbox, and never waits.
func (m *Mux) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	for _, c := range m.open {
		c.over(net.ErrClosed)
	}
	m.waiting = nil
	m.changed.Broadcast()
	return nil
}

// Addr implements net.Listener.
func (m *Mux) Addr() net.Addr { return Addr{} }

// Addr is the address of all that there is on either side of a Mux.
type Addr struct{}

// Network implements net.Addr.
func (Addr) Network() string { return "channel" }

func (Addr) String() string { return "sandbox" }

// write sends a payload; never under the lock.
func (m *Mux) write(op operation, id uint32, data []byte) error {
	payload := make([]byte, headerSize, headerSize+len(data))
	payload[0] = byte(op)
	binary.BigEndian.PutUint32(payload[1:], id)
	return m.send(append(payload, data...))
}
