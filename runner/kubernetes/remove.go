package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"golang.org/x/sync/errgroup"
)

const (
	// killGrace is how many seconds a program has to end after SIGTERM. With none at all the
	// API forgets a pod at once, while its processes go on.
	killGrace = 1
	// forceAfter is when a pod is forgotten whose node does not say that it has ended.
	forceAfter = 15 * time.Second
	// removeTimeout bounds one attempt to remove a pod, and removeRetry is the time between
	// attempts in the background.
	removeTimeout = 30 * time.Second
	removeRetry   = 5 * time.Second
	// removeAttempts in the background: an hour. What is left then is reaped at the next start,
	// and ends by itself long before.
	removeAttempts = 720
	// settleTime is how long a pod is looked for whose creation was not answered.
	settleTime = time.Minute
	// reapAtOnce is how many pods are removed at one time.
	reapAtOnce = 16
)

// Reap implements runner.Engine.
func (e *Engine) Reap(ctx context.Context) (int, error) {
	list, err := e.api.pods.List(ctx, metav1.ListOptions{LabelSelector: e.selector()})
	if err != nil {
		return 0, fmt.Errorf("list pods: %w", err)
	}
	var some errgroup.Group
	some.SetLimit(reapAtOnce)
	removed := make(chan error, len(list.Items))
	for _, pod := range list.Items {
		if e.looksAfter(pod.Name) {
			continue
		}
		some.Go(func() error {
			err := e.remove(ctx, pod.Name)
			if err != nil {
				e.forget(pod.Name)
			}
			removed <- err
			return nil
		})
	}
	_ = some.Wait() // each has told its own
	close(removed)
	reaped, failed := 0, []error(nil)
	for err := range removed {
		if err != nil {
			failed = append(failed, err)
		} else {
			reaped++
		}
	}
	return reaped, errors.Join(failed...)
}

// remove deletes a pod and waits until the cluster has forgotten it. By then its kubelet has
// ended it, or does not answer.
func (e *Engine) remove(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, removeTimeout)
	defer cancel()
	f := e.look(name)
	e.mine(f)
	for _, attempt := range []struct {
		grace int64
		wait  time.Duration
	}{{killGrace, forceAfter}, {0, removeTimeout}} {
		err := e.api.pods.Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: &attempt.grace})
		if apierrors.IsNotFound(err) {
			e.forget(name)
			return nil
		}
		if err != nil {
			return fmt.Errorf("delete pod: %w", err)
		}
		waiting, stop := context.WithTimeout(ctx, attempt.wait)
		err = e.await(waiting, f, name, func(*corev1.Pod) (bool, error) { return false, nil })
		stop()
		if errors.Is(err, errGone) {
			e.forget(name)
			return nil
		}
		if ctx.Err() == nil && attempt.grace > 0 {
			e.options.Log.Warn("a pod's node does not end it; it is removed by force", "pod", name)
		}
	}
	return fmt.Errorf("delete pod: %w", ctx.Err())
}

// removeCreated removes in the background what the API has made, or may have: err is what it
// said to that.
func (e *Engine) removeCreated(name string, err error) {
	if err != nil && (notAsked(err) || refused(err)) { // nothing was made
		e.forget(name)
		return
	}
	e.ending.Go(func() { e.removeUntilGone(name, err != nil) })
}

// removeUntilGone removes as often as it takes. One whose creation was asked for and not
// answered is looked for again and again, as it may yet come to be.
func (e *Engine) removeUntilGone(name string, unanswered bool) {
	begun := time.Now()
	for attempt := range removeAttempts {
		err := e.remove(context.Background(), name)
		if err == nil && (!unanswered || time.Since(begun) > settleTime) {
			return
		}
		if err != nil && attempt == 0 {
			e.options.Log.Warn("a pod could not be removed; trying again and again", "pod", name, "error", err)
		}
		select {
		case <-time.After(removeRetry):
		case <-e.closing.Done():
			unanswered = false
			time.Sleep(removeRetry)
		}
	}
}
