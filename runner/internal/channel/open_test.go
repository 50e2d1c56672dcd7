package channel

import (
	"io"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const ours = firstOurs

// opener is a Mux that has opened a channel.
func opener(t *testing.T) (*Mux, *Conn, *line) {
	l := newLine()
	m := NewMux(l.send)
	c, err := m.Open()
	require.NoError(t, err)
	require.Equal(t, []string{string(payload(opOpen, ours, ""))}, l.all())
	t.Cleanup(func() { m.Close() })
	return m, c, l
}

func TestOpenBothWays(t *testing.T) {
	m, c, l := opener(t)
	_, err := io.WriteString(c, "request")
	require.NoError(t, err)
	require.NoError(t, c.CloseWrite())
	require.NoError(t, m.Receive(payload(opData, ours, "reply")))
	require.NoError(t, m.Receive(payload(opEnd, ours, "")))
	got, err := io.ReadAll(c)
	require.NoError(t, err)
	require.Equal(t, "reply", string(got))
	require.NoError(t, c.Close())
	require.Equal(t, []string{
		string(payload(opOpen, ours, "")), string(payload(opData, ours, "request")), string(payload(opEnd, ours, "")),
	}, l.all())
	require.Empty(t, m.open)
}

// TestOpenKeepsToCredit: what goes into the sandbox waits for its reader, as what comes
// out of it does.
func TestOpenKeepsToCredit(t *testing.T) {
	m, c, l := opener(t)
	written := make(chan error, 1)
	go func() {
		_, err := io.WriteString(c, strings.Repeat("x", Window+1))
		written <- err
	}()
	l.await(t, 1+Window/maxData)
	require.Empty(t, written)
	require.NoError(t, m.Receive(payload(opCredit, ours, count(1))))
	require.NoError(t, <-written)
	require.NoError(t, m.Receive(payload(opData, ours, strings.Repeat("x", Window))))
	require.ErrorContains(t, m.Receive(payload(opData, ours, "x")), "more data than there is room for")
}

func TestOpenIDs(t *testing.T) {
	m, first, _ := opener(t)
	require.NoError(t, first.Reset())
	second, err := m.Open()
	require.NoError(t, err)
	require.EqualValues(t, ours+1, second.id, "an id is used once")
	for _, c := range []struct {
		desc    string
		payload []byte
		err     string
	}{
		{"data for the one that is over", payload(opData, ours, "x"), ""},
		{"data for the other", payload(opData, ours+1, "x"), ""},
		{"for one that was never open", payload(opData, ours+2, "x"), "never open"},
		{"an open as if it were the service's", payload(opOpen, ours+2, ""), "not an open"},
		{"for a channel of the sandbox that was never open", payload(opData, 1, "x"), "never open"},
		{"an open of the sandbox's", payload(opOpen, 1, ""), ""},
	} {
		if err := m.Receive(c.payload); c.err == "" {
			require.NoError(t, err, c.desc)
		} else {
			require.ErrorContains(t, err, c.err, c.desc)
		}
	}
	require.True(t, Ours(payload(opData, ours, "")))
	require.False(t, Ours(payload(opData, ours-1, "")))
	require.False(t, Ours([]byte("d")))
}

func TestOpenRefused(t *testing.T) {
	l := newLine()
	m := NewMux(l.send)
	for range MaxChannels {
		_, err := m.Open()
		require.NoError(t, err)
	}
	_, err := m.Open()
	require.ErrorIs(t, err, errFull)
	require.NoError(t, m.Close())
	_, err = m.Open()
	require.ErrorIs(t, err, net.ErrClosed)

	broken := NewMux(func([]byte) error { return io.ErrClosedPipe })
	_, err = broken.Open()
	require.ErrorIs(t, err, io.ErrClosedPipe)
	require.Empty(t, broken.open, "what could not be opened is over")
}
