package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"notebox/runner"
)

// sessionPrefix is what the ID of a sandbox begins with that is a session's. A pod keeps its name,
// and has a label besides.
const sessionPrefix = namePrefix + "session-"

// Keep implements runner.Keeper: it gives the pod a label.
func (e *Engine) Keep(ctx context.Context, s runner.Sandbox) (string, error) {
	mine, ok := s.(*sandbox)
	if !ok || mine.engine != e {
		return "", errors.New("keep a sandbox: it is another engine's")
	}
	if mine.kept.Load() {
		return mine.ID(), nil
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	label := fmt.Sprintf(`{"metadata":{"labels":{%q:"true"}}}`, labelSession)
	if _, err := e.api.pods.Patch(ctx, mine.name, types.MergePatchType, []byte(label), metav1.PatchOptions{}); err != nil {
		return "", explain(fmt.Errorf("label pod: %w", err))
	}
	mine.kept.Store(true)
	return mine.ID(), nil
}

// Adopt implements runner.Keeper.
func (e *Engine) Adopt(ctx context.Context, name string) (runner.Sandbox, error) {
	id, ok := strings.CutPrefix(name, sessionPrefix)
	if !ok {
		return nil, fmt.Errorf("%w: %q is no session's", runner.ErrNoSandbox, name)
	}
	name = namePrefix + id
	before := e.looksAfter(name)
	f := e.look(name)
	s, err := e.adopt(ctx, f, name)
	if err != nil {
		if !before {
			e.forget(name)
		}
		return nil, explain(err)
	}
	return s, nil
}

func (e *Engine) adopt(ctx context.Context, f *followed, name string) (*sandbox, error) {
	if err := e.keptRuns(ctx, name); err != nil {
		return nil, err
	}
	s, err := e.attach(ctx, f, name)
	if err != nil {
		return nil, err
	}
	s.kept.Store(true)
	// One that ended meanwhile would have a stream that never ends.
	if err := e.keptRuns(ctx, name); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// keptRuns returns runner.ErrNoSandbox unless there is a pod of that name that is a session of
// this service and runs.
func (e *Engine) keptRuns(ctx context.Context, name string) error {
	pod, err := e.api.pods.Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return runner.ErrNoSandbox
	case err != nil:
		return fmt.Errorf("get pod: %w", err)
	case pod.Labels[labelService] != e.options.ServiceID:
		return fmt.Errorf("%w: it is another service's", runner.ErrNoSandbox)
	case pod.Labels[labelSession] == "":
		return fmt.Errorf("%w: it is no session's", runner.ErrNoSandbox)
	case pod.DeletionTimestamp != nil || pod.Status.Phase != corev1.PodRunning:
		return fmt.Errorf("%w: it does not run", runner.ErrNoSandbox)
	}
	e.seen(pod)
	return nil
}
