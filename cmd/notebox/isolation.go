package main

import (
	"context"
	"errors"
	"fmt"

	"notebox/environments"
	"notebox/executor"
	"notebox/runner/cells"
)

// The kinds of sandboxes.
const (
	isolationAuto      = "auto"
	isolationContainer = "container"
	isolationCell      = "cell"
)

func isIsolation(text string) bool {
	return text == isolationAuto || text == isolationContainer || text == isolationCell
}

// openSandboxes says what runs have: containers, or cells in containers. auto is cells if this
// host lets them have all their walls.
func (p *program) openSandboxes(ctx context.Context, all []environments.Environment) error {
	p.sandboxes = p.engine
	if p.settings.isolation == isolationContainer {
		return nil
	}
	modules := func(name string) []string {
		for _, e := range all {
			if e.Name == name {
				return e.Kernel.WarmUp
			}
		}
		return nil
	}
	engine := cells.New(p.engine, cells.Options{Modules: modules, Log: p.log})
	ctx, cancel := context.WithTimeout(ctx, p.settings.startTimeout)
	defer cancel()
	err := engine.Probe(ctx, executor.EnvironmentOf(all[0]), executor.LimitsOf(all[0], p.settings.limits))
	switch {
	case err == nil:
		p.onClose(engine.Close)
		p.sandboxes = engine
		return nil
	case p.settings.isolation == isolationCell:
		return errors.Join(fmt.Errorf("--isolation cell: a cell does not start on this host: %w", err), engine.Close())
	}
	p.log.Warn("this host has no cells, so runs have containers: SECURITY.md says what cells need", "error", err)
	return engine.Close()
}
