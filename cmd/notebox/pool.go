package main

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"notebox/environments"
	"notebox/executor"
	"notebox/runner"
	"notebox/runner/pool"
)

// openPool makes a pool that is not filled yet. What it has is removed before the engine
// closes.
func (p *program) openPool(ctx context.Context, all []environments.Environment) error {
	s := &p.settings
	cores, memory, err := p.capacity(ctx)
	if err != nil {
		return err
	}
	if s.poolSize == nil {
		s.poolSize = defaultPool(cores, memory)
	}
	sizes, err := s.poolSize.of(all)
	if err != nil {
		return err
	}
	byUse := s.poolByUse
	if byUse < 0 {
		byUse = slices.Max(append(slices.Collect(maps.Values(sizes)), 0))
	}
	byName := map[string]environments.Environment{}
	for _, e := range all {
		byName[e.Name] = e
	}
	limits := func(name string) runner.Limits { return executor.LimitsOf(byName[name], s.limits) }
	o := pool.Options{Limits: s.limits, LimitsOf: limits, ByUse: byUse, MaxSandboxes: s.maxSandboxes, FillAtOnce: cores, StartTimeout: s.startTimeout, Held: true, PerOwner: s.workerPerKey && p.cells != nil, Log: p.log}
	waiting := byUse
	for _, e := range all {
		if n := sizes[e.Name]; n > 0 {
			if !p.installed.has(e.Name) {
				return fmt.Errorf("--pool-size: %s has no image yet: notebox image build --all builds it", e.Language)
			}
			stock := pool.StockOptions{Environment: executor.EnvironmentOf(e), Min: n, Max: 2 * n}
			if s.poolMax > 0 {
				stock.Max = max(n, s.poolMax)
			}
			o.Stocks = append(o.Stocks, stock)
			waiting += stock.Max
		}
	}
	if o.MaxSandboxes == 0 {
		o.MaxSandboxes = s.admission.MaxRunning + waiting + s.sessions.max
	}
	if p.docker != nil {
		users, err := p.docker.Users(ctx)
		if err != nil {
			return err
		}
		if users.Room() < o.MaxSandboxes {
			return fmt.Errorf("--sandbox-users: %d ids are enough for %d sandboxes, and there may be %d (--max-sandboxes)", users.Last-users.First+1, users.Room(), o.MaxSandboxes)
		}
	}
	if o.PerOwner { // what waits is for whoever came lately
		o.Stocks, o.ByUse = nil, waiting
	}
	p.pool = pool.New(p.sandboxes, o)
	p.onCloseInTime(p.pool.Close)
	return nil
}
