package cells_test

import (
	"crypto/rand"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/runner"
	"notebox/runner/runnertest"
)

// TestLimits has cells run into the limits of their control groups, of either version.
func TestLimits(t *testing.T) {
	l := smallLimits()
	l.Timeout, l.CPUs, l.Pids = time.Minute, 0.5, 64
	engine := newEngine(t, "test-limits-"+strings.ToLower(rand.Text()))
	beside, err := engine.Start(t.Context(), environment(t), l)
	require.NoError(t, err)
	require.NoError(t, runnertest.Ready(beside))
	for _, c := range []struct {
		desc, code string
		status     runner.Status
		printed    string
	}{
		{
			desc: "memory", status: runner.StatusOutOfMemory,
			code: `hoard = b"x" * (1 << 30)`,
		},
		{
			desc: "memory of a program that the kernel of the notebook starts", status: runner.StatusOutOfMemory,
			code: `import subprocess, sys
subprocess.run([sys.executable, "-c", "hoard = b'x' * (1 << 30)"])`,
		},
		{
			desc: "processes", status: runner.StatusOK, printed: "True True",
			code: `import os, time
forks = 0
try:
    while forks < 100:
        if os.fork() == 0:
            time.sleep(100)
        forks += 1
except BlockingIOError:
    pass
print(forks > 20, forks < 64)`,
		},
		{
			desc: "processor time", status: runner.StatusOK, printed: "True True",
			code: `import time
begun, end = time.process_time(), time.monotonic() + 2
while time.monotonic() < end:
    pass
used = time.process_time() - begun
print(used > 0.2, used < 1.3)`,
		},
		{
			desc: "what the kernel says of them", status: runner.StatusOK,
			printed: fmt.Sprintf("{'memory': %d, 'with swap': %[1]d, 'pids': 64, 'cores': 0.5}", l.Memory),
			code: `import os
def read(path):
    return open("/sys/fs/cgroup/" + path).read().strip()
if os.path.exists("/sys/fs/cgroup/cgroup.controllers"):
    memory, pids = int(read("memory.max")), int(read("pids.max"))
    swap = memory + int(read("memory.swap.max"))
    quota, period = map(int, read("cpu.max").split())
else:
    memory, pids = int(read("memory/memory.limit_in_bytes")), int(read("pids/pids.max"))
    swap = int(read("memory/memory.memsw.limit_in_bytes"))
    quota, period = int(read("cpu/cpu.cfs_quota_us")), int(read("cpu/cpu.cfs_period_us"))
print({"memory": memory, "with swap": swap, "pids": pids, "cores": quota / period})`,
		},
		{
			desc: "no control group to look into, and nothing there to change", status: runner.StatusOK,
			printed: "['/'] ['tmpfs'] []",
			code: `import os
unified = os.path.exists("/sys/fs/cgroup/cgroup.controllers")
own = {"", "memory", "cpu", "cpuacct", "pids"} if not unified else {""}
paths = {line.rstrip().split(":")[2] for line in open("/proc/self/cgroup") if own & set(line.split(":")[1].split(","))}
kinds = [line.split(" - ")[1].split()[0] for line in open("/proc/self/mountinfo") if " /sys/fs/cgroup" in line or "- cgroup" in line]
written = []
for path, folders, files in os.walk("/sys/fs/cgroup"):
    for file in files:
        try:
            open(os.path.join(path, file), "r+")
            written.append(file)
        except OSError:
            pass
    try:
        os.mkdir(path + "/mine")
        written.append(path)
    except OSError:
        pass
print(sorted(paths), kinds, written)`,
		},
	} {
		t.Run(c.desc, func(t *testing.T) {
			recorder := runnertest.NewRecorder(t)
			out, err := runnertest.Once(t.Context(), engine, testLog(t), runner.Spec{
				ID: "limits", Environment: environment(t), Limits: l, Notebook: runnertest.Notebook(c.code),
			}, recorder)
			require.NoError(t, err)
			recorder.Seal()
			require.Equal(t, c.status, out.Status, "%s", out.Notebook)
			printed, err := runnertest.StreamedText(recorder.Events())
			require.NoError(t, err)
			if c.printed != "" {
				require.Equal(t, c.printed, strings.TrimSpace(printed))
			}
			require.LessOrEqual(t, out.Usage.PeakMemory, l.Memory)
			require.Positive(t, out.Usage.PeakMemory)
			require.Positive(t, out.Usage.CPU)
		})
	}
	worker, _, _ := strings.Cut(beside.ID(), "-cell-")
	next, err := engine.Start(t.Context(), environment(t), l)
	require.NoError(t, err)
	require.Contains(t, next.ID(), worker, "the worker goes on")
	require.NoError(t, next.Kill(t.Context()))
	require.NoError(t, beside.Kill(t.Context()))
}
