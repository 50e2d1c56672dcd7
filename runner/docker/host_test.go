package docker

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestSocketsHoldLittle: on cgroup v1 no limit of memory holds for what is in a socket.
func TestSocketsHoldLittle(t *testing.T) {
	const bound = 512 << 20 // what SECURITY.md names
	for kind, v := range runScript(t, "buffers.py") {
		got := v.(map[string]any)
		t.Logf("%s: %.0f MB", kind, got["held"].(float64)/1e6)
		require.Equal(t, "No buffer space available", got["end"], kind)
		require.Less(t, got["held"], float64(bound), kind)
		require.Greater(t, got["held"], float64(10<<20), "%s: something was measured", kind)
	}
}

const corePattern = "/proc/sys/kernel/core_pattern"

// TestCrashesStartNothing: where core_pattern is a pipe, the host's kernel starts a program of
// root's for a crash in a sandbox.
func TestCrashesStartNothing(t *testing.T) {
	folder := patternOfOurs(t)
	crash := func(name string) string {
		return fmt.Sprintf(`import os, resource, signal
for limit in None, (0, 0), (resource.RLIM_INFINITY,) * 2, (1, 1):
    if os.fork() == 0:
        try:
            if limit:
                resource.setrlimit(resource.RLIMIT_CORE, limit)
        except (ValueError, OSError):
            pass
        open("/proc/self/comm", "w").write("%s")
        os.kill(os.getpid(), signal.SIGSEGV)
    assert os.WIFSIGNALED(os.wait()[1])
`, name)
	}
	started := func(name string) bool {
		_, err := os.Stat(filepath.Join(folder, name))
		return err == nil
	}
	out, err := exec.Command("python3", "-c", "import resource; resource.setrlimit(resource.RLIMIT_CORE, (0, 0))\n"+crash("nb-outside")).CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Eventually(t, func() bool { return started("nb-outside") }, 10*time.Second, 10*time.Millisecond,
		"a crash outside starts the program, whatever the limit but 1")

	require.Equal(t, true, runCode(t, crash("nb-inside")+"print('true')"))
	time.Sleep(time.Second)
	require.False(t, started("nb-inside"), "a crash in a sandbox does not")
}

// patternOfOurs has crashes start a program that leaves a file by their name in the folder
// that is returned, until the test ends.
func patternOfOurs(t *testing.T) (folder string) {
	t.Helper()
	before, err := os.ReadFile(corePattern)
	if err == nil {
		err = os.WriteFile(corePattern, before, 0o644)
	}
	if err != nil {
		why := "this needs a machine whose core_pattern can be written: " + err.Error()
		require.NotEqual(t, "all", os.Getenv("NOTEBOX_TEST_FAULTS"), why)
		t.Skip(why)
	}
	folder, err = os.MkdirTemp("/tmp", "nb") // the pattern has 127 characters
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(folder)) })
	program := filepath.Join(folder, "crash")
	require.NoError(t, os.WriteFile(program, []byte("#!/bin/sh\ncat >/dev/null\n: >"+folder+"/$1\n"), 0o755))
	require.NoError(t, os.WriteFile(corePattern, []byte("|"+program+" %e"), 0o644))
	t.Cleanup(func() { require.NoError(t, os.WriteFile(corePattern, before, 0o644)) })
	return folder
}

// TestPopularProgramsGoOn: with the filter, the bounds and the masks that there are.
func TestPopularProgramsGoOn(t *testing.T) {
	for name, outcome := range runScript(t, "popular.py") {
		require.Equal(t, "ok", outcome, name)
	}
}
