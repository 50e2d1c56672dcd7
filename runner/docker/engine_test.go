package docker

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/client"
	"github.com/stretchr/testify/require"

	"notebox/environments"
	"notebox/runner"
	"notebox/runner/runnertest"
)

func TestEngine(t *testing.T) {
	env := environment(t)
	runnertest.TestEngine(t, runnertest.Harness{
		Engine:      func(t *testing.T, service string) runner.Engine { return newEngine(t, service) },
		Left:        left,
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
	require.NoErrorf(t, newEngine(t, "test").Ready(t.Context(), env),
		"these tests need a Docker daemon with the image %s: run `make test`, which sees to both, "+
			"or name another image in NOTEBOX_TEST_IMAGE", env.Image)
	return env
}

// smallLimits let many sandboxes be on a small machine at once.
func smallLimits() runner.Limits {
	l := runner.DefaultLimits()
	l.Timeout = time.Second
	l.DataSize, l.TmpSize, l.Memory = 32<<20, 32<<20, 384<<20
	return l
}

func newEngine(t testing.TB, service string) *Engine {
	e, err := New(Options{ServiceID: service, Log: testLog(t)})
	require.NoError(t, err)
	return closeAtEnd(t, e)
}

// newEngineAt is an engine on the daemon at host.
func newEngineAt(t testing.TB, service, host string) *Engine {
	e, err := New(Options{ServiceID: service, Log: testLog(t)})
	require.NoError(t, err)
	e.api, err = client.NewClientWithOpts(client.WithHost(host), client.WithAPIVersionNegotiation())
	require.NoError(t, err)
	return closeAtEnd(t, e)
}

func closeAtEnd(t testing.TB, e *Engine) *Engine {
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		require.NoError(t, e.Close(ctx))
	})
	return e
}

// left asks the daemon, by its label alone.
func left(t *testing.T, service string) (names []string) {
	e := newEngine(t, service)
	list, err := e.api.ContainerList(context.Background(), container.ListOptions{
		All: true, Filters: filters.NewArgs(filters.Arg("label", "notebox.service="+service)),
	})
	require.NoError(t, err)
	for _, c := range list {
		names = append(names, strings.TrimPrefix(c.Names[0], "/"))
	}
	slices.Sort(names)
	return names
}

// TestRuntimeThatIsMissing: a service says so when it starts, and not at its first run.
func TestRuntimeThatIsMissing(t *testing.T) {
	for _, c := range []struct{ runtime, refused string }{
		{"", ""},
		{"runc", ""},
		{"no-such-runtime", `no runtime "no-such-runtime"; it has`},
		{"io.containerd.runsc.v1", ""}, // a shim's name, which only a start can try
	} {
		e, err := New(Options{ServiceID: "runtimes", Runtime: c.runtime})
		require.NoError(t, err)
		err = e.CanGive(t.Context(), smallLimits())
		if c.refused == "" {
			require.NoError(t, err, c.runtime)
		} else {
			require.ErrorContains(t, err, c.refused)
		}
		require.NoError(t, e.Close(t.Context()))
	}
}
