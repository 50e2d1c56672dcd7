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
	return nil
}
