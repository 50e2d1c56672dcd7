package intake

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestDecodingIsInTurns: many large texts of one key do not hold up another's.
func TestDecodingIsInTurns(t *testing.T) {
	intake, err := New(t.TempDir(), 1, func() bool { return true }, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	const one, two = "one", "two"
	var leave []func()
	for range maxDecoding {
		l, err := intake.turns.Enter(t.Context(), one)
		require.NoError(t, err)
		leave = append(leave, l)
	}
	decoded := make(chan string, 20)
	wait := func(owner string) {
		waiting := intake.Waiting()
		go func() {
			_ = intake.InTurn(t.Context(), owner, SpoolMemory, func() error { decoded <- owner; return nil })
		}()
		require.Eventually(t, func() bool { return intake.Waiting() > waiting }, time.Minute, time.Millisecond)
	}
	for range 12 {
		wait(one)
	}
	wait(two)
	leave[0]()
	require.Equal(t, two, <-decoded)
	for _, l := range leave[1:] {
		l()
	}
	require.NoError(t, intake.InTurn(t.Context(), two, 1, func() error { return nil }), "a small one needs no turn")
}

func TestLeftoversAreSwept(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "request-123"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "request-123", "1"), nil, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "other"), nil, 0o600))
	_, err := New(dir, 1, nil, nil)
	require.NoError(t, err)
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1)
	require.Equal(t, "other", entries[0].Name())
}

// TestPlacesAreShared: an owner takes as many places as it leaves free, and nothing is kept of
// who has none.
func TestPlacesAreShared(t *testing.T) {
	p := &Places{Most: 4, Share: func() bool { return true }}
	one, err := p.Enter("one")
	require.NoError(t, err)
	two, err := p.Enter("one")
	require.NoError(t, err)
	_, err = p.Enter("one")
	require.Error(t, err)
	other, err := p.Enter("other")
	require.NoError(t, err)
	for _, leave := range []func(){one, two, other, other} {
		leave()
	}
	require.Zero(t, p.Taken())
	require.Empty(t, p.byOwner)
}
