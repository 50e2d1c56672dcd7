package main

import (
	"context"
	"sync"

	"notebox/access"
)

// openKeys reads the keys file, if there is one, and follows it.
func (p *program) openKeys() (err error) {
	if p.settings.apiKeysFile == "" {
		return nil
	}
	p.keys, err = access.Open(p.settings.apiKeysFile, access.Options{
		UsageFile: p.state.path("cpu-used.json"),
		Await:     p.settings.firstKey,
		Log:       p.log,
	})
	if err != nil {
		return err
	}
	if p.keys.Len() == 0 {
		p.log.Warn("there is no API key, so nobody can call yet", "make", "notebox key -file "+p.settings.apiKeysFile+" NAME")
	}
	watching, stop := context.WithCancel(context.Background())
	var watch sync.WaitGroup
	watch.Go(func() { p.keys.Watch(watching) })
	p.onClose(func() error {
		stop()
		watch.Wait()
		return p.keys.Close()
	})
	return nil
}

// queue is one whose places can be shared between callers.
type queue interface{ ShareWaiting(on bool) }

// shareBetweenKeys has the queues shared as long as there are several callers.
func (p *program) shareBetweenKeys(all ...queue) {
	p.keys.OnChange(func(callers int) {
		for _, a := range all {
			a.ShareWaiting(callers > 1)
		}
	})
}
