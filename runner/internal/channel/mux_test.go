package channel

import (
	"encoding/binary"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// patience is how long a busy machine may take for anything.
const patience = 30 * time.Second

// line keeps what a Mux sends.
type line struct {
	mu   sync.Mutex
	sent []string
	more chan struct{} // something was sent
}

func newLine() *line { return &line{more: make(chan struct{}, 1000)} }

func (l *line) send(payload []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sent = append(l.sent, string(payload))
	l.more <- struct{}{}
	return nil
}

func (l *line) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]string(nil), l.sent...)
}

// await returns what was sent when that is n payloads.
func (l *line) await(t *testing.T, n int) []string {
	t.Helper()
	for end := time.After(patience); len(l.all()) < n; {
		select {
		case <-l.more:
		case <-end:
			require.FailNow(t, "nothing more is sent", "%q", l.all())
		}
	}
	require.Len(t, l.all(), n)
	return l.all()
}

func payload(op operation, id uint32, data string) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{byte(op)}, id), data...)
}

func count(n uint32) string { return string(binary.BigEndian.AppendUint32(nil, n)) }

// opened is a Mux with a connection that a sandbox has made.
func opened(t *testing.T) (*Mux, *Conn, *line) {
	l := newLine()
	m := NewMux(l.send)
	require.NoError(t, m.Receive(payload(opOpen, 1, "")))
	c, err := m.Accept()
	require.NoError(t, err)
	t.Cleanup(func() { m.Close() })
	return m, c.(*Conn), l
}

func TestBothWays(t *testing.T) {
	m, c, l := opened(t)
	require.NoError(t, m.Receive(payload(opData, 1, "hel")))
	require.NoError(t, m.Receive(payload(opData, 1, "lo")))
	require.NoError(t, m.Receive(payload(opEnd, 1, "")))
	got, err := io.ReadAll(c)
	require.NoError(t, err)
	require.Equal(t, "hello", string(got))
	n, err := c.Write([]byte("back"))
	require.NoError(t, err)
	require.Equal(t, 4, n)
	require.NoError(t, c.Close())
	require.NoError(t, c.Close())
	require.Equal(t, []string{string(payload(opData, 1, "back")), string(payload(opEnd, 1, ""))}, l.all())
	require.Empty(t, m.open)
}

func TestEnds(t *testing.T) {
	for _, c := range []struct {
		desc string
		do   func(*Mux, *Conn)
		sent []operation
		open bool
	}{
		{"close", func(_ *Mux, c *Conn) { c.Close() }, []operation{opClose}, false},
		{"half", func(_ *Mux, c *Conn) { c.CloseWrite() }, []operation{opEnd}, true},
		{"half, twice", func(_ *Mux, c *Conn) { c.CloseWrite(); c.CloseWrite() }, []operation{opEnd}, true},
		{"half, then close", func(_ *Mux, c *Conn) { c.CloseWrite(); c.Close() }, []operation{opEnd, opClose}, false},
		{"both halves", func(m *Mux, c *Conn) { c.CloseWrite(); m.Receive(payload(opEnd, 1, "")) }, []operation{opEnd}, false},
		{"the other half first", func(m *Mux, c *Conn) { m.Receive(payload(opEnd, 1, "")); c.CloseWrite(); c.Close() }, []operation{opEnd}, false},
		{"reset", func(_ *Mux, c *Conn) { c.Reset(); c.Reset(); c.Close() }, []operation{opReset}, false},
		{"reset by the sandbox", func(m *Mux, c *Conn) { m.Receive(payload(opReset, 1, "")); c.Close(); c.Reset() }, nil, false},
		{"the end of all", func(m *Mux, c *Conn) { m.Close(); c.Close(); c.Reset() }, nil, false},
	} {
		t.Run(c.desc, func(t *testing.T) {
			m, conn, l := opened(t)
			c.do(m, conn)
			var sent []operation
			for _, s := range l.all() {
				sent = append(sent, operation(s[0]))
			}
			require.Equal(t, c.sent, sent)
			require.Equal(t, c.open, len(m.open) == 1)
			require.NoError(t, m.Receive(payload(opData, 1, "late")), "it may have been under way")
			_, err := conn.Write([]byte("x"))
			require.Error(t, err)
		})
	}
}

// TestSlowReader: a reader that takes nothing has its window full, and no more.
func TestSlowReader(t *testing.T) {
	m, c, l := opened(t)
	for range Window / maxData {
		require.NoError(t, m.Receive(payload(opData, 1, strings.Repeat("x", maxData))))
	}
	require.ErrorContains(t, m.Receive(payload(opData, 1, "x")), "room")
	_, err := io.ReadFull(c, make([]byte, Window/2-1))
	require.NoError(t, err)
	require.Empty(t, l.all())
	_, err = io.ReadFull(c, make([]byte, 1))
	require.NoError(t, err)
	require.Equal(t, []string{string(payload(opCredit, 1, count(Window/2)))}, l.all())
	require.NoError(t, m.Receive(payload(opData, 1, strings.Repeat("x", Window/2))))
}

// TestSlowSandbox: a writer waits for credit, and others do not.
func TestSlowSandbox(t *testing.T) {
	m, c, l := opened(t)
	written := make(chan error, 1)
	go func() {
		_, err := c.Write(make([]byte, Window+10))
		written <- err
	}()
	full := l.await(t, Window/maxData)
	for _, s := range full {
		require.Len(t, s, headerSize+maxData)
	}
	require.NoError(t, m.Receive(payload(opOpen, 2, "")))
	other, err := m.Accept()
	require.NoError(t, err)
	_, err = other.Write([]byte("x"))
	require.NoError(t, err)
	require.Empty(t, written)
	require.NoError(t, m.Receive(payload(opCredit, 1, count(4))))
	require.NoError(t, m.Receive(payload(opCredit, 1, count(6))))
	require.NoError(t, <-written)
}

func TestWhoWaitsIsToldOfTheEnd(t *testing.T) {
	for desc, end := range map[string]func(*Mux, *Conn){
		"close":    func(_ *Mux, c *Conn) { c.Close() },
		"reset":    func(_ *Mux, c *Conn) { c.Reset() },
		"by it":    func(m *Mux, _ *Conn) { m.Receive(payload(opReset, 1, "")) },
		"all":      func(m *Mux, _ *Conn) { m.Close() },
		"deadline": func(_ *Mux, c *Conn) { c.SetDeadline(time.Now()) },
	} {
		t.Run(desc, func(t *testing.T) {
			m, c, l := opened(t)
			read, written := make(chan error, 1), make(chan error, 1)
			go func() {
				_, err := c.Read(make([]byte, 1))
				read <- err
			}()
			go func() {
				_, err := c.Write(make([]byte, Window+1))
				written <- err
			}()
			l.await(t, Window/maxData)
			end(m, c)
			require.Error(t, <-read)
			require.Error(t, <-written)
		})
	}
}

func TestDeadlines(t *testing.T) {
	m, c, _ := opened(t)
	require.NoError(t, c.SetReadDeadline(time.Now().Add(20*time.Millisecond)))
	_, err := c.Read(make([]byte, 1))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	var timeout net.Error
	require.ErrorAs(t, err, &timeout)
	require.NoError(t, c.SetReadDeadline(time.Time{}))
	require.NoError(t, m.Receive(payload(opData, 1, "x")))
	n, err := c.Read(make([]byte, 10))
	require.NoError(t, err)
	require.Equal(t, 1, n)
}

func TestHostileSandbox(t *testing.T) {
	for _, c := range []struct {
		desc     string
		payloads [][]byte
	}{
		{"nothing", [][]byte{{}}},
		{"half a header", [][]byte{[]byte("d\x00\x00")}},
		{"no operation", [][]byte{payload('?', 1, "")}},
		{"the service's own operation", [][]byte{payload(opClose, 1, "")}},
		{"data of a channel that is none", [][]byte{payload(opData, 2, "x")}},
		{"channel 0", [][]byte{payload(opData, 0, "x")}},
		{"open again", [][]byte{payload(opOpen, 1, "")}},
		{"open with data", [][]byte{payload(opOpen, 2, "x")}},
		{"open backwards", [][]byte{payload(opOpen, 9, ""), payload(opOpen, 8, "")}},
		{"no data", [][]byte{payload(opData, 1, "")}},
		{"data after the end", [][]byte{payload(opEnd, 1, ""), payload(opData, 1, "x")}},
		{"two ends", [][]byte{payload(opEnd, 1, ""), payload(opEnd, 1, "")}},
		{"an end with data", [][]byte{payload(opEnd, 1, "x")}},
		{"too much data", [][]byte{payload(opData, 1, strings.Repeat("x", Window)), payload(opData, 1, "x")}},
		{"credit of three bytes", [][]byte{payload(opCredit, 1, "\x00\x00\x01")}},
		{"credit for nothing", [][]byte{payload(opCredit, 1, count(0))}},
		{"more credit than was sent", [][]byte{payload(opCredit, 1, count(1))}},
		{"credit that overflows", [][]byte{payload(opCredit, 1, count(1<<32-1))}},
	} {
		t.Run(c.desc, func(t *testing.T) {
			m, _, _ := opened(t)
			for i, p := range c.payloads {
				err := m.Receive(p)
				require.Equal(t, i == len(c.payloads)-1, err != nil, "%v", err)
			}
		})
	}
	t.Run("too many channels", func(t *testing.T) {
		m := NewMux(newLine().send)
		for id := range uint32(MaxChannels) {
			require.NoError(t, m.Receive(payload(opOpen, id+1, "")))
		}
		require.Error(t, m.Receive(payload(opOpen, MaxChannels+1, "")))
		require.NoError(t, m.Receive(payload(opReset, 5, "")))
		require.NoError(t, m.Receive(payload(opOpen, MaxChannels+2, "")))
	})
	t.Run("after the end of all", func(t *testing.T) {
		m, _, _ := opened(t)
		require.NoError(t, m.Close())
		require.NoError(t, m.Receive(payload(opOpen, 2, "")))
		require.NoError(t, m.Receive(payload(opData, 2, "x")))
		_, err := m.Accept()
		require.ErrorIs(t, err, net.ErrClosed)
		require.Empty(t, m.open)
	})
}

// FuzzReceive has a sandbox send any payloads while this side reads and writes.
func FuzzReceive(f *testing.F) {
	f.Add([]byte("\x05o\x00\x00\x00\x01\x08d\x00\x00\x00\x01abc\x05e\x00\x00\x00\x01"))
	f.Add([]byte("\x05o\x00\x00\x00\x01\x09c\x00\x00\x00\x01\x00\x00\x00\x05\x05x\x00\x00\x00\x01"))
	f.Add([]byte("\x05o\x00\x00\x00\x02\x05o\x00\x00\x00\x03\x05x\x00\x00\x00\x02\x06d\x00\x00\x00\x02x"))
	f.Add([]byte("\x05q\x00\x00\x00\x01\x00\x01o"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		m := NewMux(func([]byte) error { return nil })
		var served sync.WaitGroup
		served.Go(func() {
			for {
				c, err := m.Accept()
				if err != nil {
					return
				}
				served.Go(func() {
					_, _ = io.CopyN(c, c, 1000)
					_ = c.Close()
				})
			}
		})
		for len(raw) > 0 {
			n := min(int(raw[0]), len(raw)-1)
			if m.Receive(raw[1:1+n]) != nil {
				break
			}
			raw = raw[1+n:]
			m.mu.Lock()
			require.LessOrEqual(t, len(m.open), MaxChannels)
			require.LessOrEqual(t, len(m.waiting), MaxChannels)
			for _, c := range m.open {
				require.LessOrEqual(t, c.buffer.Len()+c.taken, Window)
				require.LessOrEqual(t, c.credit, Window)
			}
			m.mu.Unlock()
		}
		m.Close()
		served.Wait()
	})
}
