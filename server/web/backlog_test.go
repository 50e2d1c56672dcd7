package web

import (
	"bytes"
	"log/slog"
	"os"
	"testing"

	"notebox/executor/intake"

	"github.com/stretchr/testify/require"
)

// FuzzBacklog: what comes out is what went in, in its order, in memory, on disk and where
// the disk takes no more. Each byte of steps adds a piece or takes one.
func FuzzBacklog(f *testing.F) {
	f.Add([]byte{1, 2, 3, 0x80, 0x80, 0x80})
	f.Add(bytes.Repeat([]byte{0x7f, 0x7f, 0x80}, 20))
	f.Add([]byte{0x7f, 0x7f, 0x7f, 0xff, 0x7f, 0x7f, 0x80, 0x80, 0x80, 1, 0x80})
	f.Fuzz(func(t *testing.T, steps []byte) {
		if len(steps) > 200 {
			return
		}
		parent := t.TempDir()
		b := Backlog{Work: newSpool(t, parent)}
		var want []byte
		count := byte(0)
		take := func() {
			p, err := b.Next()
			require.NoError(t, err)
			require.LessOrEqual(t, len(p), WritePiece)
			require.Equal(t, len(want) == 0, len(p) == 0)
			require.True(t, bytes.Equal(want[:len(p)], p))
			want = want[len(p):]
		}
		for _, step := range steps {
			switch {
			case step == 0xff: // the disk is full from here on
				b.Full = os.ErrClosed
			case step >= 0x80:
				take()
			default:
				count++
				p := bytes.Repeat([]byte{count}, int(step)*1000)
				b.Add(p)
				want = append(want, p...)
			}
			require.EqualValues(t, len(want), b.Size())
			if b.Full == nil {
				require.LessOrEqual(t, len(b.Head)+len(b.Rest), intake.SpoolMemory)
			}
		}
		for len(want) > 0 {
			take()
		}
		require.NoError(t, b.Close())
		left, err := os.ReadDir(parent)
		require.NoError(t, err)
		require.Empty(t, left)
	})
}

func newSpool(t *testing.T, dir string) *intake.Workspace {
	i, err := intake.New(dir, 1, func() bool { return false }, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	return i.Aside()
}
