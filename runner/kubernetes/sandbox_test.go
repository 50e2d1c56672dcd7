package kubernetes

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/remotecommand"

	"notebox/runner"
)

// TestEnds has a stream end, and the cluster say why.
func TestEnds(t *testing.T) {
	of := func(status corev1.PodStatus) func(*cluster) {
		return func(c *cluster) { c.change(func(p *corev1.Pod) { p.Status = status }) }
	}
	evicted := ended(137, "Error")
	evicted.Reason, evicted.Message = "Evicted", "node-1 has no memory"
	late := ended(137, "Error")
	late.Reason = "DeadlineExceeded"
	for _, c := range []struct {
		desc   string
		then   func(*cluster)
		code   int // of an ExitError
		public string
	}{
		{desc: "the program exits", then: of(ended(3, "Error")), code: 3},
		{desc: "out of memory", then: of(ended(137, "OOMKilled")), code: 137},
		{desc: "stopped", then: of(ended(143, "Error")), public: "the cluster ended the sandbox"},
		{desc: "evicted", then: of(evicted), public: "the cluster ended the sandbox"},
		{desc: "too old", then: of(late), public: "the cluster ended the sandbox"},
		{desc: "deleted", then: func(c *cluster) {
			require.NoError(c.t, c.CoreV1().Pods("test").Delete(context.Background(), c.names()[0], metav1.DeleteOptions{}))
		}, public: "the cluster ended the sandbox"},
		{desc: "the stream is lost", then: func(*cluster) {}, public: "the cluster went away"},
	} {
		t.Run(c.desc, func(t *testing.T) {
			t.Parallel()
			cluster := newCluster(t)
			cluster.attach = func(_ context.Context, o remotecommand.StreamOptions) error {
				_, err := io.ReadFull(o.Stdin, make([]byte, 1))
				require.NoError(t, err)
				_, _ = io.WriteString(o.Stdout, "out")
				_, _ = io.WriteString(o.Stderr, "last words")
				c.then(cluster)
				return nil
			}
			e := cluster.engine("test")
			s, err := e.Start(t.Context(), environment, smallLimits())
			require.NoError(t, err)
			_, err = s.Write([]byte("x"))
			require.NoError(t, err)
			for range 2 {
				out, err := io.ReadAll(s)
				if c.public != "" {
					requireUnavailable(t, err, c.public)
				} else {
					require.Equal(t, &runner.ExitError{Code: c.code, Log: "last words"}, err)
				}
				require.Contains(t, []string{"out", ""}, string(out))
			}
			require.NoError(t, s.Kill(t.Context()))
			cluster.requireNothingLeft(e)
		})
	}
}

// TestEndedIsRemoved: nobody has to kill what has ended by itself.
func TestEndedIsRemoved(t *testing.T) {
	t.Parallel()
	cluster := newCluster(t)
	e := cluster.engine("test")
	_, err := e.Start(t.Context(), environment, smallLimits())
	require.NoError(t, err)
	cluster.change(func(p *corev1.Pod) { p.Status = ended(1, "Error") })
	cluster.requireNothingLeft(e)
}

// TestEvicted: a stream ends with its pod, also if the node does not end it.
func TestEvicted(t *testing.T) {
	t.Parallel()
	cluster := newCluster(t)
	e := cluster.engine("test")
	s, err := e.Start(t.Context(), environment, smallLimits())
	require.NoError(t, err)
	now := metav1.Now()
	cluster.change(func(p *corev1.Pod) { p.DeletionTimestamp = &now; p.Finalizers = []string{"test/x"} })
	_, err = s.Read(make([]byte, 1))
	requireUnavailable(t, err, "the cluster went away")
	require.NoError(t, s.Kill(t.Context()))
}

// TestKillIsTriedAgain: Kill says what failed, and the pod is removed all the same.
func TestKillIsTriedAgain(t *testing.T) {
	t.Parallel()
	cluster := newCluster(t)
	fails := 2
	cluster.PrependReactor("delete", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		fails--
		return fails >= 0, nil, errBroken
	})
	e := cluster.engine("test")
	s, err := e.Start(t.Context(), environment, smallLimits())
	require.NoError(t, err)
	require.ErrorIs(t, s.Kill(t.Context()), errBroken)
	require.NotEmpty(t, cluster.names())
	cluster.requireNothingLeft(e)
	require.NoError(t, s.Kill(t.Context()))
	_, err = s.Write([]byte("x"))
	require.Error(t, err)
}

// TestNodeDoesNotEnd: a pod whose node is lost is removed by force.
func TestNodeDoesNotEnd(t *testing.T) {
	t.Parallel()
	cluster := newCluster(t)
	var graces []int64
	cluster.PrependReactor("delete", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
		grace := *a.(clienttesting.DeleteActionImpl).DeleteOptions.GracePeriodSeconds
		graces = append(graces, grace)
		return grace > 0, nil, nil
	})
	e := cluster.engine("test")
	s, err := e.Start(t.Context(), environment, smallLimits())
	require.NoError(t, err)
	require.NoError(t, s.Kill(t.Context()))
	require.Equal(t, []int64{killGrace, 0}, graces)
	cluster.requireNothingLeft(e)
}

func TestKeepAndReap(t *testing.T) {
	t.Parallel()
	cluster := newCluster(t)
	first, stranger := cluster.engine("test"), cluster.engine("other")
	var kept []string
	for _, e := range []*Engine{first, first, stranger} {
		s, err := e.Start(t.Context(), environment, smallLimits())
		require.NoError(t, err)
		name, err := e.Keep(t.Context(), s)
		require.NoError(t, err)
		require.Equal(t, name, s.ID())
		kept = append(kept, name)
		_, err = first.Adopt(t.Context(), namePrefix+name[len(sessionPrefix):])
		require.ErrorIs(t, err, runner.ErrNoSandbox, "by the pod's own name")
	}
	later := cluster.engine("test")
	s, err := later.Adopt(t.Context(), kept[0])
	require.NoError(t, err)
	require.Equal(t, kept[0], s.ID())
	_, err = later.Adopt(t.Context(), kept[2])
	require.ErrorIs(t, err, runner.ErrNoSandbox)
	reaped, err := later.Reap(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, reaped)
	require.Equal(t, sorted([]string{podOf(kept[0]), podOf(kept[2])}), sorted(cluster.names()))
	require.NoError(t, s.Kill(t.Context()))
	_, err = later.Adopt(t.Context(), kept[0])
	require.ErrorIs(t, err, runner.ErrNoSandbox)

	cluster.PrependReactor("list", "pods", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, errBroken })
	_, err = later.Reap(t.Context())
	require.Error(t, err)
	require.True(t, errors.Is(err, errBroken))
}

func podOf(id string) string { return namePrefix + id[len(sessionPrefix):] }

// TestCloseWaits for no longer than it may.
func TestCloseWaits(t *testing.T) {
	t.Parallel()
	cluster := newCluster(t)
	cluster.PrependReactor("delete", "pods", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, errBroken })
	cluster.begins = waiting("ErrImageNeverPull")
	e, err := newEngine(cluster.engine("test").api, Options{ServiceID: "closed", Log: testLog(t)})
	require.NoError(t, err)
	_, err = e.Start(t.Context(), environment, smallLimits())
	require.ErrorIs(t, err, runner.ErrNoImage)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	begun := time.Now()
	require.NoError(t, e.Close(ctx))
	require.Less(t, time.Since(begun), 5*time.Second)
}
