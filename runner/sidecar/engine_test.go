package sidecar_test

import (
	"context"
	"crypto/rand"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/environments"
	"notebox/runner"
	"notebox/runner/cells"
	"notebox/runner/runnertest"
	"notebox/runner/sidecar"
)

// container is one of Python as a pod has it: what Docker gives workers by its own words, and a
// cluster cannot, is not given.
type container struct {
	name   string
	folder string // of the socket
}

func newContainer(t testing.TB) container {
	c := container{"notebox-test-sidecar-" + strings.ToLower(rand.Text()), t.TempDir()}
	docker(t, "run", "--detach", "--name", c.name, "--network", "none", "--read-only", "--memory", "8g",
		"--cap-drop", "ALL", "--cap-add", "SETUID", "--cap-add", "SETGID", "--cap-add", "SYS_ADMIN",
		"--security-opt", "seccomp=unconfined", "--security-opt", "apparmor=unconfined",
		"--tmpfs", "/tmp:size=1m", "--tmpfs", "/mnt/data:size=1m", "--tmpfs", "/run/notebox:size=1m",
		"--volume", c.folder+":/run/workers", "--user", "0:0", "--env", "HOME=/run/notebox",
		"--entrypoint", "/opt/notebox/supervisor", environment(t).Image, "listen", "/run/workers/python.sock")
	t.Cleanup(func() {
		if t.Failed() {
			out, _ := exec.Command("docker", "logs", c.name).CombinedOutput()
			t.Logf("container: %s", out)
		}
		docker(t, "rm", "--force", c.name)
	})
	c.await(t)
	return c
}

// await waits until the listener is there.
func (c container) await(t testing.TB) {
	require.Eventually(t, func() bool {
		return sidecar.New(c.options("test")).Ready(context.Background(), environment(t)) == nil
	}, 30*time.Second, 50*time.Millisecond)
}

func (c container) options(service string) sidecar.Options {
	return sidecar.Options{Folder: c.folder, Service: service, Socket: func(env runner.Environment) string {
		if env.Image != environmentsImage() {
			return "no-such-language"
		}
		return "python"
	}}
}

func docker(t testing.TB, args ...string) string {
	out, err := exec.Command("docker", args...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return strings.TrimSpace(string(out))
}

func environmentsImage() string {
	all, err := environments.Load("")
	if err != nil {
		panic(err) // they are part of the program
	}
	return all[0].Image
}

func environment(testing.TB) runner.Environment {
	return runner.Environment{Name: environments.Default, Image: environmentsImage()}
}

// smallLimits let many sandboxes be on a small machine at once.
func smallLimits() runner.Limits {
	l := runner.DefaultLimits()
	l.Timeout = time.Second
	l.DataSize, l.TmpSize, l.Memory = 32<<20, 32<<20, 384<<20
	return l
}

func testLog(t testing.TB) *slog.Logger { return slog.New(slog.NewTextHandler(t.Output(), nil)) }

func (c container) engine(t testing.TB, service string) *cells.Engine {
	all, err := environments.Load("")
	require.NoError(t, err)
	e := cells.New(sidecar.New(c.options(service)), cells.Options{
		Modules:    func(string) []string { return all[0].Kernel.WarmUp },
		SpareAfter: time.Hour, // or there would be twice as many workers in each test
		Log:        testLog(t),
	})
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	return e
}

// left are the cells in the container, by their control groups.
func (c container) left(t *testing.T) (names []string) {
	groups := docker(t, "exec", c.name, "sh", "-c", "cd /sys/fs/cgroup && find . -mindepth 2 -name 'cell-*' -o -name 'session-*' -type d")
	for _, path := range strings.Fields(groups) {
		if _, worker, ok := strings.Cut(path, "/worker-"); ok && (strings.HasPrefix(path, "./memory/") || strings.HasPrefix(path, "./worker-")) {
			names = append(names, strings.ReplaceAll(worker, "/", "-"))
		}
	}
	return names
}

func TestEngine(t *testing.T) {
	var mu sync.Mutex
	all := map[string]container{} // by service
	of := func(service string) container {
		mu.Lock()
		defer mu.Unlock()
		if all[service].name == "" {
			all[service] = newContainer(t)
		}
		return all[service]
	}
	runnertest.TestEngine(t, runnertest.Harness{
		Engine:      func(t *testing.T, service string) runner.Engine { return of(service).engine(t, service) },
		Left:        func(t *testing.T, service string) []string { return of(service).left(t) },
		Together:    true,
		Environment: environment(t),
		Missing:     runner.Environment{Name: "python", Image: "notebox/no-such-image:0"},
		Limits:      smallLimits(),
	})
}

func TestSessions(t *testing.T) {
	limits := smallLimits()
	limits.Timeout = 5 * time.Second
	c := newContainer(t)
	engine := c.engine(t, "test")
	runnertest.TestSessions(t, runnertest.SessionHarness{
		Sessions: func(t *testing.T) runner.Sessions {
			return runnertest.SessionsOn(t, engine, testLog(t))
		},
		Environment: environment(t),
		Limits:      limits,
		Brief:       30 * time.Second,
	})
	require.Empty(t, c.left(t))
}

// TestWalls has all walls found around a cell, from outside.
func TestWalls(t *testing.T) {
	require.NoError(t, newContainer(t).engine(t, "test").Probe(t.Context(), environment(t), smallLimits()))
}

// TestPrivileges: what the container was given to prepare itself no process of it has later.
func TestPrivileges(t *testing.T) {
	c := newContainer(t)
	require.NoError(t, c.engine(t, "test").Probe(t.Context(), environment(t), smallLimits()))
	all := docker(t, "exec", c.name, "sh", "-c", `for f in /proc/[0-9]*; do
		case $(tr '\0' ' ' <$f/cmdline) in */supervisor\ *) echo $(grep -E '^(CapPrm|CapEff|NoNewPrivs|Seccomp):' $f/status);; esac; done`)
	lines := strings.Split(all, "\n")
	require.Len(t, lines, 2, "listener and supervisor: %s", all)
	const capabilities = "CapPrm: 00000000000000c0 CapEff: 00000000000000c0 NoNewPrivs: 1" // SETGID and SETUID
	for _, line := range lines {
		require.Contains(t, line, capabilities)
	}
	require.Contains(t, lines[1], "Seccomp: 2")
}

// TestContainerEnds has what was in it be over, and the next one serve.
func TestContainerEnds(t *testing.T) {
	c := newContainer(t)
	engine := c.engine(t, "test")
	s, err := engine.Start(t.Context(), environment(t), smallLimits())
	require.NoError(t, err)
	docker(t, "restart", "--time", "0", c.name)
	_, err = s.Read(make([]byte, 1<<20))
	for err == nil {
		_, err = s.Read(make([]byte, 1<<20))
	}
	require.ErrorIs(t, err, runner.ErrWithOthers, "the run may go on elsewhere")
	require.NoError(t, s.Kill(t.Context()))
	c.await(t)
	s, err = engine.Start(t.Context(), environment(t), smallLimits())
	require.NoError(t, err)
	require.NoError(t, runnertest.Ready(s))
	require.NoError(t, s.Kill(t.Context()))
}

// TestNothingOfThePodIsSeen: a cell has the image's names of hosts, and no socket.
func TestNothingOfThePodIsSeen(t *testing.T) {
	c := newContainer(t)
	require.NoError(t, os.WriteFile(filepath.Join(c.folder, "other.sock"), nil, 0o600))
	sink := runnertest.NewRecorder(t)
	out, err := runnertest.Once(t.Context(), c.engine(t, "test"), testLog(t), runner.Spec{
		ID: "pod", Environment: environment(t), Limits: smallLimits(), StopOnError: true,
		Notebook: runnertest.Notebook(`import os
print(open("/etc/hosts").read(), os.path.exists("/run/workers"), os.listdir("/run"))
print(open("/etc/resolv.conf").read(), open("/etc/hostname").read())`),
	}, sink)
	require.NoError(t, err)
	executed, err := runnertest.ParseExecuted(out)
	require.NoError(t, err)
	text := executed.Stdout(0)
	require.Contains(t, text, "ip6-localhost")
	require.Contains(t, text, "False")
	require.Contains(t, text, "\n sandbox\n")
}
