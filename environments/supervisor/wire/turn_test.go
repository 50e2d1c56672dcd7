package wire

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io"
	"net"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"
)

func bytesOf(t testing.TB, n int) []byte {
	out := make([]byte, n)
	_, err := rand.Read(out)
	require.NoError(t, err)
	return out
}

// TestTokens have no byte that ends a message.
func TestTokens(t *testing.T) {
	token := NewToken()
	require.Len(t, token, TokenSize)
	require.NotContains(t, string(token), string(rune(end)))
	require.NotEqual(t, token, NewToken())
}

// TestIntakeTurns finds a token wherever it is, however the stream comes in.
func TestIntakeTurns(t *testing.T) {
	token, nonce := bytesOf(t, TokenSize), bytesOf(t, TokenSize)
	for _, before := range []string{"", "x", string(token[:5]), string(token[:31]), "a message " + string(token[:20]) + "of an earlier service"} {
		stream := append(append([]byte(before), token...), append(nonce, "the next"...)...)
		for desc, r := range map[string]io.Reader{
			"at once":      bytes.NewReader(stream),
			"byte by byte": iotest.OneByteReader(bytes.NewReader(stream)),
			"in halves":    iotest.HalfReader(bytes.NewReader(stream)),
		} {
			in := NewIntake(r)
			in.Look(token)
			got, err := io.ReadAll(in)
			require.ErrorIs(t, err, ErrTurned, desc)
			require.True(t, bytes.HasPrefix([]byte(before), got), desc)
			require.Equal(t, nonce, in.Turned(), desc)
			require.Nil(t, in.Turned(), desc)
			rest, err := io.ReadAll(in)
			require.NoError(t, err, desc)
			require.Equal(t, "the next", string(rest), desc)
		}
	}
}

// TestIntakeHoldsNothingBack of a message, also if its payload ends as the token begins.
func TestIntakeHoldsNothingBack(t *testing.T) {
	near, far := net.Pipe()
	t.Cleanup(func() { near.Close() })
	in := NewIntake(near)
	in.Look(bytes.Repeat([]byte("}"), TokenSize))
	go func() { _ = NewLink(far).Send(KindOpen, 1, []byte(`{"a": {}}`)) }()
	heard := make(chan Message, 1)
	go func() {
		_ = NewLink(io.Discard).Serve(in, func(m Message) error { heard <- m; return nil })
	}()
	select {
	case m := <-heard:
		require.Equal(t, Message{Kind: KindOpen, Cell: 1, Payload: []byte(`{"a": {}}`)}, m)
	case <-time.After(patience):
		require.Fail(t, "it is held back")
	}
}

// BenchmarkIntake reads pieces as small as a header is.
func BenchmarkIntake(b *testing.B) {
	stream, piece := make([]byte, 1<<20), make([]byte, headerSize)
	b.SetBytes(int64(len(stream)))
	for b.Loop() {
		in := NewIntake(bytes.NewReader(stream))
		in.Look(NewToken())
		for {
			if _, err := in.Read(piece); err != nil {
				break
			}
		}
	}
}

// TestTurn passes over what an earlier service was being told.
func TestTurn(t *testing.T) {
	token, nonce := bytesOf(t, TokenSize), bytesOf(t, TokenSize)
	near, far := net.Pipe()
	go func() {
		said := make([]byte, 2*TokenSize)
		_, _ = io.ReadFull(far, said)
		if !bytes.Equal(said, append(bytes.Clone(token), nonce...)) {
			far.Close()
			return
		}
		_, _ = far.Write(bytes.Join([][]byte{[]byte("the end of a message"), nonce[:9], nonce, []byte("resumed")}, nil))
	}()
	require.NoError(t, Turn(near, token, nonce))
	rest := make([]byte, 7)
	_, err := io.ReadFull(near, rest)
	require.NoError(t, err)
	require.Equal(t, "resumed", string(rest))
	far.Close()
	require.Error(t, Turn(near, token, nonce))
}

// TestOver: nothing of an old link goes out after the answer to a new service.
func TestOver(t *testing.T) {
	var out bytes.Buffer
	old := NewLink(&out)
	stream := old.Stream(1)
	require.NoError(t, old.Over([]byte("answer")))
	require.Error(t, old.Send(KindPing, 0, nil))
	_, err := stream.Write([]byte("late"))
	require.ErrorIs(t, err, io.ErrClosedPipe)
	require.Equal(t, "answer", out.String())
}

// FuzzIntake: an intake gives what it gets, up to a token.
func FuzzIntake(f *testing.F) {
	token := bytes.Repeat([]byte("ab"), TokenSize/2)
	f.Add([]byte("abab"), 3)
	f.Add(append(bytes.Clone(token), token...), 1)
	f.Fuzz(func(t *testing.T, data []byte, size int) {
		in := NewIntake(bytes.NewReader(data))
		in.Look(token)
		var got []byte
		piece := make([]byte, max(1, size%100))
		for {
			n, err := in.Read(piece)
			got = append(got, piece[:n]...)
			if errors.Is(err, ErrTurned) {
				require.Contains(t, string(data), string(token))
				return
			}
			if err != nil {
				break
			}
		}
		require.True(t, bytes.HasPrefix(data, got))
		require.NotContains(t, string(got), string(token))
	})
}
