package docker

import (
	"context"
	"crypto/rand"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/dependencies"
	"notebox/runner"
	"notebox/runner/pool"
	"notebox/runner/runnertest"
)

// hostilePackages are what a registry's authors may have in theirs: code that runs when a
// waiting sandbox imports it.
var hostilePackages = map[string]string{
	// Takes what comes by the descriptor that tells a kernel to hurry, by far the highest.
	"thief.py": `
import os
if os.fork() == 0:
    with open("/tmp/stolen", "wb", 0) as loot:
        while more := os.read(max(map(int, os.listdir("/proc/self/fd")), default=0), 65536):
            loot.write(more)
    os._exit(0)
`,
	// Works while nobody pays for it.
	"miner.py": `
import threading
def mine():
    while True:
        pass
threading.Thread(target=mine, daemon=True).start()
`,
	// Hides a part of the kernel.
	"traitlets.py": "raise SystemExit",
}

// TestPackagesThatWait has a caller's packages imported before there is a job.
func TestPackagesThatWait(t *testing.T) {
	service := "test-packages-" + strings.ToLower(rand.Text())
	e := newEngine(t, service)
	own := environment(t)
	kept := dependencies.Image{Environment: own.Name, Base: own.Image, Bytes: 1}
	layer := func(name string) runner.Environment {
		ref, err := e.Images().Commit(t.Context(), own.Image, name, archiveOf(t, map[string]string{name + ".py": hostilePackages[name+".py"]}), kept)
		require.NoError(t, err)
		env := own
		env.Image = ref
		env.Kernel = runner.Kernel{Packages: true, WarmUp: []string{name}, Env: map[string]string{"NOTEBOX_PACKAGES": layerFolder + "/python"}}
		return env
	}
	t.Cleanup(func() {
		images := e.Images()
		all, err := images.List(context.Background())
		require.NoError(t, err)
		for _, i := range all {
			require.Eventually(t, func() bool { return images.Remove(context.Background(), i) == nil }, time.Minute, 100*time.Millisecond)
		}
	})
	pool := pool.New(e, pool.Options{ByUse: 1, Limits: waitingLimits(), Log: testLog(t)})
	t.Cleanup(func() { require.NoError(t, pool.Close(context.Background())) })
	run := func(env runner.Environment, code string) (*runner.Outcome, string, error) {
		sink := runnertest.NewRecorder(t)
		out, err := pool.Run(t.Context(), runner.Spec{ID: "waits", Environment: env, Notebook: runnertest.Notebook(code), Limits: waitingLimits()}, sink)
		return out, sink.Files()["out"], err
	}
	warm := func() { // the one of before has ended by then
		t.Helper()
		require.Eventually(t, func() bool { s := pool.Stats(); return s.Warm == 1 && s.Sandboxes == 1 }, time.Minute, 20*time.Millisecond)
	}

	thief := layer("thief")
	out, _, err := run(thief, "1")
	require.NoError(t, err)
	require.Equal(t, runner.StatusOK, out.Status)
	warm()
	out, text, err := run(thief, "import sys; print('thief' in sys.modules, open('/tmp/stolen', 'rb').read(), file=open('out', 'w'))")
	require.NoError(t, err)
	require.Equal(t, runner.StatusOK, out.Status)
	require.Equal(t, "True b''\n", text)
	warm()

	miner := layer("miner")
	_, _, err = run(miner, "1")
	require.NoError(t, err)
	require.Eventually(t, func() bool { return pool.Stats().Warm == 1 }, time.Minute, 20*time.Millisecond)
	require.Eventually(t, func() bool { return pool.Stats().Sandboxes == 0 }, 4*pingTime, 100*time.Millisecond, "it does not work for long")
	require.Zero(t, pool.Stats().Size, "and is not replaced")

	_, _, err = run(layer("traitlets"), "1")
	var unusable *runner.Error
	require.ErrorAs(t, err, &unusable)
	require.Equal(t, runner.CodePackages, unusable.Code)
}

// pingTime is above the time between two looks at what waits.
const pingTime = 15 * time.Second

func waitingLimits() runner.Limits {
	l := smallLimits()
	l.Timeout = 10 * time.Second
	return l
}
