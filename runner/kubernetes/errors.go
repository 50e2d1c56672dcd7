package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"notebox/runner"
)

// retryAfter is when those come back who wanted a sandbox and got none: an API server
// restarts in some seconds, and pods of other runs end in some.
const retryAfter = 5 * time.Second

// errForbidden is that the service may not create pods.
var errForbidden = errors.New("the service account may not create pods")

// explain makes a runner.Error of what the cluster did not do: all of it may be over soon. A
// pod that the API takes for wrong is a fault of ours.
func explain(err error) error {
	message := "the cluster does not start sandboxes"
	switch {
	case err == nil, errors.As(err, new(*runner.Error)), errors.Is(err, runner.ErrNoSandbox), errors.Is(err, context.Canceled),
		apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return err
	case errors.Is(err, context.DeadlineExceeded):
		message = "starting a sandbox took too long"
	case apierrors.IsForbidden(err) && strings.Contains(err.Error(), "exceeded quota"):
		message = "the cluster's quota has no room for a sandbox"
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err), errors.Is(err, errForbidden):
		message = "the cluster does not let this service start sandboxes"
	case unanswered(err), apierrors.IsServiceUnavailable(err), apierrors.IsTooManyRequests(err), apierrors.IsTimeout(err), apierrors.IsServerTimeout(err):
		message = "the cluster does not answer"
	}
	return unavailable(message, err)
}

// unanswered reports whether err is no answer of the API's: it may have done what it was asked.
func unanswered(err error) bool {
	return err != nil && !errors.As(err, new(apierrors.APIStatus))
}

// refused reports whether err is the API's word that it has not done what it was asked.
func refused(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Code < http.StatusInternalServerError
}

// notAsked reports whether there was no connection to ask by.
func notAsked(err error) bool {
	var call *net.OpError
	return errors.As(err, &call) && call.Op == "dial"
}

func imageMissing(err error) error {
	return unavailable("the sandbox image is missing: the cluster's nodes have to have it, or pull it", fmt.Errorf("%w: %w", runner.ErrNoImage, err))
}

func unavailable(message string, err error) error {
	return &runner.Error{Code: runner.CodeUnavailable, Message: message, RetryAfter: retryAfter, Err: err}
}

// state is what the cluster says of a pod, for the log.
func state(pod *corev1.Pod) string {
	words := []string{string(pod.Status.Phase), pod.Status.Reason, pod.Status.Message}
	if pod.DeletionTimestamp != nil {
		words = append(words, "deleted")
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.DisruptionTarget {
			words = append(words, c.Reason, c.Message)
		}
	}
	for _, c := range pod.Status.ContainerStatuses {
		if end := c.State.Terminated; end != nil {
			words = append(words, fmt.Sprintf("exit code %d", end.ExitCode), end.Reason, end.Message)
		}
	}
	return strings.Join(strings.Fields(strings.Join(words, " ")), " ")
}
