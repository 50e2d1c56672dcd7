package main

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"notebox/access"
	"notebox/access/redis"
)

// openKeys reads the keys file, if there is one, and follows it.
func (p *program) openKeys() (err error) {
	if p.settings.apiKeysFile == "" {
		if p.settings.keyLimits != "" {
			return errors.New("--limits is for those of API keys: set --api-keys-file")
		}
		return nil
	}
	store, err := p.openLimits()
	if err != nil {
		return err
	}
	p.keys, err = access.Open(p.settings.apiKeysFile, access.Options{
		UsageFile: p.state.path("cpu-used.json"),
		Await:     p.settings.firstKey,
		Store:     store,
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

// openLimits returns where services count together; nil if this one counts alone.
func (p *program) openLimits() (access.Store, error) {
	if p.settings.keyLimits == "" {
		return nil, nil
	}
	store, err := redis.Open(p.settings.keyLimits)
	if err != nil {
		return nil, fmt.Errorf("--limits: %w", err)
	}
	p.onClose(store.Close)
	return store, nil
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
