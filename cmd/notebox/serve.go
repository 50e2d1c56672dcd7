package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"time"

	"github.com/peterbourgon/ff/v3/ffcli"

	"notebox/access"
	"notebox/dependencies"
	"notebox/environments"
	"notebox/executor"
	"notebox/observe/metrics"
	"notebox/runner"
	"notebox/runner/admission"
	"notebox/runner/cells"
	"notebox/runner/docker"
	"notebox/runner/pool"
	"notebox/runner/session"
	"notebox/server"
	"notebox/storage"
)

const (
	reapTimeout = time.Minute
	// closeTimeout bounds what is left to do after the last run has ended.
	closeTimeout = 15 * time.Second
)

const serveHelp = `Each flag is also an environment variable, NOTEBOX_ and the flag in capitals:
--max-body is NOTEBOX_MAX_BODY. notebox reads variables from a file .env in the
current folder too, and flags from the file that --config names. If a flag is set
several times, the command line counts first, then the environment, then .env, and
the file last. docs/settings.md says more.`

func serveCommand() *ffcli.Command {
	var s settings
	flags := flag.NewFlagSet("notebox serve", flag.ContinueOnError)
	groups := s.register(flags)
	return &ffcli.Command{
		Name:       "serve",
		ShortUsage: "notebox serve [flags]",
		ShortHelp:  "answer the HTTP API",
		LongHelp:   serveHelp,
		UsageFunc:  groups.usage,
		FlagSet:    flags,
		Options:    variableOptions(),
		Exec: func(ctx context.Context, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("unexpected argument %q", args[0])
			}
			if err := readConfig(flags, s.config); err != nil {
				return err
			}
			log := s.observe.logger(os.Stderr)
			logExports(log)
			warnOfVariables(log, flags, os.Environ(), ".env")
			p, err := newProgram(ctx, s, log)
			if err != nil {
				return err
			}
			return errors.Join(p.run(ctx), p.close())
		},
	}
}

// program is the wired service.
type program struct {
	settings  settings
	log       *slog.Logger
	state     *state
	keys      *access.Keys // nil: there are none
	store     *storage.Store
	engine    *docker.Engine
	sandboxes runner.Engine // that runs have: engine, or cells
	cells     *cells.Engine // nil: runs have containers alone
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
	if err := docker.Check(s.limits); err != nil {
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

// openEngine also makes sure that sandboxes can be started.
func (p *program) openEngine(ctx context.Context) ([]environments.Environment, error) {
	all, err := environments.Load(p.settings.environmentsDir)
	if err != nil {
		return nil, err
	}
	p.settings.useImage(all)
	p.engine, err = docker.New(docker.Options{
		ServiceID: p.settings.serviceID,
		Layers:    p.settings.layers,
		Fleeting:  p.settings.fleeting,
		Runtime:   p.settings.runtime,
		Users:     docker.Users(p.settings.users),
		Log:       p.log,
	})
	if err != nil {
		return nil, err
	}
	p.onCloseInTime(p.engine.Close)
	ctx, cancel := context.WithTimeout(ctx, reapTimeout)
	defer cancel()
	if err := p.engine.CanGive(ctx, p.settings.limits); err != nil {
		return nil, err
	}
	if old, err := p.engine.CgroupV1(ctx); err != nil {
		return nil, err
	} else if old {
		p.log.Warn("the Docker host has cgroup v1: what sockets hold is outside a sandbox's limit of memory; SECURITY.md says how much that can be. cgroup v2 counts it")
	}
	for _, warning := range hostWarnings("/proc") {
		p.log.Warn(warning + "; see SECURITY.md")
	}
	// The others are there from when their images are.
	if err := p.engine.Ready(ctx, executor.EnvironmentOf(all[0])); err != nil {
		return nil, err
	}
	if err := p.openSandboxes(ctx, all); err != nil {
		return nil, err
	}
	p.installed = newInstalled(p.engine, all)
	for _, e := range all {
		if err := p.engine.CanGive(ctx, executor.LimitsOf(e, p.settings.limits)); err != nil {
			return nil, fmt.Errorf("environment %s: %w", e.Name, err)
		}
		if !p.installed.has(e.Name) {
			p.log.Info("an environment has no image: notebox image build --all builds them all", "environment", e.Name, "image", e.Image)
		}
	}
	p.startAhead(all)
	return all, nil
}

// useImage gives Python the image of --image.
func (s *settings) useImage(all []environments.Environment) {
	for i := range all {
		if s.image != "" && (all[i].Name == environments.Default || all[i].ImageOf == environments.Default) {
			all[i].Image = s.image
		}
	}
}

// openPool makes a pool that is not filled yet. What it has is removed before the engine
// closes.
func (p *program) openPool(ctx context.Context, all []environments.Environment) error {
	s := &p.settings
	cores, memory, err := p.engine.Capacity(ctx)
	if err != nil {
		return err
	}
	if s.poolSize == nil {
		s.poolSize = defaultPool(cores, memory)
	}
	sizes, err := s.poolSize.of(all)
	if err != nil {
		return err
	}
	byUse := s.poolByUse
	if byUse < 0 {
		byUse = slices.Max(append(slices.Collect(maps.Values(sizes)), 0))
	}
	byName := map[string]environments.Environment{}
	for _, e := range all {
		byName[e.Name] = e
	}
	limits := func(name string) runner.Limits { return executor.LimitsOf(byName[name], s.limits) }
	o := pool.Options{Limits: s.limits, LimitsOf: limits, ByUse: byUse, MaxSandboxes: s.maxSandboxes, FillAtOnce: cores, StartTimeout: s.startTimeout, Held: true, PerOwner: s.workerPerKey && p.cells != nil, Log: p.log}
	waiting := byUse
	for _, e := range all {
		if n := sizes[e.Name]; n > 0 {
			if !p.installed.has(e.Name) {
				return fmt.Errorf("--pool-size: %s has no image yet: notebox image build --all builds it", e.Language)
			}
			stock := pool.StockOptions{Environment: executor.EnvironmentOf(e), Min: n, Max: 2 * n}
			if s.poolMax > 0 {
				stock.Max = max(n, s.poolMax)
			}
			o.Stocks = append(o.Stocks, stock)
			waiting += stock.Max
		}
	}
	if o.MaxSandboxes == 0 {
		o.MaxSandboxes = s.admission.MaxRunning + waiting + s.sessions.max
	}
	users, err := p.engine.Users(ctx)
	if err != nil {
		return err
	}
	if users.Room() < o.MaxSandboxes {
		return fmt.Errorf("--sandbox-users: %d ids are enough for %d sandboxes, and there may be %d (--max-sandboxes)", users.Last-users.First+1, users.Room(), o.MaxSandboxes)
	}
	if o.PerOwner { // what waits is for whoever came lately
		o.Stocks, o.ByUse = nil, waiting
	}
	p.pool = pool.New(p.sandboxes, o)
	p.onCloseInTime(p.pool.Close)
	return nil
}

func (p *program) newServer(ctx context.Context, all []environments.Environment) error {
	first := executor.EnvironmentOf(all[0])
	tracer, err := p.openTracing(ctx)
	if err != nil {
		return err
	}
	network, err := p.settings.network.open(p.log, p.ownAddresses()...)
	if err != nil {
		return err
	}
	answers, err := p.openAgent()
	if err != nil {
		return err
	}
	limits := p.settings.admission
	limits.MaxWaiting = p.settings.maxWaiting(p.cells != nil)
	admitted := admission.New(p.pool, limits)
	p.shareBetweenKeys(admitted)
	cfg := server.Config{
		Runner:         admitted,
		Store:          p.store,
		Environments:   all,
		Available:      p.installed.has,
		Pool:           p.pool.Stats,
		Runs:           func() (int, int) { return admitted.Running(), admitted.Waiting() },
		Isolation:      p.isolation,
		Ready:          func(ctx context.Context) error { return p.engine.Ready(ctx, first) },
		Starts:         func() error { return p.pool.Failing(first.Name) },
		ListenAddr:     p.listener.Addr().String(),
		PublicURL:      p.settings.publicURL,
		Keys:           p.keys,
		AllowOrigins:   p.settings.allowOrigins,
		Limits:         p.settings.limits,
		MaxTimeout:     p.settings.maxTimeout,
		MaxBody:        p.settings.maxBody,
		MaxUpload:      p.settings.maxUpload,
		MaxConnections: p.settings.maxConnections,
		FetchAllow:     p.settings.fetchAllow,
		Network:        network,
		Agent:          answers,
		ServiceID:      p.settings.serviceID,
		ResultTTL:      p.settings.resultTTL,
		Retention:      p.settings.retention,
		TempDir:        p.state.path("uploads"),
		Log:            p.log,
	}
	if err := p.openSessions(ctx, &cfg, admitted); err != nil {
		return err
	}
	if err := p.openDependencies(ctx, &cfg, admitted, all); err != nil {
		return err
	}
	p.observe(&cfg, admitted, all, tracer)
	if p.api, err = server.New(cfg); err != nil {
		return err
	}
	p.onClose(p.api.Close)
	p.http = p.api.HTTPServer()
	return nil
}

// ownAddresses are those at which the service is reached.
func (p *program) ownAddresses() []string {
	own := []string{p.listener.Addr().String()}
	if u, err := url.Parse(p.settings.publicURL); err == nil && u.Host != "" {
		own = append(own, u.Host)
	}
	return own
}

// run serves until ctx ends, then lets runs end, cancels those that take longer
// than --drain, and returns when the last reply is out or, where no client waits
// for it, stored.
func (p *program) run(ctx context.Context) error {
	failed := make(chan error, 1)
	go func() { failed <- p.http.Serve(p.listener) }()
	p.log.Info("notebox serves", "url", "http://"+p.listener.Addr().String(), "state", p.settings.stateDir, "storage", p.store.Name())
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	p.log.Info("ending: no new requests; waiting for those that run", "drain", p.settings.drain)
	if p.shutdown(p.settings.drain) == nil {
		return nil
	}
	p.api.CancelRuns()
	if err := p.shutdown(closeTimeout); err != nil {
		p.log.Warn("runs that do not end, or clients that take no reply, are left", "error", err)
		return p.http.Close()
	}
	return nil
}

func (p *program) shutdown(d time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	return errors.Join(p.http.Shutdown(ctx), p.api.Wait(ctx))
}

func (p *program) onClose(f func() error) { p.closers = append(p.closers, f) }

// onCloseInTime is onClose of what may take closeTimeout.
func (p *program) onCloseInTime(f func(context.Context) error) {
	p.onClose(func() error {
		ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
		defer cancel()
		return f(ctx)
	})
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
