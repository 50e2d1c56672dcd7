package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"notebox/environments"
	"notebox/executor"
	"notebox/runner"
)

const (
	// installedFor is how long it is believed that an image is there, or is not:
	// somebody who builds one tries it soon.
	installedFor = 5 * time.Second
	// installedWait bounds a look at the daemon, whose answer takes milliseconds.
	installedWait = 2 * time.Second
)

// installed knows which environments have their image on the daemon. What was found is
// told at once; if it is old, another look goes on in the background.
type installed struct {
	engine runner.Engine
	all    map[string]runner.Environment

	mu    sync.Mutex
	known map[string]*finding
}

// finding is what was found of an image, and when.
type finding struct {
	there   bool
	at      time.Time
	looking bool
}

// newInstalled looks at each of them once.
func newInstalled(engine runner.Engine, all []environments.Environment) *installed {
	i := &installed{engine: engine, all: map[string]runner.Environment{}, known: map[string]*finding{}}
	for _, e := range all {
		i.all[e.Name] = executor.EnvironmentOf(e)
		i.known[e.Name] = &finding{}
		i.look(e.Name)
	}
	return i
}

// has reports whether an environment can be used.
func (i *installed) has(name string) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	f := i.known[name]
	if f == nil {
		return false
	}
	if time.Since(f.at) > installedFor && !f.looking {
		f.looking = true
		go i.look(name)
	}
	return f.there
}

// look asks the daemon. One that was there is taken to be there while the daemon does not
// answer: the run says why it fails.
func (i *installed) look(name string) {
	ctx, cancel := context.WithTimeout(context.Background(), installedWait)
	defer cancel()
	err := i.engine.Ready(ctx, i.all[name])
	i.mu.Lock()
	defer i.mu.Unlock()
	f := i.known[name]
	f.there = err == nil || f.there && !errors.Is(err, runner.ErrNoImage)
	f.at, f.looking = time.Now(), false
}
