package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"notebox/tests/starter"
)

// removalTimeout is for asking the daemon what is left.
const removalTimeout = time.Minute

// service is a notebox process of this benchmark's own.
type service struct {
	*starter.Process
	size int // of its pool
}

// Where sandboxes are.
var (
	inContainers = []string{"--isolation", "container"}
	inCells      = []string{"--isolation", "cell"}
)

// startService launches one, and waits until its pool is full.
func startService(ctx context.Context, o options, folder, name string, size int, flags ...string) (*service, error) {
	s, err := launchService(ctx, o, folder, name, size, flags...)
	if err != nil {
		return nil, err
	}
	if err := s.awaitIdle(ctx); err != nil {
		return nil, errors.Join(err, s.stop())
	}
	return s, nil
}

// launchService starts o's program with a pool of that size, in a new folder below
// folder.
func launchService(ctx context.Context, o options, folder, name string, size int, flags ...string) (*service, error) {
	p, err := starter.Start(ctx, starter.Options{
		Program: o.notebox,
		ID:      "bench-" + filepath.Base(folder) + "-" + name,
		Folder:  filepath.Join(folder, name),
		Flags: slices.Concat([]string{
			// Of one size throughout, so that a full pool is always the same.
			"--pool-size", strconv.Itoa(size), "--pool-max", strconv.Itoa(size),
			"--probe-every", "0", // its state is asked for all the time, and a run of /readyz's own would be measured
		}, flags, o.serveFlags),
	})
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", o.notebox, err)
	}
	return &service{p, size}, nil
}

// dropStored removes what runs have left: nothing else does, and 200 files of
// 50 MB would fill a disk. Only while nothing runs.
func (s *service) dropStored() error {
	entries, err := os.ReadDir(s.Stored())
	if errors.Is(err, fs.ErrNotExist) { // a store elsewhere, by -serve-flags
		return nil
	}
	for _, e := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(s.Stored(), e.Name())))
	}
	return err
}

// stop ends the service as an operator would, and makes sure that nothing of it is left.
func (s *service) stop() error {
	if err := s.Stop(context.Background()); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), removalTimeout)
	defer cancel()
	left, err := s.containers(ctx)
	if err == nil && len(left) > 0 {
		err = fmt.Errorf("the service left containers behind: %s", left)
	}
	return err
}

// stopAll ends several services at one time.
func stopAll(services ...*service) error {
	errs := make([]error, len(services))
	var all sync.WaitGroup
	for i, s := range services {
		all.Go(func() { errs[i] = s.stop() })
	}
	all.Wait()
	return errors.Join(errs...)
}

// containers lists the ids of those that the service has.
func (s *service) containers(ctx context.Context) ([]string, error) {
	return starter.Containers(ctx, s.ID, "{{.ID}}")
}
