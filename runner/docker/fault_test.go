package docker

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/client"
	"github.com/stretchr/testify/require"

	"notebox/runner"
	"notebox/runner/runnertest"
)

// soon is less than any deadline of the engine's own.
const soon = 5 * time.Second

// TestDaemonHangs has the daemon not answer one of the calls of a start, until
// the caller's patience is at its end.
func TestDaemonHangs(t *testing.T) {
	env := environment(t)
	for _, call := range []string{"/containers/create", "/attach", "/wait", "/start"} {
		t.Run(call, func(t *testing.T) {
			daemon := newProxy(t)
			hanging := make(chan struct{})
			daemon.intercept(call, func(w http.ResponseWriter, r *http.Request, forward http.Handler) {
				<-hanging
				forward.ServeHTTP(w, r)
			})
			service := "test-hangs-" + t.Name()
			e := newEngineAt(t, service, daemon.host)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			begun := time.Now()
			_, err := e.Start(ctx, env, smallLimits())
			requireUnavailable(t, err)
			require.Less(t, time.Since(begun), soon)
			close(hanging) // what hung goes on, and must leave nothing
			requireNothingLeft(t, service)
		})
	}
}

// TestG05AnswerLost has the connection break when the daemon has been asked for a
// container.
func TestG05AnswerLost(t *testing.T) {
	env := environment(t)
	for _, c := range []struct {
		desc string
		late time.Duration // after which the container comes to be
	}{
		{"the container is there", 0},
		{"the container comes to be later", 2 * time.Second},
	} {
		t.Run(c.desc, func(t *testing.T) {
			t.Parallel()
			daemon := newProxy(t)
			made := make(chan struct{})
			daemon.intercept("/containers/create", func(w http.ResponseWriter, r *http.Request, forward http.Handler) {
				asked := buffered(t, r)
				if c.late == 0 {
					forward.ServeHTTP(discard{}, asked)
					close(made)
				} else {
					time.AfterFunc(c.late, func() { forward.ServeHTTP(discard{}, asked); close(made) })
				}
				panic(http.ErrAbortHandler)
			})
			service := "test-lost-" + t.Name()
			e := newEngineAt(t, service, daemon.host)
			_, err := e.Start(t.Context(), env, smallLimits())
			requireUnavailable(t, err)
			<-made
			requireNothingLeft(t, service)
		})
	}
}

// TestDaemonGoesAway breaks every connection in the middle of a run.
func TestDaemonGoesAway(t *testing.T) {
	daemon := newProxy(t)
	service := "test-gone-" + t.Name()
	sink := runnertest.NewRecorder(t)
	sink.OnOutput = func(runner.Event) { daemon.breakConnections() }
	limits := smallLimits()
	limits.Timeout = time.Minute
	out, err := runnertest.Once(t.Context(), newEngineAt(t, service, daemon.host), testLog(t), runner.Spec{
		ID: "gone", Environment: environment(t), Notebook: runnertest.Notebook(runnertest.CellSleep), Limits: limits,
	}, sink)
	require.Nil(t, out)
	requireUnavailable(t, err)
	requireNothingLeft(t, service)
}

// TestG03DaemonEndsSandbox: a daemon that ends has its containers end first, as
// `docker stop` does. That is no run of the user's that failed.
func TestG03DaemonEndsSandbox(t *testing.T) {
	service := "test-ends-" + t.Name()
	e := newEngine(t, service)
	limits := smallLimits()
	limits.Timeout = time.Minute
	sink := runnertest.NewRecorder(t)
	sink.OnOutput = func(runner.Event) {
		for _, name := range left(t, service) {
			patience := 30 // seconds until it is killed
			require.NoError(t, e.api.ContainerStop(t.Context(), name, container.StopOptions{Timeout: &patience}))
		}
	}
	out, err := runnertest.Once(t.Context(), e, testLog(t), runner.Spec{
		ID: "ends", Environment: environment(t), Notebook: runnertest.Notebook(runnertest.CellSleep), Limits: limits,
	}, sink)
	require.Nil(t, out)
	requireUnavailable(t, err)
	require.ErrorContains(t, err, "the Docker daemon ended the sandbox")
	requireNothingLeft(t, service)
}

// TestRemovalHangs has Kill return when its caller's patience is at its end, and
// the container removed all the same.
func TestRemovalHangs(t *testing.T) {
	daemon := newProxy(t)
	service := "test-removal-" + t.Name()
	s, err := newEngineAt(t, service, daemon.host).Start(t.Context(), environment(t), smallLimits())
	require.NoError(t, err)
	hanging := make(chan struct{})
	daemon.intercept("force=1", func(w http.ResponseWriter, r *http.Request, forward http.Handler) {
		<-hanging
		forward.ServeHTTP(w, r)
	})
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	begun := time.Now()
	require.Error(t, s.Kill(ctx))
	require.Less(t, time.Since(begun), soon)
	close(hanging)
	requireNothingLeft(t, service)
	require.NoError(t, s.Kill(t.Context()))
}

func TestNoDaemon(t *testing.T) {
	e, err := New(Options{ServiceID: "test-none", Log: testLog(t)})
	require.NoError(t, err)
	e.api, err = client.NewClientWithOpts(client.WithHost("unix:///nonexistent/docker.sock"))
	require.NoError(t, err)
	defer func() {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		require.NoError(t, e.Close(ctx), "it waits no longer than it may")
	}()
	env := runner.Environment{Name: "jupyter", Image: "notebox/jupyter:0"}
	requireUnavailable(t, e.Ready(t.Context(), env))
	_, err = e.Start(t.Context(), env, smallLimits())
	requireUnavailable(t, err)
	e.ending.Wait()
	require.Empty(t, e.known, "nothing was asked for, so nothing is looked for")
	_, err = e.Reap(t.Context())
	require.Error(t, err)
}

func requireUnavailable(t *testing.T, err error) {
	t.Helper()
	var failure *runner.Error
	require.ErrorAs(t, err, &failure)
	require.Equal(t, runner.CodeUnavailable, failure.Code)
	require.NotContains(t, failure.Message, "/", "a message names no path or image")
}

// requireNothingLeft asks the daemon itself, now and again, as what is removed
// must not come back.
func requireNothingLeft(t *testing.T, service string) {
	t.Helper()
	require.Eventually(t, func() bool { return len(left(t, service)) == 0 }, time.Minute, 100*time.Millisecond)
	time.Sleep(500 * time.Millisecond)
	require.Empty(t, left(t, service))
}
