package main

import (
	"context"
	"sync"

	"notebox/access"
	"notebox/runner"
)

// openKeys reads the keys file, where there is one, and follows it.
func (p *program) openKeys() (err error) {
	if p.settings.apiKeysFile == "" {
		return nil
	}
	p.keys, err = access.Open(p.settings.apiKeysFile, access.Options{
		UsageFile: p.state.path("cpu-used.json"),
		Log:       p.log,
		Now:       p.settings.now,
	})
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	var watch sync.WaitGroup
	watch.Go(func() { p.keys.Watch(ctx) })
	p.onClose(func() error {
		stop()
		watch.Wait()
		return p.keys.Close()
	})
	return nil
}

// shareBetweenKeys has the queue shared as long as there are several callers.
func (p *program) shareBetweenKeys(a *runner.Admission) {
	p.keys.OnChange(func(callers int) { a.ShareWaiting(callers > 1) })
}
