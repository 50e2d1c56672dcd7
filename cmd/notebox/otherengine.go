package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"runtime"

	"notebox/environments"
	"notebox/executor"
	"notebox/runner"
	"notebox/runner/sidecar"
)

// What starts sandboxes.
const (
	engineDocker     = "docker"
	engineSidecar    = "sidecar"
	engineKubernetes = "kubernetes"
)

// kubernetesSettings are flags for sandboxes that are pods.
type kubernetesSettings struct{ config, namespace, runtimeClass, registry string }

func (s *settings) registerEngine(f *flag.FlagSet) {
	k := &s.kubernetes
	f.StringVar(&s.engine, "engine", engineDocker, "Start sandboxes by this `engine`: docker; sidecar, which are cells in containers beside the service, as in a pod; or kubernetes, where each one is a pod.")
	f.StringVar(&s.workers, "workers", "/run/workers", "With --engine sidecar, find the sockets of the containers in this `folder`.")
	f.StringVar(&k.config, "kubeconfig", "", "Find the cluster by this `file`. (default: the cluster that the service runs in, or kubectl's)")
	f.StringVar(&k.namespace, "kubernetes-namespace", "", "Start pods in this `namespace`. (default: the service's own, or kubectl's)")
	f.StringVar(&k.runtimeClass, "kubernetes-runtime-class", "", "Give pods this runtime `class`, as gvisor or kata. (default: the cluster's own runtime)")
	f.StringVar(&k.registry, "kubernetes-registry", "", "Have nodes find images in this `registry`, or below a name in it: registry.example.org/team. (default: where their runtimes look)")
}

// checkEngine refuses what only another engine has.
func (s *settings) checkEngine() error {
	if s.engine != engineKubernetes && s.kubernetes != (kubernetesSettings{}) {
		return errors.New("--kubeconfig, --kubernetes-namespace, --kubernetes-runtime-class and --kubernetes-registry are for --engine kubernetes")
	}
	without := s.engine == engineSidecar || s.engine == engineKubernetes
	switch {
	case without && s.dependencies.mode == "on":
		return fmt.Errorf("--engine %s cannot install packages that requests ask for: set --dependencies off", s.engine)
	case without && s.runtime != "":
		return fmt.Errorf("--sandbox-runtime is the Docker daemon's; --engine %s has none", s.engine)
	case without && s.users != (userRange{}):
		return fmt.Errorf("--sandbox-users is for --engine docker: with %s ids are taken by chance", s.engine)
	case s.engine == engineKubernetes && s.isolation == isolationCell:
		return errors.New("--engine kubernetes has no cells: each sandbox is a pod")
	case s.engine == engineSidecar && s.isolation == isolationContainer:
		return errors.New("--engine sidecar has cells alone")
	}
	return nil
}

// openSidecar takes the containers that are beside this service, and waits for the default
// language's.
func (p *program) openSidecar(ctx context.Context, all []environments.Environment) error {
	sockets := map[string]string{}
	for _, e := range all {
		sockets[e.Name] = cmp.Or(e.ImageOf, e.Name)
	}
	engine := sidecar.New(sidecar.Options{
		Folder:  p.settings.workers,
		Service: p.settings.serviceID,
		Socket:  func(env runner.Environment) string { return sockets[env.Name] },
	})
	p.engine, p.host, p.sidecar = engine, engine, engine
	ctx, cancel := context.WithTimeout(ctx, p.settings.startTimeout)
	defer cancel()
	return engine.Await(ctx, executor.EnvironmentOf(all[0]))
}

// canGive says why sandboxes with these limits would be refused, or nil. What others than the
// Docker daemon can give changes; a start says so.
func (p *program) canGive(ctx context.Context, l runner.Limits) error {
	if p.docker == nil {
		return nil
	}
	return p.docker.CanGive(ctx, l)
}

// capacity returns the cores and the bytes of memory that sandboxes have. Those of a cluster are
// not this service's to know: its own cores stand for what is started at one time.
func (p *program) capacity(ctx context.Context) (cores int, memory int64, err error) {
	switch {
	case p.docker != nil:
		return p.docker.Capacity(ctx)
	case p.sidecar != nil:
		cores, memory = p.sidecar.Capacity()
	}
	return cmp.Or(cores, runtime.NumCPU()), cmp.Or(memory, math.MaxInt64), nil
}
