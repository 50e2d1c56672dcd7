package kubernetes

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/klog/v2"
	"k8s.io/streaming/pkg/httpstream"
)

// attach streams over a WebSocket, or by SPDY where something on the way speaks no WebSocket, as
// kubectl does.
func attach(ctx context.Context, config *rest.Config, to *url.URL, o remotecommand.StreamOptions) error {
	socket, err := remotecommand.NewWebSocketExecutor(config, http.MethodGet, to.String())
	if err != nil {
		return err
	}
	spdy, err := remotecommand.NewSPDYExecutor(config, http.MethodPost, to)
	if err != nil {
		return err
	}
	either, err := remotecommand.NewFallbackExecutor(socket, spdy, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	})
	if err != nil {
		return err
	}
	// What it logs are the ends of streams, which Read tells.
	return either.StreamWithContext(klog.NewContext(ctx, logr.Discard()), o)
}

// attach opens a stream to a pod that runs.
func (e *Engine) attach(ctx context.Context, f *followed, name string) (*sandbox, error) {
	stdin, write := io.Pipe()
	read, stdout := io.Pipe()
	streaming, cancel := context.WithCancel(context.Background())
	s := &sandbox{engine: e, name: name, followed: f, in: write, out: read, cancel: cancel, closed: make(chan struct{})}
	open := &firstRead{Reader: stdin, begun: make(chan struct{})}
	failed := make(chan error, 1)
	go func() {
		err := e.api.attach(streaming, name, remotecommand.StreamOptions{Stdin: open, Stdout: stdout, Stderr: &s.log})
		failed <- err
		stdin.CloseWithError(io.ErrClosedPipe)
		if err == nil {
			err = io.EOF
		}
		stdout.CloseWithError(err)
	}()
	go s.endWithPod()
	select {
	case <-open.begun:
		return s, nil
	case err := <-failed:
		s.Close()
		return nil, fmt.Errorf("attach to pod %s: %w", name, or(err, io.ErrUnexpectedEOF))
	case <-ctx.Done():
		s.Close()
		return nil, fmt.Errorf("attach to pod %s: %w", name, ctx.Err())
	}
}

func or(err, other error) error {
	if err != nil {
		return err
	}
	return other
}

// firstRead tells when it is read from: that is when streams are open, which client-go does not
// say otherwise.
type firstRead struct {
	io.Reader
	begun chan struct{}
	once  sync.Once
}

func (r *firstRead) Read(p []byte) (int, error) {
	r.once.Do(func() { close(r.begun) })
	return r.Reader.Read(p)
}
