package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"github.com/peterbourgon/ff/v3"

	"notebox/agent/provider"
	"notebox/client"
)

// openLocal starts the service inside this process: without a port, with a folder and an id of
// its own, so beside any other. Nothing of it is left when close returns, or soon after this
// process is killed.
func openLocal(ctx context.Context) (*client.Client, func() error, error) {
	var s settings
	flags := flag.NewFlagSet("", flag.ContinueOnError)
	s.register(flags)
	if err := ff.Parse(flags, nil, variableOptions()...); err != nil {
		return nil, nil, err
	}
	folder, err := os.MkdirTemp("", "notebox-run-")
	if err != nil {
		return nil, nil, fmt.Errorf("temporary folder: %w", err)
	}
	forget, err := forgetAfter(folder)
	if err != nil {
		return nil, nil, errors.Join(err, os.RemoveAll(folder))
	}
	s.forOneRun(flags, folder)
	listener := &insideListener{conns: make(chan net.Conn), closed: make(chan struct{})}
	p, err := newProgramAt(ctx, s, slog.New(slog.DiscardHandler), func() (net.Listener, error) { return listener, nil })
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("%w; notebox doctor says what is missing here, and NOTEBOX_URL names a notebox elsewhere", err), forget())
	}
	served := make(chan error, 1)
	go func() { served <- p.http.Serve(listener) }()
	notebox := client.New(client.Options{
		BaseURL: "http://localhost",
		HTTP:    &http.Client{Transport: &http.Transport{DialContext: listener.dial}},
	})
	return notebox, func() error {
		p.api.CancelRuns()
		_ = p.http.Close() // nobody is left who asks
		<-served
		closed := make(chan struct{})
		go func() { _ = p.close(); close(closed) }()
		select {
		case <-closed:
		case <-time.After(leaveTime): // what is left of the sandbox ends with this process
		}
		return forget()
	}, nil
}

// leaveTime is how long the end of a sandbox is waited for whose result is there.
const leaveTime = time.Second

// layersOfRuns is whose packages are that notebox run has installed: all its runs share them.
const layersOfRuns = "notebox run"

// forOneRun sets what a service of one run has otherwise than one that stays.
func (s *settings) forOneRun(flags *flag.FlagSet, folder string) {
	set := map[string]bool{}
	flags.Visit(func(f *flag.Flag) { set[f.Name] = true })
	if !set["isolation"] { // a container with cells takes longer to start than one of one run
		s.isolation = isolationContainer
	}
	s.languagesAhead = false
	s.apiKeysFile, s.noAuth, s.publicURL, s.linkKeys = "", true, "", ""
	s.stateDir, s.serviceID = folder, ""
	s.storageURL = "file://" + filepath.ToSlash(filepath.Join(folder, "files"))
	s.fleeting, s.layers = true, layersOfRuns
	s.poolSize, s.poolMax, s.poolByUse = poolSize{}, 0, 0
	s.sessions.max = 0
	s.agent.model.name = provider.Off
}

// forgetAfter has a folder removed by what it returns, or else when this process has ended,
// however it ended: a shell waits for the end of a pipe.
func forgetAfter(folder string) (func() error, error) {
	shell := exec.Command("sh", "-c", `cat; rm -rf -- "$0"`, folder)
	pipe, err := shell.StdinPipe()
	if err != nil {
		return nil, err
	}
	shell.SysProcAttr = apart()
	if err := shell.Start(); err != nil {
		return nil, fmt.Errorf("temporary folder: %w", err)
	}
	return func() error { return errors.Join(pipe.Close(), shell.Wait()) }, nil
}

// insideListener is a net.Listener whose clients are in this process.
type insideListener struct {
	conns  chan net.Conn
	once   sync.Once
	closed chan struct{}
}

// dial is a http.Transport's DialContext.
func (l *insideListener) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case l.conns <- theirs:
		return ours, nil
	case <-l.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Accept implements net.Listener.
func (l *insideListener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *insideListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr implements net.Listener.
func (l *insideListener) Addr() net.Addr { return insideAddr{} }

type insideAddr struct{}

func (insideAddr) Network() string { return "inside" }
func (insideAddr) String() string  { return "localhost:80" }
