package main

import (
	"notebox/runner/kubernetes"
)

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
