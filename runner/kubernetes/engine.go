package kubernetes

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"notebox/runner"
	"notebox/runner/posture"
)

const (
	// callTimeout bounds one call of the API.
	callTimeout = 20 * time.Second
	// namePrefix is what the name of each pod begins with.
	namePrefix = "notebox-"
	// scheduleWait is how long a pod may wait for a node with room. A cluster that adds nodes
	// has seen the pod by then, and takes minutes, which no run waits for.
	scheduleWait = 20 * time.Second
	// undoTime is how long a start that has failed waits until nothing is left of it.
	undoTime = 5 * time.Second
	// readyFor is how long it is believed that pods may be created.
	readyFor = 5 * time.Second
	// missingFor is how long it is believed that an image is missing. Only a start can tell.
	missingFor = time.Minute
)

// Options of an Engine.
type Options struct {
	ServiceID    string // whose pods these are; a valid value of a label
	Kubeconfig   string // file; "": the configuration inside of a pod, or kubectl's
	Namespace    string // of the pods; "": the configuration's
	RuntimeClass string // "gvisor", "kata", …; "" is the cluster's default
	Seccomp      string // a profile on the nodes, below the kubelet's folder; "": the runtime's default
	// Fleeting has a sandbox end as soon as this process does. Without it a sandbox that may be
	// a session waits for another process, or for 30 s of silence.
	Fleeting bool
	Log      *slog.Logger
}

// Engine is a runner.Engine on a Kubernetes cluster.
type Engine struct {
	api     api
	options Options

	mu      sync.Mutex
	known   map[string]*followed // the pods that this process looks after, by name
	missing map[string]time.Time // images that were missing, and when
	allowed time.Time            // when the API last said that pods may be created

	ending  sync.WaitGroup // starts that go on, and removals in the background
	closing context.Context
	close   context.CancelFunc
	unwatch context.CancelFunc
	watched chan struct{} // closed when the watch is over
}

var _ runner.Keeper = (*Engine)(nil)

// New returns an engine on the cluster that the options name, and begins to watch its pods.
func New(o Options) (*Engine, error) {
	api, err := connect(o.Kubeconfig, o.Namespace)
	if err != nil {
		return nil, fmt.Errorf("kubernetes client: %w", err)
	}
	return newEngine(api, o)
}

func newEngine(a api, o Options) (*Engine, error) {
	if wrong := validation.IsValidLabelValue(o.ServiceID); len(wrong) > 0 || o.ServiceID == "" {
		return nil, fmt.Errorf("the service's id %q cannot be a label of a pod: %s", o.ServiceID, strings.Join(wrong, "; "))
	}
	e := &Engine{api: a, options: o, known: map[string]*followed{}, missing: map[string]time.Time{}}
	e.closing, e.close = context.WithCancel(context.Background())
	watching, unwatch := context.WithCancel(context.Background())
	e.unwatch, e.watched = unwatch, make(chan struct{})
	go func() { e.watch(watching); close(e.watched) }()
	return e, nil
}

// Close waits for what goes on in the background, or for ctx. It is called once.
func (e *Engine) Close(ctx context.Context) error {
	e.mu.Lock()
	e.close()
	e.mu.Unlock()
	done := make(chan struct{})
	go func() { e.ending.Wait(); e.unwatch(); <-e.watched; close(done) }()
	select {
	case <-done:
	case <-ctx.Done():
		e.unwatch()
	}
	return nil
}

// Start implements runner.Engine.
func (e *Engine) Start(ctx context.Context, env runner.Environment, limits runner.Limits) (runner.Sandbox, error) {
	if err := posture.Check(limits); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, explain(err)
	}
	id := strings.ToLower(rand.Text())
	pod := e.pod(id, env, limits)
	f := e.look(pod.Name)
	if err := e.create(ctx, pod); err != nil {
		return nil, explain(err)
	}
	s, err := e.run(ctx, f, pod.Name)
	if err != nil {
		e.undo(ctx, pod.Name)
		if errors.Is(err, runner.ErrNoImage) {
			e.noteImage(env.Image, time.Now())
		}
		return nil, explain(err)
	}
	e.noteImage(env.Image, time.Time{})
	return s, nil
}

// undo removes a pod that does not run: at once if the cluster does so soon, or in the background.
func (e *Engine) undo(ctx context.Context, name string) {
	ctx, cancel := context.WithTimeout(ctx, undoTime)
	defer cancel()
	if e.remove(ctx, name) != nil {
		e.removeCreated(name, nil)
	}
}

// create waits for the API's answer no longer than ctx; the pod of a later answer is removed.
func (e *Engine) create(ctx context.Context, pod *corev1.Pod) error {
	answer := make(chan error)
	e.ending.Go(func() {
		creating, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
		defer cancel()
		_, err := e.api.pods.Create(creating, pod, metav1.CreateOptions{})
		select {
		case answer <- err:
			if err == nil {
				return
			}
		case <-ctx.Done():
		}
		e.removeCreated(pod.Name, err)
	})
	select {
	case err := <-answer:
		if err != nil {
			return fmt.Errorf("create pod: %w", err)
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("create pod: %w", ctx.Err())
	}
}

// run waits until a pod runs, and attaches.
func (e *Engine) run(ctx context.Context, f *followed, name string) (*sandbox, error) {
	begun := time.Now()
	var last *corev1.Pod
	err := e.await(ctx, f, name, func(pod *corev1.Pod) (bool, error) {
		last = pod
		return runs(pod, begun)
	})
	if errors.Is(err, context.DeadlineExceeded) { // a run that waits for less says what it has seen
		if _, seen := runs(last, time.Time{}); seen != nil {
			err = seen
		}
	}
	if err != nil {
		return nil, err
	}
	return e.attach(ctx, f, name)
}

// runs reports whether the container of a pod runs, or why it will not. begun is when the pod
// was created.
func runs(pod *corev1.Pod, begun time.Time) (bool, error) {
	if pod == nil {
		return false, nil
	}
	if pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded {
		return false, unavailable("the cluster did not start the sandbox", fmt.Errorf("pod %s: %s", pod.Name, state(pod)))
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable && time.Since(begun) > scheduleWait {
			return false, unavailable("the cluster has no room for a sandbox", fmt.Errorf("pod %s: %s", pod.Name, c.Message))
		}
	}
	for _, c := range pod.Status.ContainerStatuses {
		if c.State.Running != nil {
			return true, nil
		}
		if w := c.State.Waiting; w != nil {
			cause := fmt.Errorf("pod %s: %s: %s", pod.Name, w.Reason, w.Message)
			switch w.Reason {
			case "ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName", "ImageInspectError":
				return false, imageMissing(cause)
			case "CreateContainerConfigError", "CreateContainerError", "RunContainerError":
				return false, unavailable("the cluster did not start the sandbox", cause)
			}
		}
	}
	return false, nil
}

// Ready implements runner.Engine. Whether there is an image only a start can tell: for
// some time after one that failed it is missing.
func (e *Engine) Ready(ctx context.Context, env runner.Environment) error {
	e.mu.Lock()
	at, missing := e.missing[env.Image]
	fresh := time.Since(e.allowed) < readyFor
	e.mu.Unlock()
	if missing && time.Since(at) < missingFor {
		return imageMissing(errors.New("no node had it at the last start"))
	}
	if fresh {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if err := e.api.mayCreate(ctx); err != nil {
		return explain(err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.allowed = time.Now()
	return nil
}

// noteImage keeps when an image was missing; a zero time is that it is there.
func (e *Engine) noteImage(image string, at time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if at.IsZero() {
		delete(e.missing, image)
	} else {
		e.missing[image] = at
	}
}
