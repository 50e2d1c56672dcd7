package main

import (
	"context"
	"net/url"

	"notebox/environments"
	"notebox/executor"
	"notebox/runner/admission"
	"notebox/server"
)

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
	if err := p.openPeers(&cfg); err != nil {
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
