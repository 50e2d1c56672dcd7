package cells_test

import (
	"cmp"
	"context"
	"crypto/rand"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/environments"
	"notebox/runner"
	"notebox/runner/cells"
	"notebox/runner/docker"
	"notebox/runner/runnertest"
)

func TestEngine(t *testing.T) {
	env := environment(t)
	runnertest.TestEngine(t, runnertest.Harness{
		Engine:      func(t *testing.T, service string) runner.Engine { return newEngine(t, service) },
		Left:        left,
		Together:    true,
		Environment: env,
		Missing:     runner.Environment{Name: env.Name, Image: "notebox/no-such-image:0"},
		Limits:      smallLimits(),
	})
}

// environment returns the image that belongs to this source, or the one that
// NOTEBOX_TEST_IMAGE names.
func environment(t testing.TB) runner.Environment {
	all, err := environments.Load("")
	require.NoError(t, err)
	env := runner.Environment{Name: all[0].Name, Image: all[0].Image}
	if other := os.Getenv("NOTEBOX_TEST_IMAGE"); other != "" {
		env.Image = other
	}
	return env
}

// smallLimits let many sandboxes be on a small machine at once.
func smallLimits() runner.Limits {
	l := runner.DefaultLimits()
	l.Timeout = time.Second
	l.DataSize, l.TmpSize, l.Memory = 32<<20, 32<<20, 384<<20
	return l
}

func newEngine(t testing.TB, service string) *cells.Engine {
	return newEngineOf(t, service, cells.Options{})
}

func newEngineOf(t testing.TB, service string, o cells.Options) *cells.Engine {
	return newEngineOn(t, docker.Options{ServiceID: service, Log: testLog(t)}, o)
}

func newEngineOn(t testing.TB, h docker.Options, o cells.Options) *cells.Engine {
	host, err := docker.New(h)
	require.NoError(t, err)
	all, err := environments.Load("")
	require.NoError(t, err)
	o.Modules, o.Log = func(string) []string { return all[0].Kernel.WarmUp }, h.Log
	o.SpareAfter = cmp.Or(o.SpareAfter, time.Hour) // or there would be twice as many in each test
	e := cells.New(host, o)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		require.NoError(t, e.Close())
		require.NoError(t, host.Close(ctx))
		cells.Tidy(h.ServiceID)
	})
	return e
}

// left asks the host's kernel: a cell is there as long as its control group is, or, if its
// worker is no more, as long as a process is in it.
func left(t *testing.T, service string) (names []string) {
	for _, pattern := range []string{
		"memory/notebox/" + service + "/worker-*/*-*",
		"notebox/" + service + "/*/cell-*", // version 2
		"notebox.slice/notebox-" + strings.ReplaceAll(service, "-", "_") + ".slice/docker-*.scope/cell-*",
	} {
		paths, err := filepath.Glob("/sys/fs/cgroup/" + pattern)
		require.NoError(t, err)
		for _, path := range paths {
			processes, _ := os.ReadFile(filepath.Join(path, "cgroup.procs"))
			worker, err := exec.Command("docker", "inspect", "--format", "{{slice .Name 1}}", containerOf(path)).Output()
			if len(processes) == 0 && err != nil {
				continue
			}
			cell := filepath.Base(path)
			if _, err := syscall.Getxattr(path, "user.notebox.session", nil); err == nil {
				cell = strings.Replace(cell, "cell", "session", 1)
			}
			names = append(names, strings.TrimSpace(string(worker))+"-"+cell)
		}
	}
	slices.Sort(names)
	return names
}

// containerOf is the name or id of the one that a cell's control group belongs to.
func containerOf(path string) string {
	return strings.NewReplacer("worker-", "", "docker-", "", ".scope", "").Replace(filepath.Base(filepath.Dir(path)))
}

// testLog writes the log of a test that fails.
func testLog(t testing.TB) *slog.Logger {
	return slog.New(slog.NewTextHandler(t.Output(), nil))
}

// TestRenewal has a worker renewed while cells of it go on, and nobody notices.
func TestRenewal(t *testing.T) {
	service := "test-renewal-" + strings.ToLower(rand.Text())
	engine := newEngineOf(t, service, cells.Options{Runs: 2})
	env := environment(t)
	workers := map[string]bool{}
	var open []runner.Sandbox
	for begun := time.Now(); len(workers) < 3 && time.Since(begun) < time.Minute; time.Sleep(100 * time.Millisecond) {
		s, err := engine.Start(t.Context(), env, smallLimits())
		require.NoError(t, err)
		worker, _, _ := strings.Cut(s.ID(), "-cell-")
		workers[worker] = true
		if open = append(open, s); len(open) > 3 { // one begins while an older one's cells are there
			require.NoError(t, open[0].Kill(t.Context()))
			open = open[1:]
		}
	}
	require.Greater(t, len(workers), 2, "a worker is renewed, and the new one too")
	for _, s := range open {
		require.NoError(t, s.Kill(t.Context()))
	}
	require.Empty(t, left(t, service))
	require.Eventually(t, func() bool {
		out, err := exec.Command("docker", "ps", "-q", "--filter", "label=notebox.service="+service).Output()
		return err == nil && strings.Count(string(out), "\n") <= 2
	}, time.Minute, 100*time.Millisecond, "workers that have served their time are gone")
}
