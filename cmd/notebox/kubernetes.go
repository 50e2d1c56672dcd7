package main

import (
	"context"
	"errors"
	"flag"
	"math"
	"runtime"

	"notebox/runner"
	"notebox/runner/kubernetes"
)

// What starts sandboxes.
const (
	engineDocker     = "docker"
	engineKubernetes = "kubernetes"
)

// kubernetesSettings are flags for sandboxes that are pods.
type kubernetesSettings struct{ config, namespace, runtimeClass string }

func (s *settings) registerKubernetes(f *flag.FlagSet) {
	k := &s.kubernetes
	f.StringVar(&s.engine, "engine", engineDocker, "Start sandboxes by this `engine`: docker, or kubernetes, where each one is a pod.")
	f.StringVar(&k.config, "kubeconfig", "", "Find the cluster by this `file`. (default: the cluster that the service runs in, or kubectl's)")
	f.StringVar(&k.namespace, "kubernetes-namespace", "", "Start pods in this `namespace`. (default: the service's own, or kubectl's)")
	f.StringVar(&k.runtimeClass, "kubernetes-runtime-class", "", "Give pods this runtime `class`, as gvisor or kata. (default: the cluster's own runtime)")
}

// checkKubernetes refuses what only the other engine has.
func (s *settings) checkKubernetes() error {
	if s.engine != engineKubernetes {
		if s.kubernetes != (kubernetesSettings{}) {
			return errors.New("--kubeconfig, --kubernetes-namespace and --kubernetes-runtime-class are for --engine kubernetes")
		}
		return nil
	}
	switch {
	case s.dependencies.mode == "on":
		return errors.New("--engine kubernetes cannot install packages that requests ask for: set --dependencies off")
	case s.isolation == isolationCell:
		return errors.New("--engine kubernetes has no cells: each sandbox is a pod")
	case s.runtime != "":
		return errors.New("--sandbox-runtime is the Docker daemon's: with --engine kubernetes set --kubernetes-runtime-class")
	case s.users != (userRange{}):
		return errors.New("--sandbox-users is for --engine docker: a pod has ids by chance")
	}
	return nil
}

func (p *program) openKubernetes() error {
	k := p.settings.kubernetes
	engine, err := kubernetes.New(kubernetes.Options{
		ServiceID:    p.settings.serviceID,
		Kubeconfig:   k.config,
		Namespace:    k.namespace,
		RuntimeClass: k.runtimeClass,
		Fleeting:     p.settings.fleeting,
		Log:          p.log,
	})
	if err != nil {
		return err
	}
	p.engine = engine
	p.onCloseInTime(engine.Close)
	p.log.Warn("pods have a network unless a NetworkPolicy denies it: one for the label notebox.service is to deny everything, and this service cannot see whether it does")
	return nil
}

// canGive says why sandboxes with these limits would be refused, or nil. What a cluster can give
// changes; a start says so.
func (p *program) canGive(ctx context.Context, l runner.Limits) error {
	if p.docker == nil {
		return nil
	}
	return p.docker.CanGive(ctx, l)
}

// capacity returns the cores and the bytes of memory that sandboxes have. Those of a cluster are
// not this service's to know: its own cores stand for what is started at one time.
func (p *program) capacity(ctx context.Context) (cores int, memory int64, err error) {
	if p.docker == nil {
		return runtime.NumCPU(), math.MaxInt64, nil
	}
	return p.docker.Capacity(ctx)
}
