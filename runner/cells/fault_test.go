package cells_test

import (
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/runner"
	"notebox/runner/cells"
	"notebox/runner/runnertest"
)

// TestFaultsOfAWorker: what happens to a worker ends the cells that it has with an error of
// the service's, if they cannot go on, and the next cell comes from another worker.
func TestFaultsOfAWorker(t *testing.T) {
	for _, c := range []struct {
		desc  string
		fault func(t *testing.T, worker string)
		live  bool                              // cells that there are go on
		after func(t *testing.T, worker string) // nil: nothing
	}{
		{desc: "removed by hand", fault: func(t *testing.T, worker string) { do(t, "docker", "rm", "--force", worker) }},
		{desc: "the supervisor is killed", fault: func(t *testing.T, worker string) { signal(t, worker, "KILL", "/opt/notebox/supervisor") }},
		{desc: "the zygote is killed", fault: func(t *testing.T, worker string) { signal(t, worker, "KILL", "/opt/notebox zygote") }},
		{desc: "the builder is killed", fault: func(t *testing.T, worker string) { do(t, "kill", "-KILL", builder(t, worker)) }},
		{desc: "the builder is stopped", fault: func(t *testing.T, worker string) { do(t, "kill", "-STOP", builder(t, worker)) }, live: true},
		{desc: "the zygote may not fork", fault: func(t *testing.T, worker string) {
			pid := process(t, worker, "/opt/notebox zygote")
			do(t, "nsenter", "--user", "--target", pid, "sh", "-c", "echo 0 >/proc/sys/user/max_pid_namespaces")
		}, live: true},
		{desc: "the zygote is stopped", fault: func(t *testing.T, worker string) { signal(t, worker, "STOP", "/opt/notebox zygote") }, live: true, after: func(t *testing.T, worker string) {
			signal(t, worker, "CONT", "/opt/notebox zygote") // it finds the order of a cell that is no more
			time.Sleep(time.Second)
			process(t, worker, "/opt/notebox zygote")
		}},
	} {
		t.Run(c.desc, func(t *testing.T) {
			engine := newEngineOf(t, "test-faults-"+strings.ToLower(rand.Text()), cells.Options{SpareAfter: time.Nanosecond})
			env := environment(t)
			first, err := engine.Start(t.Context(), env, smallLimits())
			require.NoError(t, err)
			require.NoError(t, runnertest.Ready(first))
			worker := first.(runner.Cell).Worker()
			require.Eventually(t, func() bool { return engine.Stats().Workers[cells.WorkerSpare] == 1 }, time.Minute, 10*time.Millisecond)
			c.fault(t, worker)
			if c.live {
				second, err := engine.Start(t.Context(), env, smallLimits())
				require.NoError(t, err)
				require.ErrorAs(t, runnertest.Ready(second), new(*runner.Error))
				require.NoError(t, second.Kill(t.Context()))
			} else {
				_, err = first.Read(make([]byte, 1))
				require.ErrorAs(t, err, new(*runner.Error))
				require.NoError(t, first.Kill(t.Context()), "nothing is left of it")
			}
			begun := time.Now()
			next, err := engine.Start(t.Context(), env, smallLimits())
			require.NoError(t, err)
			require.NoError(t, runnertest.Ready(next))
			t.Logf("the next one was ready after %v", time.Since(begun))
			require.NotContains(t, next.ID(), worker)
			require.NoError(t, next.Kill(t.Context()))
			if c.after != nil {
				c.after(t, worker)
			}
			if c.live {
				require.NoError(t, first.Kill(t.Context()))
			}
		})
	}
}

func signal(t *testing.T, worker, name, command string) {
	do(t, "kill", "-"+name, process(t, worker, command))
}

// builder returns the process of a worker that builds walls: the zygote's first child.
func builder(t *testing.T, worker string) string {
	zygote := process(t, worker, "/opt/notebox zygote")
	children, err := os.ReadFile(fmt.Sprintf("/proc/%s/task/%s/children", zygote, zygote))
	require.NoError(t, err)
	return strings.Fields(string(children))[0]
}

// process returns the id of the process of a worker whose command line ends so: the oldest,
// as cells have the zygote's.
func process(t *testing.T, worker, command string) string {
	out, err := exec.Command("docker", "top", worker, "-eo", "pid,args").Output()
	require.NoError(t, err)
	for line := range strings.Lines(string(out)) {
		if pid, args, _ := strings.Cut(strings.TrimSpace(line), " "); strings.HasSuffix(args, command) {
			return pid
		}
	}
	require.Fail(t, "there is no such process", "%s", out)
	return ""
}

func do(t *testing.T, command ...string) {
	out, err := exec.Command(command[0], command[1:]...).CombinedOutput()
	require.NoError(t, err, "%s", out)
}
