package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"notebox/environments/supervisor/wire"
)

// nobody is who clones into groups here: the zygote's root is no other user's either.
const nobody = 65534

// TestUnified has processes born in groups by somebody without rights, and run into limits.
// It needs a group of version 2 that is its alone, as make test-v2 gives it.
func TestUnified(t *testing.T) {
	own, err := os.ReadFile("/proc/self/cgroup")
	require.NoError(t, err)
	path, unified := strings.CutPrefix(strings.TrimSpace(string(own)), "0::")
	if !unified || os.Getenv("NOTEBOX_TEST_DELEGATED") == "" {
		t.Skip("there is no group of version 2 for it")
	}
	g, err := newGroups(filepath.Join("/sys/fs/cgroup", filepath.Dir(path)), wire.Setup{Memory: 1 << 30, Pids: 1000})
	require.NoError(t, err)
	require.Equal(t, strconv.Itoa(os.Getpid()), read(t, g.path("", leaf, "cgroup.procs")))
	require.Equal(t, strconv.Itoa(1<<30), read(t, g.path("", leaf, "memory.max")))

	const memory = 64 << 20
	_, err = g.make(1, wire.Open{Memory: memory, CPUs: 0.5, Pids: 20})
	require.NoError(t, err)
	group := func(file string) string { return read(t, g.path("", name(1), file)) }
	require.NoError(t, g.hold(1, nil, wire.Open{Memory: memory, CPUs: 0.5, Pids: 20}))
	require.Positive(t, g.chargedToWorker())

	out, err := born(t, g, "cat /proc/self/cgroup; echo x >/sys/fs/cgroup/cgroup.procs")
	require.Error(t, err)
	require.Contains(t, out, path+"/cell-1\n")

	_, err = born(t, g, "head -c 200000000 /dev/zero | tail")
	require.Error(t, err)
	require.Contains(t, group("memory.events"), "oom_kill 1")
	peak, err := strconv.Atoi(group("memory.peak"))
	require.NoError(t, err)
	require.LessOrEqual(t, peak, memory)
	require.Positive(t, g.charged(1), "what is left in the cache of files")

	_, _ = born(t, g, "for i in $(seq 40); do sleep 1 & done; wait")
	require.NotEqual(t, "max 0", group("pids.events"))

	_, _ = born(t, g, "timeout 2 sh -c 'while :; do :; done'")
	require.NotContains(t, group("cpu.stat"), "nr_throttled 0\n")

	g.keep(1)
	size, err := unix.Getxattr(g.path("", name(1)), "user.notebox.session", nil)
	require.NoError(t, err)
	require.Zero(t, size)
	require.NoError(t, g.remove(1))
	require.NoDirExists(t, g.path("", name(1)))
}

// born runs a script in the group of cell 1, from a thread that has no rights.
func born(t *testing.T, g *groups, script string) (string, error) {
	t.Helper()
	group, err := g.birthplace(1)
	require.NoError(t, err)
	defer group.Close()
	cmd := exec.Command("/bin/sh", "-c", script)
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(group.Fd())}
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // which ends with it
		if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, nobody, nobody, nobody); errno != 0 {
			started <- errno
			return
		}
		started <- cmd.Start()
	}()
	require.NoError(t, <-started)
	err = cmd.Wait()
	return out.String(), err
}

func read(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	return strings.TrimSpace(string(raw))
}
