package main

import (
	"context"
	"errors"
	"fmt"
	"math"

	"notebox/environments"
	"notebox/executor"
	"notebox/runner"
	"notebox/runner/cells"
	"notebox/server"
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
	p.sandboxes, p.isolation = p.engine, server.Isolation{Kind: isolationContainer}
	if p.settings.isolation == isolationContainer || p.host == nil {
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
	o := cells.Options{Modules: modules, Log: p.log}
	if p.settings.fleeting {
		o.SpareAfter = math.MaxInt64 // of one run nobody comes after
	}
	engine := cells.New(p.host, o)
	ctx, cancel := context.WithTimeout(ctx, p.settings.startTimeout)
	defer cancel()
	err := engine.Probe(ctx, executor.EnvironmentOf(all[0]), executor.LimitsOf(all[0], p.settings.limits))
	p.isolation = isolationAfter(err)
	switch {
	case err != nil && (p.settings.isolation == isolationCell || p.docker == nil):
		return errors.Join(fmt.Errorf("--isolation cell: %w", err), engine.Close())
	case err != nil:
		p.log.Warn("runs have containers", "reason", err)
		return engine.Close()
	}
	p.onClose(engine.Close)
	p.sandboxes, p.cells = engine, engine
	return nil
}

// startAhead has a worker of cells be there for each language that has an image.
func (p *program) startAhead(all []environments.Environment) {
	if p.cells == nil || !p.settings.languagesAhead {
		return
	}
	var there []runner.Environment
	for _, e := range all {
		if p.installed.has(e.Name) {
			there = append(there, executor.EnvironmentOf(e))
		}
	}
	p.cells.Ahead(there)
}

// isolationAfter is what runs have after a probe for cells, which says why there can be none,
// or nil.
func isolationAfter(probe error) server.Isolation {
	if probe == nil {
		return server.Isolation{Kind: isolationCell}
	}
	out := server.Isolation{Kind: isolationContainer}
	if missing := (*cells.NoCells)(nil); errors.As(probe, &missing) {
		out.MissingWall, out.Remedy = missing.Wall, missing.Do
	}
	return out
}
