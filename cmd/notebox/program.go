package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"time"

	"notebox/access"
	"notebox/dependencies"
	"notebox/observe/metrics"
	"notebox/runner"
	"notebox/runner/cells"
	"notebox/runner/docker"
	"notebox/runner/pool"
	"notebox/runner/posture"
	"notebox/runner/session"
	"notebox/runner/sidecar"
	"notebox/server"
	"notebox/storage"
)

// closeTimeout bounds what is left to do after the last run has ended.
const closeTimeout = 15 * time.Second

// program is the wired service.
type program struct {
	settings  settings
	log       *slog.Logger
	state     *state
	keys      *access.Keys // nil: there are none
	store     *storage.Store
	engine    runner.Keeper   // docker, or what --engine names
	docker    *docker.Engine  // nil: another one is
	host      runner.Host     // engine, if it can have workers of cells
	sidecar   *sidecar.Engine // nil: another one is
	sandboxes runner.Engine   // that runs have: engine, or cells
	cells     *cells.Engine   // nil: runs have containers alone
	isolation server.Isolation
	installed *installed // which environments have their image
	pool      *pool.Pool
	sessions  *session.Sessions // nil: there are none
	metrics   *metrics.Metrics
	packages  *dependencies.Layers // nil: no request may ask for any
	reaped    int                  // sandboxes of an earlier process
	listener  net.Listener
	api       *server.Server
	http      *http.Server
	closers   []func() error // in the order in which they were opened
}

// newProgram wires everything up and listens; nothing is served yet.
func newProgram(ctx context.Context, s settings, log *slog.Logger) (*program, error) {
	return newProgramAt(ctx, s, log, func() (net.Listener, error) { return net.Listen("tcp", s.listen) })
}

// newProgramAt is newProgram with another listener.
func newProgramAt(ctx context.Context, s settings, log *slog.Logger, listen func() (net.Listener, error)) (p *program, err error) {
	p = &program{settings: s, log: log}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.close())
		}
	}()
	if err := s.check(); err != nil {
		return p, err
	}
	if err := posture.Check(s.limits); err != nil {
		return p, err
	}
	if err := server.CheckListen(s.listen, s.apiKeysFile != "", s.noAuth); err != nil {
		return p, err
	}
	if err := p.openState(); err != nil {
		return p, err
	}
	if err := p.openKeys(); err != nil {
		return p, err
	}
	if err := p.openStore(ctx); err != nil {
		return p, err
	}
	all, err := p.openEngine(ctx)
	if err != nil {
		return p, err
	}
	if p.listener, err = listen(); err != nil {
		return p, err
	}
	p.onClose(func() error { p.listener.Close(); return nil })
	if err := p.openPool(ctx, all); err != nil {
		return p, err
	}
	return p, p.newServer(ctx, all)
}

func (p *program) openState() (err error) {
	if p.state, err = openState(p.settings.stateDir); err != nil {
		return err
	}
	p.onClose(p.state.close)
	if p.settings.serviceID == "" {
		p.settings.serviceID, err = p.state.serviceID()
	}
	return err
}

func (p *program) openStore(ctx context.Context) (err error) {
	keys := p.settings.linkKeys
	if keys == "" {
		keys = p.state.path("link-keys")
	}
	p.store, err = storage.Open(ctx, storage.Options{
		URL:     p.settings.storageURL,
		KeyFile: keys,
		TTL:     p.settings.urlTTL,

		ServeFiles: p.settings.serveFiles,
	})
	if err == nil {
		p.onClose(p.store.Close)
	}
	return err
}

func (p *program) onClose(f func() error) { p.closers = append(p.closers, f) }

// onCloseInTime is onClose of what may take closeTimeout.
func (p *program) onCloseInTime(f func(context.Context) error) {
	p.onClose(func() error { return inCloseTime(f) })
}

// inCloseTime calls f with a context of its own, which ends after closeTimeout.
func inCloseTime(f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	return f(ctx)
}

// close undoes what newProgram did, in the opposite order.
func (p *program) close() error {
	var all []error
	for _, f := range slices.Backward(p.closers) {
		all = append(all, f())
	}
	p.closers = nil
	return errors.Join(all...)
}
