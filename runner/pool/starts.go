package pool

import (
	"fmt"

	"notebox/runner"
	"notebox/runner/internal/conversation"
)

// manyFailures in a row are no accident.
const manyFailures = 3

// failures are starts of one environment that failed, one after the other.
type failures struct {
	count int
	last  error
}

// note remembers how a start went, and returns err as callers are told it. Packages that a
// caller has chosen may be the cause, so their starts do not count. The lock is held.
func (p *Pool) note(env runner.Environment, err error) error {
	err = conversation.NotStarted(err)
	switch {
	case err == nil:
		delete(p.failing, env.Name)
	case !env.Kernel.Packages && p.closing.Err() == nil:
		p.failing[env.Name] = failures{p.failing[env.Name].count + 1, err}
	}
	return err
}

// Failing returns why the last starts of an environment's sandboxes have all failed; nil if
// they have not.
func (p *Pool) Failing(environment string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	f := p.failing[environment]
	if f.count < manyFailures {
		return nil
	}
	return fmt.Errorf("the last %d starts failed: %w", f.count, f.last)
}
