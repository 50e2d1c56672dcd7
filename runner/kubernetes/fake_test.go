package kubernetes

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	typed "k8s.io/client-go/kubernetes/typed/core/v1"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/remotecommand"

	"notebox/runner"
)

// cluster is one without nodes: a test says what becomes of pods.
type cluster struct {
	t *testing.T
	*fake.Clientset
	attach func(ctx context.Context, o remotecommand.StreamOptions) error // nil: the stream stays
	begins corev1.PodStatus                                               // of each pod
}

func newCluster(t *testing.T) *cluster {
	c := &cluster{t: t, Clientset: fake.NewClientset(), begins: running()}
	c.PrependReactor("create", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
		a.(clienttesting.CreateAction).GetObject().(*corev1.Pod).Status = c.begins
		return false, nil, nil
	})
	return c
}

// noWatchList says that a fake has no watch that begins with a list.
type noWatchList struct{ typed.PodInterface }

func (noWatchList) IsWatchListSemanticsUnSupported() bool { return true }

func (c *cluster) engine(service string) *Engine {
	c.t.Helper()
	e, err := newEngine(api{
		pods:      noWatchList{c.CoreV1().Pods("test")},
		mayCreate: func(context.Context) error { return nil },
		attach: func(ctx context.Context, _ string, o remotecommand.StreamOptions) error {
			if c.attach != nil {
				return c.attach(ctx, o)
			}
			go func() { _, _ = io.Copy(io.Discard, o.Stdin) }()
			<-ctx.Done()
			return ctx.Err()
		},
	}, Options{ServiceID: service, Log: testLog(c.t)})
	require.NoError(c.t, err)
	closeAtEnd(c.t, e)
	return e
}

func (c *cluster) names() (names []string) {
	list, err := c.Tracker().List(corev1.SchemeGroupVersion.WithResource("pods"), corev1.SchemeGroupVersion.WithKind("Pod"), "test")
	require.NoError(c.t, err)
	for _, pod := range list.(*corev1.PodList).Items {
		names = append(names, pod.Name)
	}
	return names
}

// change changes the only pod.
func (c *cluster) change(change func(*corev1.Pod)) {
	pods := c.CoreV1().Pods("test")
	pod, err := pods.Get(context.Background(), c.names()[0], metav1.GetOptions{})
	if err == nil {
		change(pod)
		_, err = pods.Update(context.Background(), pod, metav1.UpdateOptions{})
	}
	if err != nil {
		c.t.Error(err)
	}
}

func (c *cluster) requireNothingLeft(e *Engine) {
	c.t.Helper()
	require.Eventually(c.t, func() bool { return len(c.names()) == 0 }, 20*time.Second, 10*time.Millisecond)
	require.Eventually(c.t, func() bool { e.mu.Lock(); defer e.mu.Unlock(); return len(e.known) == 0 }, 20*time.Second, 10*time.Millisecond)
}

func running() corev1.PodStatus {
	return corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{{
		State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
	}}}
}

func waiting(reason string) corev1.PodStatus {
	return corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{{
		State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: "of node-1"}},
	}}}
}

func ended(code int32, reason string) corev1.PodStatus {
	return corev1.PodStatus{Phase: corev1.PodFailed, ContainerStatuses: []corev1.ContainerStatus{{
		State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason}},
	}}}
}

func closeAtEnd(t testing.TB, e *Engine) {
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		require.NoError(t, e.Close(ctx))
	})
}

// testLog writes the log of a test that fails.
func testLog(t testing.TB) *slog.Logger {
	return slog.New(slog.NewTextHandler(t.Output(), nil))
}

func smallLimits() runner.Limits {
	l := runner.DefaultLimits()
	l.Timeout = time.Second
	l.DataSize, l.TmpSize, l.Memory = 32<<20, 32<<20, 384<<20
	return l
}

var environment = runner.Environment{Name: "jupyter", Image: "notebox/jupyter:0"}

// requireUnavailable also looks that a stranger is told no name.
func requireUnavailable(t *testing.T, err error, message string) {
	t.Helper()
	var failure *runner.Error
	require.ErrorAs(t, err, &failure)
	require.Equal(t, runner.CodeUnavailable, failure.Code)
	require.Equal(t, message, failure.Message)
	require.Positive(t, failure.RetryAfter)
	require.NotContains(t, failure.Message, "node-1")
	require.NotContains(t, failure.Message, namePrefix)
}

func sorted(names []string) []string { slices.Sort(names); return names }

var errBroken = fmt.Errorf("broken: %w", io.ErrUnexpectedEOF)
