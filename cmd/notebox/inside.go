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
	"path/filepath"
	"sync"
	"time"

	"github.com/peterbourgon/ff/v3"

	"notebox/agent/provider"
	"notebox/client"
	"notebox/cmd/notebox/script"
	"notebox/runner/cells"
)

// openLocal starts the service inside this process: without a port, with a folder and an id of
// its own, so beside any other. Nothing of it is left when close returns, or soon after this
// process is killed.
func openLocal(ctx context.Context) (*client.Client, func() error, error) {
	s, err := settingsOfOneRun()
	if err != nil {
		return nil, nil, &script.Error{Exit: script.Mistake, Err: err}
	}
	if s.stateDir, err = os.MkdirTemp("", runFolder); err != nil {
		return nil, nil, fmt.Errorf("temporary folder: %w", err)
	}
	s.storageURL = "file://" + filepath.ToSlash(filepath.Join(s.stateDir, "files"))
	left, err := cleanUpAfter(s.stateDir)
	if err != nil {
		return nil, nil, errors.Join(err, os.RemoveAll(s.stateDir))
	}
	listener := &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
	p, err := newProgramAt(ctx, s, slog.New(slog.DiscardHandler), func() (net.Listener, error) { return listener, nil })
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("%w; notebox doctor says what is missing here, and NOTEBOX_URL names a notebox elsewhere", err), left(true))
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
		closed := make(chan error, 1)
		go func() { closed <- p.close() }()
		select {
		case err := <-closed:
			if p.cells != nil {
				cells.Tidy(p.settings.serviceID)
			}
			return left(err != nil)
		case <-time.After(leaveTime):
			return left(true)
		}
	}, nil
}

// leaveTime is how long a run whose result is there waits for its sandbox to end.
const leaveTime = time.Second

// layersOfRuns names the packages that notebox run has installed: all its runs share them.
const layersOfRuns = "notebox run"

// settingsOfOneRun are those of the variables of serve, with what a service of one run has
// otherwise.
func settingsOfOneRun() (s settings, err error) {
	flags := flag.NewFlagSet("", flag.ContinueOnError)
	s.register(flags)
	// Not those of a file .env: the folder may be a stranger's.
	if err := ff.Parse(flags, nil, ff.WithEnvVarPrefix("NOTEBOX")); err != nil {
		return s, err
	}
	if err := readConfig(flags, s.config); err != nil {
		return s, err
	}
	set := map[string]bool{}
	flags.Visit(func(f *flag.Flag) { set[f.Name] = true })
	if !set["isolation"] { // a container with cells takes longer to start than one of one run
		s.isolation = isolationContainer
	}
	s.languagesAhead = false
	s.apiKeysFile, s.noAuth, s.publicURL, s.linkKeys, s.serviceID = "", true, "", "", ""
	s.fleeting, s.layers = true, layersOfRuns
	s.poolSize, s.poolMax, s.poolByUse = poolSize{}, 0, 0
	s.sessions.max = 0
	s.agent.model.name = provider.Off
	return s, s.check()
}

// pipeListener is a net.Listener whose clients are in this process.
type pipeListener struct {
	conns  chan net.Conn
	once   sync.Once
	closed chan struct{}
}

// dial is a http.Transport's DialContext.
func (l *pipeListener) dial(ctx context.Context, _, _ string) (net.Conn, error) {
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
func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr implements net.Listener.
func (l *pipeListener) Addr() net.Addr { return pipeAddr{} }

type pipeAddr struct{}

func (pipeAddr) Network() string { return "pipe" }
func (pipeAddr) String() string  { return "localhost:80" }
