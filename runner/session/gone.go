package session

import (
	"time"

	"notebox/runner"
)

const (
	// goneFor is how long the end of a session is remembered, so that its owner
	// is told why it is over: longer than anybody thinks about a step.
	goneFor = 24 * time.Hour
	// maxGone ends are remembered, whatever their age: some MB.
	maxGone = 10_000
)

// goneMemory is the ends of sessions, the newest of them. Its user has a lock.
type goneMemory struct {
	ends  map[key]*runner.GoneError
	order []key // the oldest first
}

func newGoneMemory() *goneMemory { return &goneMemory{ends: map[key]*runner.GoneError{}} }

// add remembers an end, and forgets what is too old or too much.
func (m *goneMemory) add(key key, end *runner.GoneError) {
	if m.ends[key] == nil {
		m.order = append(m.order, key)
	}
	m.ends[key] = end
	for len(m.order) > 0 && (len(m.order) > maxGone || time.Since(m.ends[m.order[0]].At) > goneFor) {
		delete(m.ends, m.order[0])
		m.order = m.order[1:]
	}
}

// find returns the end of a session, or nil.
func (m *goneMemory) find(key key) *runner.GoneError {
	end := m.ends[key]
	if end == nil || time.Since(end.At) > goneFor {
		return nil
	}
	return end
}
