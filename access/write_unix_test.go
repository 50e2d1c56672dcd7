//go:build unix

package access

import (
	"bytes"
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

// TestMountedFileIsReadByItsGroup: a file that a cluster mounts is root's, and its group is how the
// service may read it. There is nothing to warn of.
func TestMountedFileIsReadByItsGroup(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can give files away")
	}
	path := filepath.Join(t.TempDir(), "keys")
	require.NoError(t, os.WriteFile(path, []byte("one\n"), 0o600))
	require.NoError(t, os.Chmod(path, 0o440))
	warns := func() bool {
		var logged bytes.Buffer
		_, err := Open(path, Options{Log: slog.New(slog.NewTextHandler(&logged, nil))})
		require.NoError(t, err)
		return logged.Len() > 0
	}
	require.True(t, warns(), "its own")
	require.NoError(t, os.Chown(path, 61234, 0))
	require.False(t, warns(), "another's")
	require.NoError(t, os.Chmod(path, 0o444))
	require.True(t, warns(), "everybody's")
}
