package channel

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"time"
)

// errReset is what is left of a connection whose other side gave it up.
var errReset = errors.New("channel: the connection was reset")

// Conn is one connection from or into a sandbox. Its methods may be called from several
// goroutines, as those of any net.Conn.
type Conn struct {
	mux     *Mux
	id      uint32
	writing sync.Mutex // what goes out of one channel, in order

	// Under the lock of the Mux.
	changed *sync.Cond
	buffer  bytes.Buffer // received, not read; at most Window
	taken   int          // bytes read that no credit was given back for
	credit  int          // bytes that the sandbox has room for
	ended   bool         // the sandbox sends no more
	shut    bool         // nothing more is sent
	err     error        // why it is over, if that is not by both ends
	reads   deadline
	writes  deadline
}

// received takes data in. Here and below c is nil if the channel is over.
func (c *Conn) received(data []byte) error {
	switch {
	case len(data) == 0 || c != nil && c.ended:
		return errors.New("channel: data out of turn")
	case c == nil:
		return nil
	case c.buffer.Len()+c.taken+len(data) > Window:
		return errors.New("channel: more data than there is room for")
	}
	c.buffer.Write(data)
	c.changed.Broadcast()
	return nil
}

func (c *Conn) credited(data []byte) error {
	if len(data) != 4 {
		return errors.New("channel: a credit that is no number")
	}
	n := binary.BigEndian.Uint32(data)
	switch {
	case n == 0 || n > Window || c != nil && c.credit+int(n) > Window:
		return errors.New("channel: a credit for more than was sent")
	case c == nil:
		return nil
	}
	c.credit += int(n)
	c.changed.Broadcast()
	return nil
}

func (c *Conn) gotEnd() error {
	switch {
	case c == nil:
		return nil
	case c.ended:
		return errors.New("channel: it ended twice")
	}
	c.ended = true
	if c.shut {
		c.forget()
	}
	c.changed.Broadcast()
	return nil
}

// over ends a connection at once; what was received is dropped.
func (c *Conn) over(err error) {
	c.err, c.buffer = err, bytes.Buffer{}
	c.forget()
	c.changed.Broadcast()
}

// forget makes room for another channel.
func (c *Conn) forget() {
	delete(c.mux.open, c.id)
	c.mux.waiting = slices.DeleteFunc(c.mux.waiting, func(w *Conn) bool { return w == c && w.err != nil })
	c.reads.stop()
	c.writes.stop()
}

// Read implements net.Conn. It is io.EOF after the sandbox's end.
func (c *Conn) Read(p []byte) (int, error) {
	n, credit, err := c.take(p)
	if credit > 0 {
		// If it fails the sandbox is gone, which the next Read is told.
		_ = c.mux.write(opCredit, c.id, binary.BigEndian.AppendUint32(nil, uint32(credit)))
	}
	return n, err
}

func (c *Conn) take(p []byte) (n, credit int, err error) {
	c.mux.mu.Lock()
	defer c.mux.mu.Unlock()
	for c.buffer.Len() == 0 && len(p) > 0 {
		switch {
		case c.err != nil:
			return 0, 0, c.err
		case c.ended:
			return 0, 0, io.EOF
		case c.reads.passed():
			return 0, 0, os.ErrDeadlineExceeded
		}
		c.changed.Wait()
	}
	n, _ = c.buffer.Read(p)
	c.taken += n
	// Not for each few bytes, nor so late that the sandbox waits.
	if c.taken >= Window/2 && !c.ended && c.err == nil {
		credit, c.taken = c.taken, 0
	}
	return n, credit, nil
}

// Write implements net.Conn. It waits for the sandbox's reader.
func (c *Conn) Write(p []byte) (int, error) {
	c.writing.Lock()
	defer c.writing.Unlock()
	written := 0
	for written < len(p) {
		n, err := c.room(len(p) - written)
		if err == nil {
			err = c.mux.write(opData, c.id, p[written:written+n])
		}
		if err != nil {
			return written, err
		}
		written += n
	}
	return written, nil
}

// room waits until the sandbox has room, and takes it.
func (c *Conn) room(wanted int) (int, error) {
	c.mux.mu.Lock()
	defer c.mux.mu.Unlock()
	for {
		switch {
		case c.err != nil:
			return 0, c.err
		case c.shut:
			return 0, io.ErrClosedPipe
		case c.writes.passed():
			return 0, os.ErrDeadlineExceeded
		case c.credit > 0:
			n := min(wanted, c.credit, maxData)
			c.credit -= n
			return n, nil
		}
		c.changed.Wait()
	}
}

// CloseWrite tells the sandbox that no data follows. Reading goes on.
func (c *Conn) CloseWrite() error {
	c.mux.mu.Lock()
	if c.err != nil || c.shut {
		c.mux.mu.Unlock()
		return c.err
	}
	c.shut = true
	if c.ended {
		c.forget()
	}
	c.changed.Broadcast()
	c.mux.mu.Unlock()
	return c.last(opEnd)
}

// Close implements net.Conn: the sandbox gets what was written, and then an end.
func (c *Conn) Close() error {
	c.mux.mu.Lock()
	op := opClose
	switch {
	case c.err != nil:
		c.mux.mu.Unlock()
		return nil
	case c.ended && c.shut:
		op = 0
	case c.ended:
		op = opEnd
	}
	c.shut = true
	c.over(net.ErrClosed)
	c.mux.mu.Unlock()
	if op == 0 {
		return nil
	}
	return c.last(op)
}

// Reset ends the connection at once, as one that failed: what the sandbox has
// got of it is not whole.
func (c *Conn) Reset() error {
	c.mux.mu.Lock()
	if c.err != nil || c.ended && c.shut {
		c.mux.mu.Unlock()
		return nil
	}
	c.over(errReset)
	c.mux.mu.Unlock()
	return c.mux.write(opReset, c.id, nil)
}

// last sends an operation after the data that was written.
func (c *Conn) last(op operation) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	return c.mux.write(op, c.id, nil)
}

// LocalAddr implements net.Conn.
func (c *Conn) LocalAddr() net.Addr { return Addr{} }

// RemoteAddr implements net.Conn.
func (c *Conn) RemoteAddr() net.Addr { return Addr{} }

// SetDeadline implements net.Conn.
func (c *Conn) SetDeadline(t time.Time) error {
	_ = c.SetReadDeadline(t)
	return c.SetWriteDeadline(t)
}

// SetReadDeadline implements net.Conn.
func (c *Conn) SetReadDeadline(t time.Time) error { return c.set(&c.reads, t) }

// SetWriteDeadline implements net.Conn.
func (c *Conn) SetWriteDeadline(t time.Time) error { return c.set(&c.writes, t) }

func (c *Conn) set(d *deadline, t time.Time) error {
	c.mux.mu.Lock()
	defer c.mux.mu.Unlock()
	d.stop()
	d.at = t
	if c.err == nil && !t.IsZero() {
		d.timer = time.AfterFunc(time.Until(t), func() {
			c.mux.mu.Lock()
			defer c.mux.mu.Unlock()
			c.changed.Broadcast()
		})
	}
	return nil
}

// deadline is a time that wakes who waits.
type deadline struct {
	at    time.Time // zero: none
	timer *time.Timer
}

func (d *deadline) passed() bool { return !d.at.IsZero() && !time.Now().Before(d.at) }

func (d *deadline) stop() {
	if d.timer != nil {
		d.timer.Stop()
	}
}
