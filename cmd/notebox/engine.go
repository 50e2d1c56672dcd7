package main

import (
	"context"
	"fmt"
	"path"
	"time"

	"notebox/environments"
	"notebox/executor"
	"notebox/runner/docker"
)

// reapTimeout bounds a round of calls to the daemon that looks at, or removes, what is there.
const reapTimeout = time.Minute

// openEngine also makes sure that sandboxes can be started.
func (p *program) openEngine(ctx context.Context) ([]environments.Environment, error) {
	all, err := environments.Load(p.settings.environmentsDir)
	if err != nil {
		return nil, err
	}
	p.settings.useImage(all)
	// Of all, with the waits for a container beside the service and for the probe of cells.
	ctx, cancel := context.WithTimeout(ctx, reapTimeout+2*p.settings.startTimeout)
	defer cancel()
	switch p.settings.engine {
	case engineKubernetes:
		err = p.openKubernetes()
	case engineSidecar:
		err = p.openSidecar(ctx, all)
	default:
		err = p.openDocker(ctx)
	}
	if err != nil {
		return nil, err
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
		if err := p.canGive(ctx, executor.LimitsOf(e, p.settings.limits)); err != nil {
			return nil, fmt.Errorf("environment %s: %w", e.Name, err)
		}
		if !p.installed.has(e.Name) {
			p.log.Info("an environment has no image: notebox image build --all builds them all", "environment", e.Name, "image", e.Image)
		}
	}
	p.startAhead(all)
	return all, nil
}

func (p *program) openDocker(ctx context.Context) (err error) {
	p.docker, err = docker.New(docker.Options{
		ServiceID: p.settings.serviceID,
		Layers:    p.settings.layers,
		Fleeting:  p.settings.fleeting,
		Runtime:   p.settings.runtime,
		Users:     docker.Users(p.settings.users),
		Log:       p.log,
	})
	if err != nil {
		return err
	}
	p.engine, p.host = p.docker, p.docker
	p.onCloseInTime(p.docker.Close)
	if err := p.docker.CanGive(ctx, p.settings.limits); err != nil {
		return err
	}
	if old, err := p.docker.CgroupV1(ctx); err != nil {
		return err
	} else if old {
		p.log.Warn("the Docker host has cgroup v1: what sockets hold is outside a sandbox's limit of memory; cgroup v2 counts it")
	}
	for _, warning := range hostWarnings("/proc") {
		p.log.Warn(warning)
	}
	return nil
}

// useImage gives Python the image of --image, and all others those of --kubernetes-registry.
func (s *settings) useImage(all []environments.Environment) {
	for i := range all {
		if s.kubernetes.registry != "" {
			all[i].Image = path.Join(s.kubernetes.registry, all[i].Image)
		}
		if s.image != "" && (all[i].Name == environments.Default || all[i].ImageOf == environments.Default) {
			all[i].Image = s.image
		}
	}
}
