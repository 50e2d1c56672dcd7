//go:build unix

package access

import (
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRootsKeyIsTheServices: a keys file that root makes or changes belongs to the service, who owns
// the folder. Another user's belongs to that user.
func TestRootsKeyIsTheServices(t *testing.T) {
	folder := t.TempDir()
	uid, gid := os.Getuid(), os.Getgid()
	if uid == 0 {
		uid, gid = 61234, 61235
		require.NoError(t, os.Chown(folder, uid, gid))
	}
	path := filepath.Join(folder, "keys")
	for _, name := range []string{"alice", "bob"} {
		require.NoError(t, Add(t.Context(), path, NamedEntry(name, Limits{}, SecretOf(name))))
		info, err := os.Stat(path)
		require.NoError(t, err)
		stat := info.Sys().(*syscall.Stat_t)
		require.Equal(t, []int{uid, gid}, []int{int(stat.Uid), int(stat.Gid)}, name)
	}
}

// TestAwaitOpensNothing: a service that would wait for its first key does not write to what is there.
func TestAwaitOpensNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys")
	require.NoError(t, syscall.Mkfifo(path, 0o600)) // to open it would wait for ever
	_, err := Open(path, Options{Await: true})
	require.ErrorContains(t, err, "it is not a regular file")

	require.NoError(t, os.Remove(path))
	require.NoError(t, os.WriteFile(path, []byte("one\n"), 0o400))
	k, err := Open(path, Options{Await: true, Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	require.NoError(t, err)
	require.Equal(t, 1, k.Len())
}
