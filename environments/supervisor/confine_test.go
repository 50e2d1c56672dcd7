package main

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestConfine is in a process of its own, as it is for good.
func TestConfine(t *testing.T) {
	const variable = "SUPERVISOR_TEST_CONFINE"
	folder := os.Getenv(variable)
	if folder == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^TestConfine$", "-test.v")
		cmd.Env = append(os.Environ(), variable+"="+t.TempDir())
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		if bytes.Contains(out, []byte("--- SKIP")) {
			t.Skipf("%s", out)
		}
		return
	}
	mine, other := filepath.Join(folder, "mine"), filepath.Join(folder, "other")
	require.NoError(t, errors.Join(os.Mkdir(mine, 0o755), os.Mkdir(other, 0o755), os.WriteFile(filepath.Join(other, "a"), nil, 0o644)))
	require.NoError(t, unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
	err := confine(mine)
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, syscall.ENOTSUP) {
		t.Skipf("this kernel has none, or this program is not static: %v", err)
	}
	require.NoError(t, err)
	var all sync.WaitGroup
	for range 20 { // on any thread
		all.Go(func() {
			_, err := os.OpenFile(filepath.Join(other, "a"), os.O_WRONLY, 0)
			require.ErrorIs(t, err, fs.ErrPermission)
			require.ErrorIs(t, os.Mkdir(filepath.Join(other, "b"), 0o755), fs.ErrPermission)
		})
	}
	all.Wait()
	require.NoError(t, os.Mkdir(filepath.Join(mine, "cell"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(mine, "cell", "limit"), []byte("1"), 0o644))
	require.NoError(t, os.Rename(filepath.Join(mine, "cell"), filepath.Join(mine, "session")))
	require.NoError(t, os.RemoveAll(filepath.Join(mine, "session")))
}
