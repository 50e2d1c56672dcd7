package faults_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// eventually looks again and again, until what is to be is.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !is(); time.Sleep(poll) {
		require.True(t, time.Now().Before(deadline), "it never happens: %s", what)
	}
}

// mountDisk mounts a small disk, until the test ends.
func mountDisk(t *testing.T, path string, size int64) {
	t.Helper()
	needRoot(t)
	require.NoError(t, os.MkdirAll(path, 0o755))
	require.NoError(t, syscall.Mount("tmpfs", path, "tmpfs", 0, "size="+strconv.FormatInt(size, 10)))
	t.Cleanup(func() { unmountBelow(path) })
}

// fill leaves so many bytes on the disk below a folder, until empty is called.
func fill(t *testing.T, folder string, leave int64) (empty func()) {
	t.Helper()
	path := filepath.Join(folder, "filler")
	f, err := os.Create(path)
	require.NoError(t, err)
	chunk := make([]byte, 16<<10)
	for err == nil {
		_, err = f.Write(chunk)
	}
	require.ErrorIs(t, err, syscall.ENOSPC)
	size, err := f.Seek(0, 2)
	require.NoError(t, err)
	require.Greater(t, size, leave)
	require.NoError(t, f.Truncate(size-leave))
	require.NoError(t, f.Close())
	return func() { require.NoError(t, os.Remove(path)) }
}

// process is one of the machine's.
type process struct {
	pid     int
	command string
}

// processesOf are those with a folder in their command line: a daemon's own, its
// containerd and the shims.
func processesOf(folder string) (found []process) {
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range all {
		raw, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(raw, []byte(folder+"/")) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err == nil && pid != os.Getpid() {
			found = append(found, process{pid, strings.ReplaceAll(string(raw), "\x00", " ")})
		}
	}
	return found
}

// mountsBelow are the mount points in a folder, and the folder itself.
func mountsBelow(folder string) (found []string) {
	raw, _ := os.ReadFile("/proc/self/mountinfo")
	for line := range strings.Lines(string(raw)) {
		if fields := strings.Fields(line); len(fields) > 4 && strings.HasPrefix(fields[4]+"/", folder+"/") {
			found = append(found, fields[4])
		}
	}
	return found
}

// unmountBelow takes the last first, as they may be within each other.
func unmountBelow(folder string) {
	all := mountsBelow(folder)
	for i := len(all) - 1; i >= 0; i-- {
		_ = syscall.Unmount(all[i], syscall.MNT_DETACH)
	}
}

// cgroupsOf are the folders of cgroups whose names begin so, of version 1 and 2.
func cgroupsOf(name string) (found []string) {
	for _, pattern := range []string{"/sys/fs/cgroup/", "/sys/fs/cgroup/*/"} {
		some, _ := filepath.Glob(pattern + name + "*")
		found = append(found, some...)
	}
	return found
}

// removeCgroups removes them with what is in them, of a container whose daemon was
// killed: also a process, if the daemon was about to start it.
func removeCgroups(name string) {
	for deadline := time.Now().Add(stopTime); time.Now().Before(deadline); time.Sleep(poll) {
		all := cgroupsOf(name)
		if len(all) == 0 {
			return
		}
		for _, path := range all {
			within, _ := filepath.Glob(path + "/*") // of a container whose daemon was killed
			for _, folder := range append(within, path) {
				raw, _ := os.ReadFile(filepath.Join(folder, "cgroup.procs"))
				for field := range strings.FieldsSeq(string(raw)) {
					if pid, err := strconv.Atoi(field); err == nil && pid > 0 {
						_ = syscall.Kill(pid, syscall.SIGKILL)
					}
				}
				_ = syscall.Rmdir(folder) // refused by files, which are no more than a view
			}
		}
	}
}
