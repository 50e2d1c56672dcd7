package kubernetes

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/remotecommand"

	"notebox/runner"
	"notebox/runner/posture"
)

func TestStartFails(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	unschedulable := corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "0/2 nodes: node-1 is full",
	}}}
	for _, c := range []struct {
		desc    string
		status  corev1.PodStatus
		refusal error // of the API
		attach  error
		message string
		noImage bool
		kept    bool // the start has failed for a reason that later ones need not have
	}{
		{desc: "no image", status: waiting("ErrImageNeverPull"), message: "the sandbox image is missing: the cluster's nodes have to have it, or pull it", noImage: true},
		{desc: "no image, again", status: waiting("ImagePullBackOff"), message: "the sandbox image is missing: the cluster's nodes have to have it, or pull it", noImage: true},
		{desc: "no room", status: unschedulable, message: "the cluster has no room for a sandbox"},
		{desc: "a slow node", status: waiting("ContainerCreating"), message: "starting a sandbox took too long"},
		{desc: "a container that cannot be", status: waiting("CreateContainerError"), message: "the cluster did not start the sandbox"},
		{desc: "evicted before it ran", status: corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted"}, message: "the cluster did not start the sandbox"},
		{desc: "quota", refusal: apierrors.NewForbidden(pods, "notebox-x", errors.New("exceeded quota: pods, used: 2, limited: 2")), message: "the cluster's quota has no room for a sandbox"},
		{desc: "no right", refusal: apierrors.NewForbidden(pods, "notebox-x", errors.New("no RBAC")), message: "the cluster does not let this service start sandboxes"},
		{desc: "the API is away", refusal: &net.OpError{Op: "dial", Err: errors.New("connection refused")}, message: "the cluster does not answer"},
		{desc: "the API is busy", refusal: apierrors.NewTooManyRequests("busy", 1), message: "the cluster does not answer"},
		{desc: "no stream", status: running(), attach: errBroken, message: "the cluster does not answer"},
	} {
		t.Run(c.desc, func(t *testing.T) {
			t.Parallel()
			cluster := newCluster(t)
			cluster.begins = c.status
			if c.refusal != nil {
				cluster.PrependReactor("create", "pods", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, c.refusal })
			}
			if c.attach != nil {
				cluster.attach = func(context.Context, remotecommand.StreamOptions) error { return c.attach }
			}
			e := cluster.engine("test")
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_, err := e.Start(ctx, environment, smallLimits())
			requireUnavailable(t, err, c.message)
			require.Equal(t, c.noImage, errors.Is(err, runner.ErrNoImage))
			require.Equal(t, c.noImage, errors.Is(e.Ready(t.Context(), environment), runner.ErrNoImage))
			cluster.requireNothingLeft(e)
		})
	}
}

// TestNoRoomForLong: a start that may wait for longer does not.
func TestNoRoomForLong(t *testing.T) {
	pod := &corev1.Pod{Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
	}}}}
	_, err := runs(pod, time.Now().Add(-scheduleWait/2))
	require.NoError(t, err)
	_, err = runs(pod, time.Now().Add(-scheduleWait-time.Second))
	requireUnavailable(t, err, "the cluster has no room for a sandbox")
}

// TestG05AnswerLost has the connection break, or the caller go, when the API has been asked for
// a pod.
func TestG05AnswerLost(t *testing.T) {
	for _, c := range []struct {
		desc    string
		late    time.Duration
		message string
	}{
		{"the connection breaks", 0, "the cluster does not answer"},
		{"the answer is late", time.Second, "starting a sandbox took too long"},
	} {
		t.Run(c.desc, func(t *testing.T) {
			t.Parallel()
			cluster := newCluster(t)
			made := make(chan struct{})
			cluster.PrependReactor("create", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
				defer close(made)
				time.Sleep(c.late)
				pod := a.(clienttesting.CreateAction).GetObject()
				require.NoError(t, cluster.Tracker().Create(corev1.SchemeGroupVersion.WithResource("pods"), pod, "test"))
				if c.late > 0 {
					return true, pod, nil
				}
				return true, nil, errBroken
			})
			e := cluster.engine("test")
			ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
			defer cancel()
			_, err := e.Start(ctx, environment, smallLimits())
			requireUnavailable(t, err, c.message)
			<-made
			require.Eventually(t, func() bool { return len(cluster.names()) == 0 }, 10*time.Second, 10*time.Millisecond)
		})
	}
}

func TestReady(t *testing.T) {
	t.Parallel()
	cluster := newCluster(t)
	e := cluster.engine("test")
	asked := 0
	e.api.mayCreate = func(context.Context) error { asked++; return errForbidden }
	for range 2 {
		requireUnavailable(t, e.Ready(t.Context(), environment), "the cluster does not let this service start sandboxes")
	}
	e.api.mayCreate = func(context.Context) error { asked++; return nil }
	for range 2 {
		require.NoError(t, e.Ready(t.Context(), environment))
	}
	require.Equal(t, 3, asked, "that it may is believed for a moment")
}

func TestServiceID(t *testing.T) {
	_, err := newEngine(api{}, Options{ServiceID: "-x"})
	require.ErrorContains(t, err, `"-x" cannot be a label`)
	_, err = newEngine(api{}, Options{})
	require.Error(t, err)
}

// TestPod: what a sandbox must not be without, whatever else a pod has.
func TestPod(t *testing.T) {
	t.Parallel()
	e := &Engine{options: Options{ServiceID: "test"}}
	l := smallLimits()
	pod := e.pod("x", environment, l)
	c := pod.Spec.Containers[0]
	require.False(t, *pod.Spec.AutomountServiceAccountToken)
	require.False(t, *pod.Spec.EnableServiceLinks)
	require.False(t, *c.SecurityContext.AllowPrivilegeEscalation)
	require.True(t, *c.SecurityContext.ReadOnlyRootFilesystem)
	require.Equal(t, []corev1.Capability{"ALL"}, c.SecurityContext.Capabilities.Drop)
	require.Equal(t, []corev1.Capability{"SETGID", "SETUID"}, c.SecurityContext.Capabilities.Add)
	require.Equal(t, corev1.SeccompProfileTypeRuntimeDefault, pod.Spec.SecurityContext.SeccompProfile.Type)
	require.Len(t, pod.Spec.SecurityContext.Sysctls, 2)
	require.Equal(t, l.Memory, c.Resources.Limits.Memory().Value())
	require.Equal(t, int64(1000), c.Resources.Limits.Cpu().MilliValue())
	sizes := map[string]int64{}
	for i, m := range c.VolumeMounts {
		empty := pod.Spec.Volumes[i].EmptyDir
		require.Equal(t, corev1.StorageMediumMemory, empty.Medium)
		sizes[m.MountPath] = empty.SizeLimit.Value()
	}
	require.Equal(t, map[string]int64{"/mnt": l.DataSize, "/tmp": l.TmpSize, "/dev/shm": posture.ShmSize, "/run/notebox": harnessSize}, sizes)
	require.False(t, c.StdinOnce)

	e.options = Options{ServiceID: "test", RuntimeClass: "gvisor", Seccomp: "notebox.json", Fleeting: true}
	pod = e.pod("x", environment, l)
	require.Equal(t, "gvisor", *pod.Spec.RuntimeClassName)
	require.Empty(t, pod.Spec.SecurityContext.Sysctls)
	require.Equal(t, "notebox.json", *pod.Spec.SecurityContext.SeccompProfile.LocalhostProfile)
	require.True(t, pod.Spec.Containers[0].StdinOnce)

	_, err := e.Start(t.Context(), environment, runner.Limits{})
	require.Equal(t, posture.Check(runner.Limits{}), err, "no such sandbox is started")
}
