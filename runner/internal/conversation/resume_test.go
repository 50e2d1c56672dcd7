package conversation

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/runner/internal/frame"
)

// TestResume: whatever was under way, what is read afterwards is what follows.
func TestResume(t *testing.T) {
	resumed := func(version int) []byte {
		var b bytes.Buffer
		require.NoError(t, frame.WriteJSON(&b, frame.KindResumed, frame.Resumed{Version: version, KernelRestarted: true, TTLSeconds: 3.5}))
		return b.Bytes()
	}
	for _, c := range []struct {
		desc   string
		before int // bytes of what was under way
		echo   bool
		after  []byte
		fails  string
	}{
		{"nothing was under way", 0, true, resumed(1), ""},
		{"the rest of a frame", 12345, true, resumed(1), ""},
		{"files", 3 << 20, true, resumed(1), ""},
		{"another frame", 0, true, fuzzFrame(frame.KindReady, `{"version":1}`), "instead of resumed"},
		{"another version", 0, true, resumed(2), "version 2"},
		{"no JSON", 0, true, fuzzFrame(frame.KindResumed, `[]`), "cannot unmarshal"},
		{"its failure", 0, true, fuzzFrame(frame.KindFailed, `{"message":"OSError: /mnt/data/secret"}`), "the harness failed: OSError"},
		{"no nonce", 1 << 10, false, resumed(1), "did not answer in time"},
	} {
		t.Run(c.desc, func(t *testing.T) {
			t.Parallel()
			near, far := net.Pipe()
			defer far.Close()
			token := bytes.Repeat([]byte{7}, frame.TokenSize)
			harness := make(chan error, 1)
			go func() { harness <- playHarness(far, token, c.before, c.echo, c.after) }()
			patience := 30 * time.Second
			if !c.echo {
				patience = time.Second
			}
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			s := &pipeSandbox{near}
			r, err := resume(ctx, s, token)
			if c.fails != "" {
				require.ErrorContains(t, err, c.fails)
				require.NotContains(t, err.Error(), "secret")
				_, err = s.Read(make([]byte, 1))
				require.ErrorIs(t, err, io.ErrClosedPipe, "nothing goes on with it")
				return
			}
			require.NoError(t, err)
			require.Equal(t, frame.Resumed{Version: 1, KernelRestarted: true, TTLSeconds: 3.5}, r)
			kind, _, err := frame.Read(s, 0)
			require.NoError(t, err, "the stream is at a frame's begin")
			require.Equal(t, frame.KindKept, kind)
			require.NoError(t, <-harness)
		})
	}
}

// playHarness sends what was under way, takes the token and a nonce, answers, and goes on.
func playHarness(far net.Conn, token []byte, before int, echo bool, after []byte) error {
	if _, err := far.Write(bytes.Repeat([]byte{1, 'D', 0}, before)[:before]); err != nil {
		return err
	}
	got := make([]byte, len(token)+frame.TokenSize)
	if _, err := io.ReadFull(far, got); err != nil {
		return err
	}
	if !bytes.HasPrefix(got, token) {
		return errors.New("another token")
	}
	if !echo {
		_, err := io.Copy(io.Discard, far)
		return err
	}
	if _, err := far.Write(append(got[len(token):], after...)); err != nil {
		return err
	}
	return frame.Write(far, frame.KindKept, nil)
}

// pipeSandbox is a stream without a sandbox.
type pipeSandbox struct{ net.Conn }

func (*pipeSandbox) ID() string                 { return "pipe" }
func (*pipeSandbox) Kill(context.Context) error { return nil }

// FuzzSkipTo holds skipTo to what a search in the whole finds, however the bytes come.
func FuzzSkipTo(f *testing.F) {
	f.Add([]byte("abab"), []byte("ababac"), []byte("rest"), int64(100))
	f.Add([]byte{}, []byte("x"), []byte{}, int64(1))
	f.Add([]byte("aaaa"), []byte("aab"), []byte("aab"), int64(6))
	f.Add([]byte("noise"), []byte("mark"), []byte("mark"), int64(8))
	f.Fuzz(func(t *testing.T, noise, mark, rest []byte, limit int64) {
		if len(mark) == 0 {
			return
		}
		stream := append(append(bytes.Clone(noise), mark...), rest...)
		end := bytes.Index(stream, mark) + len(mark)
		for _, r := range []io.Reader{
			bytes.NewReader(stream), iotest.OneByteReader(bytes.NewReader(stream)),
			iotest.HalfReader(bytes.NewReader(stream)), iotest.DataErrReader(bytes.NewReader(stream)),
		} {
			err := skipTo(r, mark, limit)
			if limit < int64(end) {
				require.ErrorIs(t, err, errStale)
				continue
			}
			require.NoError(t, err)
			left, err := io.ReadAll(r)
			require.NoError(t, err)
			require.Equal(t, string(stream[end:]), string(left))
		}
		cut := stream[:end-1]
		require.ErrorIs(t, skipTo(bytes.NewReader(cut), mark, int64(len(stream))), io.EOF)
	})
}
