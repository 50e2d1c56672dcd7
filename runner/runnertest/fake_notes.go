package runnertest

import "slices"

// notes are what a Fake remembers of all its sandboxes, under its lock.
type notes struct {
	most    int                 // sandboxes at one time
	warmed  map[string][]string // by ID: the modules of the warm frame
	hurried map[string]bool     // by ID: a hurry frame came
}

// Most returns how many sandboxes there were at one time at most.
func (f *Fake) Most() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.notes.most
}

// Warmed returns the modules that a sandbox was to import ahead, also if it
// is no more. An honest Program notes them.
func (f *Fake) Warmed(id string) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.notes.warmed[id])
}

// Hurried reports whether a sandbox was told that a run waits for it.
func (f *Fake) Hurried(id string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.notes.hurried[id]
}

// End ends a sandbox as if its program had died.
func (f *Fake) End(id string) {
	f.mu.Lock()
	s := f.sandboxes[id]
	f.mu.Unlock()
	if s != nil {
		s.far.Close()
	}
}

func (f *Fake) noteWarm(id string, modules []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.notes.warmed[id] = modules
}

func (f *Fake) noteHurry(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.notes.hurried[id] = true
}
