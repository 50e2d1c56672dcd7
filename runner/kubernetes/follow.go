package kubernetes

import (
	"context"
	"errors"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// lookAgain is how often a pod that is waited for is looked at beside the watch, which is begun
// anew some time after the API was away.
const lookAgain = 3 * time.Second

// followed is what the watch has said of a pod.
type followed struct {
	pod     *corev1.Pod   // as it was last seen; nil before
	gone    bool          // there is no such pod any more
	ours    bool          // this process removes it
	changed chan struct{} // closed at the next change
	doomed  chan struct{} // closed when somebody else has the pod removed
}

func newFollowed() *followed {
	return &followed{changed: make(chan struct{}), doomed: make(chan struct{})}
}

// look has this process look after a pod.
func (e *Engine) look(name string) *followed {
	e.mu.Lock()
	defer e.mu.Unlock()
	f := e.known[name]
	if f == nil {
		f = newFollowed()
		e.known[name] = f
	}
	return f
}

func (e *Engine) forget(name string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.known, name)
}

func (e *Engine) looksAfter(name string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.known[name] != nil
}

func (e *Engine) selector() string { return labelService + "=" + e.options.ServiceID }

// watch tells what is followed of what happens to its pod, until ctx ends.
func (e *Engine) watch(ctx context.Context) {
	lists := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.LabelSelector = e.selector()
			return e.api.pods.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.LabelSelector = e.selector()
			return e.api.pods.Watch(ctx, o)
		},
	}
	informer := cache.NewSharedInformer(cache.ToListWatcherWithWatchListSemantics(lists, e.api.pods), &corev1.Pod{}, 0)
	seen := func(o any) {
		if pod, ok := o.(*corev1.Pod); ok {
			e.seen(pod)
		}
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    seen,
		UpdateFunc: func(_, o any) { seen(o) },
		DeleteFunc: func(o any) {
			if unknown, ok := o.(cache.DeletedFinalStateUnknown); ok {
				o = unknown.Obj
			}
			seen(o)
			if pod, ok := o.(*corev1.Pod); ok {
				e.gone(pod.Name)
			}
		},
	})
	if err != nil {
		e.options.Log.Error("pods are not watched", "error", err)
		return
	}
	log := logr.FromSlogHandler(e.options.Log.Handler())
	informer.RunWithContext(klog.NewContext(ctx, log))
}

// seen notes a pod's state. One that has ended is removed in the background.
func (e *Engine) seen(pod *corev1.Pod) {
	e.mu.Lock()
	defer e.mu.Unlock()
	f := e.known[pod.Name]
	if f == nil || f.gone {
		return
	}
	f.pod = pod
	if pod.DeletionTimestamp != nil && !f.ours {
		f.doom()
	}
	ended := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
	if ended && !f.ours && e.closing.Err() == nil {
		f.ours = true
		e.ending.Go(func() { e.removeUntilGone(pod.Name, false) })
	}
	f.tell()
}

func (e *Engine) gone(name string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if f := e.known[name]; f != nil && !f.gone {
		f.gone = true
		if !f.ours {
			f.doom()
		}
		f.tell()
	}
}

// tell wakes who waits. The engine's mutex is held.
func (f *followed) tell() {
	close(f.changed)
	f.changed = make(chan struct{})
}

// doom says that somebody else removes the pod. The engine's mutex is held.
func (f *followed) doom() {
	select {
	case <-f.doomed:
	default:
		close(f.doomed)
	}
}

// mine says that this process removes the pod.
func (e *Engine) mine(f *followed) {
	e.mu.Lock()
	defer e.mu.Unlock()
	f.ours = true
}

// errGone is that a pod that is waited for is there no more.
var errGone = errors.New("there is no such pod")

// await returns when done says so, of the pod as it was last seen: it is asked at each change.
func (e *Engine) await(ctx context.Context, f *followed, name string, done func(*corev1.Pod) (bool, error)) error {
	again := time.NewTicker(lookAgain)
	defer again.Stop()
	for {
		e.mu.Lock()
		pod, gone, changed := f.pod, f.gone, f.changed
		e.mu.Unlock()
		if ok, err := done(pod); ok || err != nil { // also of one that is gone since
			return err
		}
		if gone {
			return errGone
		}
		select {
		case <-changed:
		case <-again.C:
			e.lookAt(ctx, name)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// lookAt asks the API of a pod, as the watch may be behind.
func (e *Engine) lookAt(ctx context.Context, name string) {
	ctx, cancel := context.WithTimeout(ctx, lookAgain)
	defer cancel()
	pod, err := e.api.pods.Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		e.gone(name)
	case err == nil:
		e.seen(pod)
	}
}
