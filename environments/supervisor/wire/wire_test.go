package wire

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

const patience, tick = 10 * time.Second, time.Millisecond

// pair returns the links of two sides, whose streams of other kinds nobody handles.
func pair(t *testing.T) (a, b *Link) {
	x, y := net.Pipe()
	t.Cleanup(func() { x.Close(); y.Close() })
	a, b = NewLink(x), NewLink(y)
	none := func(m Message) error { return errors.New("unexpected " + string(rune(m.Kind))) }
	go func() { _ = a.Serve(x, none) }()
	go func() { _ = b.Serve(y, none) }()
	return a, b
}

func TestStreamsCarryWhatIsWritten(t *testing.T) {
	a, b := pair(t)
	content := make([]byte, 5*Window+7)
	_, _ = rand.Read(content)
	for cell := range uint32(3) {
		here, there := a.Stream(cell+1), b.Stream(cell+1)
		go func() { _, _ = here.Write(content) }()
		got := make([]byte, len(content))
		_, err := io.ReadFull(there, got)
		require.NoError(t, err)
		require.True(t, bytes.Equal(content, got))
	}
}

func TestSlowReaderHoldsUpItselfAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := pair(t)
		slow, _ := a.Stream(1), b.Stream(1)
		written := 0
		go func() { written, _ = slow.Write(make([]byte, 3*Window)) }()
		synctest.Wait()
		here, there := a.Stream(2), b.Stream(2)
		_, err := here.Write([]byte("hello"))
		require.NoError(t, err)
		got := make([]byte, 5)
		_, err = io.ReadFull(there, got)
		require.NoError(t, err)
		require.Equal(t, "hello", string(got))
		require.Zero(t, written, "it waits")
		slow.Close()
		synctest.Wait()
		require.Equal(t, Window, written, "no more than the window")
	})
}

func TestEndComesAfterTheLastByte(t *testing.T) {
	a, b := pair(t)
	here, there := a.Stream(1), b.Stream(1)
	_, err := here.Write([]byte("last"))
	require.NoError(t, err)
	_, err = here.Write([]byte("."))
	require.NoError(t, err)
	end := errors.New("it ended")
	require.Eventually(t, func() bool { there.mu.Lock(); defer there.mu.Unlock(); return there.buffer.Len() == 5 }, patience, tick)
	there.End(end)
	there.End(errors.New("again"))
	got, err := io.ReadAll(there)
	require.Equal(t, "last.", string(got))
	require.Equal(t, end, err)
	_, err = there.Write([]byte("x"))
	require.Equal(t, end, err)
}

func TestCloseEndsWhatWaits(t *testing.T) {
	a, b := pair(t)
	here, there := a.Stream(1), b.Stream(1)
	reading := make(chan error, 1)
	go func() {
		_, err := there.Read(make([]byte, 1))
		reading <- err
	}()
	there.Close()
	require.Equal(t, io.ErrClosedPipe, <-reading)
	_, err := here.Write([]byte("dropped"))
	require.NoError(t, err)
}

// TestNothingIsSentOnceClosed: what a stream was about to send when it was closed does not come
// after that, when another stream of its cell may have begun.
func TestNothingIsSentOnceClosed(t *testing.T) {
	var out bytes.Buffer
	l := NewLink(&out)
	s := l.Stream(1)
	require.NoError(t, s.received(make([]byte, Window)))
	l.writing.Lock() // another message is under way
	var both sync.WaitGroup
	var data, credit error
	both.Go(func() { _, data = s.Write([]byte("late")) })
	both.Go(func() { _, credit = s.Read(make([]byte, Window)) })
	require.Eventually(t, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.credit < Window && s.buffer.Len() == 0
	}, patience, tick)
	s.Close()
	l.writing.Unlock()
	both.Wait()
	require.Equal(t, io.ErrClosedPipe, data)
	require.NoError(t, credit, "it has read")
	require.Empty(t, out.Bytes())
}

func TestServeRefuses(t *testing.T) {
	message := func(kind Kind, payload []byte) []byte {
		var out bytes.Buffer
		_ = NewLink(&out).Send(kind, 1, payload)
		return out.Bytes()
	}
	for desc, data := range map[string][]byte{
		"data of any length":     message(KindData, make([]byte, maxData+1)),
		"more than was asked":    bytes.Repeat(message(KindData, make([]byte, maxData)), Window/maxData+1),
		"a credit for nothing":   message(KindCredit, []byte{0, 0, 0, 1}),
		"a credit of no number":  message(KindCredit, []byte{1}),
		"the middle of a header": {byte(KindPing), 0},
		"a payload that is cut":  message(KindEnded, make([]byte, 9))[:12],
		"no end":                 append(message(KindEnded, nil)[:headerSize], 1),
	} {
		l := NewLink(io.Discard)
		l.Stream(1)
		require.Error(t, l.Serve(bytes.NewReader(data), func(Message) error { return nil }), desc)
	}
}

// FuzzServe: whatever comes, it ends, and holds no more than windows.
func FuzzServe(f *testing.F) {
	var seed bytes.Buffer
	l := NewLink(&seed)
	_ = l.SendJSON(KindOpen, 1, Open{Memory: 1})
	_ = l.Send(KindData, 1, []byte("data"))
	_ = l.Send(KindCredit, 1, []byte{0, 0, 1, 0})
	_ = l.Send(KindPing, 0, nil)
	f.Add(seed.Bytes())
	f.Fuzz(func(t *testing.T, data []byte) {
		l := NewLink(io.Discard)
		s := l.Stream(1)
		_ = l.Serve(bytes.NewReader(data), func(m Message) error {
			if m.Kind == KindOpen {
				_, err := Decode[Open](m)
				return err
			}
			return nil
		})
		require.LessOrEqual(t, s.buffer.Len(), Window)
		require.LessOrEqual(t, s.credit, Window)
	})
}
