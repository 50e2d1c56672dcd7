package main

import "notebox/runner/cells"

// The kinds of sandboxes.
const (
	isolationContainer = "container"
	isolationCell      = "cell"
)

// openSandboxes says what runs have: containers, or cells in containers.
func (p *program) openSandboxes() {
	p.sandboxes = p.engine
	if p.settings.isolation == isolationCell {
		engine := cells.New(p.engine, cells.Options{Log: p.log})
		p.onClose(engine.Close)
		p.sandboxes = engine
	}
}
