package kubernetes

import (
	"context"
	"crypto/rand"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"notebox/environments"
	"notebox/runner"
	"notebox/runner/runnertest"
)

// The tests here are on a real cluster, which NOTEBOX_TEST_KUBECONFIG names: make test-kubernetes
// brings one.

func TestEngine(t *testing.T) {
	env := realEnvironment(t)
	runnertest.TestEngine(t, runnertest.Harness{
		Engine:      func(t *testing.T, service string) runner.Engine { return realEngine(t, service) },
		Left:        left,
		Environment: env,
		Missing:     runner.Environment{Name: env.Name, Image: "registry.invalid/no-such-image:0"},
		Limits:      smallLimits(),
	})
}

func TestSessions(t *testing.T) {
	limits := smallLimits()
	limits.Timeout = 5 * time.Second
	env := realEnvironment(t)
	runnertest.TestSessions(t, runnertest.SessionHarness{
		Sessions: func(t *testing.T) runner.Sessions {
			service := "test-sessions-" + strings.ToLower(rand.Text())
			t.Cleanup(func() { require.Empty(t, left(t, service)) })
			return runnertest.SessionsOn(t, realEngine(t, service), testLog(t))
		},
		Environment: env,
		Limits:      limits,
		Brief:       30 * time.Second,
	})
}

// realEnvironment skips a test where no cluster is named; make test-kubernetes names one.
func realEnvironment(t testing.TB) runner.Environment {
	if os.Getenv("NOTEBOX_TEST_KUBECONFIG") == "" {
		t.Skip("this needs a cluster, which NOTEBOX_TEST_KUBECONFIG names: make test-kubernetes brings one")
	}
	all, err := environments.Load("")
	require.NoError(t, err)
	env := runner.Environment{Name: all[0].Name, Image: all[0].Image}
	if other := os.Getenv("NOTEBOX_TEST_IMAGE"); other != "" {
		env.Image = other
	}
	return env
}

func realEngine(t testing.TB, service string) *Engine {
	e, err := New(Options{ServiceID: service, Kubeconfig: os.Getenv("NOTEBOX_TEST_KUBECONFIG"), Log: testLog(t)})
	require.NoError(t, err)
	closeAtEnd(t, e)
	return e
}

// left asks the API, by its label alone.
func left(t *testing.T, service string) (names []string) {
	a, err := connect(os.Getenv("NOTEBOX_TEST_KUBECONFIG"), "")
	require.NoError(t, err)
	list, err := a.pods.List(context.Background(), metav1.ListOptions{LabelSelector: "notebox.service=" + service})
	require.NoError(t, err)
	for _, pod := range list.Items {
		name := pod.Name
		if pod.Labels[labelSession] != "" {
			name = sessionPrefix + strings.TrimPrefix(name, namePrefix)
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// TestNoRoomInTheCluster has the scheduler, and a quota, refuse pods.
func TestNoRoomInTheCluster(t *testing.T) {
	env := realEnvironment(t)
	service := "test-room-" + strings.ToLower(rand.Text())
	e := realEngine(t, service)
	huge := smallLimits()
	huge.Memory = 1 << 50
	begun := time.Now()
	_, err := e.Start(t.Context(), env, huge)
	requireUnavailable(t, err, "the cluster has no room for a sandbox")
	require.Less(t, time.Since(begun), scheduleWait+10*time.Second)
	require.Empty(t, left(t, service))
}

// TestG03ClusterEndsSandbox has somebody else delete the pod of a run, as a node that is drained
// does.
func TestG03ClusterEndsSandbox(t *testing.T) {
	env := realEnvironment(t)
	service := "test-drained-" + strings.ToLower(rand.Text())
	e := realEngine(t, service)
	other, err := connect(os.Getenv("NOTEBOX_TEST_KUBECONFIG"), "")
	require.NoError(t, err)
	limits := smallLimits()
	limits.Timeout = time.Minute
	sink := runnertest.NewRecorder(t)
	sink.OnOutput = func(runner.Event) {
		for _, name := range left(t, service) {
			require.NoError(t, other.pods.Delete(t.Context(), name, metav1.DeleteOptions{}))
		}
	}
	out, err := runnertest.Once(t.Context(), e, testLog(t), runner.Spec{
		ID: "ends", Environment: env, Notebook: runnertest.Notebook(runnertest.CellSleep), Limits: limits,
	}, sink)
	require.Nil(t, out)
	requireUnavailable(t, err, "the cluster ended the sandbox")
	require.Empty(t, left(t, service))
}
