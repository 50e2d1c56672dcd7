package main

import (
	"notebox/environments"
	"notebox/runner/cells"
)

// The kinds of sandboxes.
const (
	isolationContainer = "container"
	isolationCell      = "cell"
)

// openSandboxes says what runs have: containers, or cells in containers.
func (p *program) openSandboxes(all []environments.Environment) {
	p.sandboxes = p.engine
	if p.settings.isolation == isolationCell {
		modules := func(name string) []string {
			for _, e := range all {
				if e.Name == name {
					return e.Kernel.WarmUp
				}
			}
			return nil
		}
		engine := cells.New(p.engine, cells.Options{Modules: modules, Log: p.log})
		p.onClose(engine.Close)
		p.sandboxes = engine
	}
}
