package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"

	"notebox/environments/supervisor/tail"
	"notebox/runner"
)

const (
	// exitTimeout is how long the kubelet may take to tell the exit code after the stream has
	// ended: it looks at its containers each second.
	exitTimeout = 10 * time.Second
	// doomTime is what a program has to say its last when somebody else removes its pod.
	doomTime = 2 * time.Second
	// sigtermed is the exit code of a program that SIGTERM ended. No code in a sandbox can send
	// it to the harness: it is a pod that is deleted.
	sigtermed = 128 + 15
)

// sandbox is a runner.Sandbox: one attached pod.
type sandbox struct {
	engine   *Engine
	name     string
	followed *followed
	in       *io.PipeWriter     // the container's stdin
	out      *io.PipeReader     // its stdout
	log      tail.Tail          // its stderr
	cancel   context.CancelFunc // of the stream
	kept     atomic.Bool
	closed   chan struct{}
	once     sync.Once // Close
	later    sync.Once // the removal in the background
}

// ID implements runner.Sandbox.
func (s *sandbox) ID() string {
	if s.kept.Load() {
		return sessionPrefix + s.name[len(namePrefix):]
	}
	return s.name
}

// Write implements runner.Sandbox.
func (s *sandbox) Write(p []byte) (int, error) { return s.in.Write(p) }

// Read implements runner.Sandbox. If the cluster ends the pod or the stream, and not the program
// inside, the error is a runner.Error.
func (s *sandbox) Read(p []byte) (int, error) {
	n, err := s.out.Read(p)
	if err == nil || errors.Is(err, io.ErrClosedPipe) {
		return n, err
	}
	return n, s.end(err)
}

// end says why a stream has ended that nobody closed.
func (s *sandbox) end(err error) error {
	ctx, cancel := context.WithTimeout(context.Background(), exitTimeout)
	defer cancel()
	go func() {
		select {
		case <-s.closed:
			cancel()
		case <-ctx.Done():
		}
	}()
	var last *corev1.Pod
	waited := s.engine.await(ctx, s.followed, s.name, func(pod *corev1.Pod) (bool, error) {
		last = pod
		return terminated(pod) != nil, nil
	})
	end := terminated(last)
	if end == nil {
		if errors.Is(waited, errGone) {
			return unavailable("the cluster ended the sandbox", fmt.Errorf("pod %s is gone", s.name))
		}
		return unavailable("the cluster went away", fmt.Errorf("stream of pod %s: %w", s.name, err))
	}
	exit := &runner.ExitError{Code: int(end.ExitCode), Log: s.log.String()}
	// Reason is set if something ended the pod: Evicted, DeadlineExceeded, Terminated by a
	// node that shuts down.
	if last.Status.Reason != "" || exit.Code == sigtermed || s.isDoomed() {
		return unavailable("the cluster ended the sandbox", fmt.Errorf("pod %s: %s: %w", s.name, state(last), exit))
	}
	return exit
}

// terminated is the end of a pod's container, or nil.
func terminated(pod *corev1.Pod) *corev1.ContainerStateTerminated {
	if pod == nil || len(pod.Status.ContainerStatuses) == 0 {
		return nil
	}
	return pod.Status.ContainerStatuses[0].State.Terminated
}

func (s *sandbox) isDoomed() bool {
	select {
	case <-s.followed.doomed:
		return true
	default:
		return false
	}
}

// endWithPod ends the stream if somebody else removes the pod: a node that was lost does not.
func (s *sandbox) endWithPod() {
	select {
	case <-s.followed.doomed:
		time.Sleep(doomTime)
		s.cancel()
	case <-s.closed:
	}
}

// Close implements runner.Sandbox. The program inside has no end of its input by that, but hears
// nothing any more.
func (s *sandbox) Close() error {
	s.once.Do(func() {
		close(s.closed)
		s.cancel()
		s.in.CloseWithError(net.ErrClosed)
		s.out.CloseWithError(net.ErrClosed)
	})
	return nil
}

// Kill implements runner.Sandbox.
func (s *sandbox) Kill(ctx context.Context) error {
	s.Close()
	err := s.engine.remove(ctx, s.name)
	if err != nil {
		s.later.Do(func() {
			s.engine.ending.Go(func() { s.engine.removeUntilGone(s.name, false) })
		})
	}
	return err
}
