package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// way is one of the five to run code.
type way string

const (
	waySeed  way = "a" // docker run + jupyter nbconvert
	wayWarm  way = "b" // notebox, a sandbox waits
	wayEmpty way = "c" // notebox, none waits
	wayStep  way = "d" // notebox, in a session that is open
	wayCell  way = "e" // notebox, a cell waits
)

// bench is one benchmark under way.
type bench struct {
	options
	folder      string
	seed        *seed
	warm, empty *service // in containers
	cells       *service
	callers     map[way]map[string]*caller // by way and case
	sessions    []string                   // ids of those that are open on warm
	report      *Report
}

// measure does the whole of it.
func measure(ctx context.Context, o options) (_ *Report, err error) {
	folder, err := os.MkdirTemp("", "notebox-bench-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	image, err := imageOf(ctx, o.notebox)
	if err != nil {
		return nil, err
	}
	b := &bench{
		options: o,
		folder:  folder,
		seed: &seed{
			image:  image,
			folder: filepath.Join(folder, filepath.Base(folder)),
			label:  "notebox.bench=" + filepath.Base(folder),
		},
		callers: map[way]map[string]*caller{},
	}
	b.report = newReport(o, b.seed)
	if b.report.Machine, err = describeMachine(ctx, image); err != nil {
		return nil, err
	}
	return b.report, b.measure(ctx)
}

// imageOf asks the program, so that all ways have the same image.
func imageOf(ctx context.Context, notebox string) (string, error) {
	out, err := exec.CommandContext(ctx, notebox, "image").Output()
	if err != nil {
		return "", fmt.Errorf("%s image: %w", notebox, err)
	}
	return strings.TrimSpace(string(out)), nil
}

func (b *bench) measure(ctx context.Context) (err error) {
	if err := b.awaitQuiet(ctx); err != nil {
		return err
	}
	if b.report.Idle.Bare, err = b.idleCPU(ctx, b.idle); err != nil {
		return err
	}
	if b.languageRuns > 0 {
		if err := b.measureLanguages(ctx); err != nil {
			return err
		}
	}
	if b.onlyLanguages {
		b.report.compare()
		return nil
	}
	if err := b.measureCells(ctx); err != nil {
		return err
	}
	if err := b.measureOneWaiting(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stopAll(b.services()...)) }()
	for _, s := range []struct {
		service **service
		name    string
		size    int
		flags   []string
	}{
		{&b.warm, "warm", b.poolSize, inContainers},
		{&b.empty, "empty", 0, inContainers},
		{&b.cells, "cells", b.poolSize, inCells},
	} {
		if *s.service, err = startService(ctx, b.options, b.folder, s.name, s.size, s.flags...); err != nil {
			return err
		}
	}
	if err := b.measureWaiting(ctx, b.warm); err != nil {
		return err
	}
	if b.report.Idle.WithServices, err = b.idleCPU(ctx, b.idle); err != nil {
		return err
	}
	if err := b.openCallers(); err != nil {
		return err
	}
	defer b.closeCallers()
	if err := b.openSessions(ctx); err != nil {
		return err
	}
	if err := b.measureLatency(ctx); err != nil {
		return err
	}
	if err := b.closeSessions(ctx); err != nil {
		return err
	}
	if err := b.measureSustained(ctx); err != nil {
		return err
	}
	if err := b.measureCrowd(ctx); err != nil {
		return err
	}
	if b.report.Idle.AtTheEnd, err = b.idleCPU(ctx, b.idle); err != nil {
		return err
	}
	b.report.compare()
	return nil
}

// measureOneWaiting is apart from the rest: sandboxes share memory, so one that is
// alone looks larger.
func (b *bench) measureOneWaiting(ctx context.Context) error {
	if b.poolSize == 1 {
		return nil
	}
	one, err := startService(ctx, b.options, b.folder, "one", 1, inContainers...)
	if err != nil {
		return err
	}
	return errors.Join(b.measureWaiting(ctx, one), one.stop())
}

func (b *bench) measureWaiting(ctx context.Context, s *service) error {
	log.Printf("memory of %d waiting sandboxes", s.size)
	if err := s.awaitIdle(ctx); err != nil {
		return err
	}
	ids, err := s.containers(ctx)
	if err != nil {
		return err
	}
	if len(ids) != s.size {
		return fmt.Errorf("a pool of %d is full with %d containers", s.size, len(ids))
	}
	m, err := readMemory(ctx, ids)
	if err != nil {
		return err
	}
	b.report.Memory = append(b.report.Memory, *m)
	return nil
}

func (b *bench) openCallers() error {
	for w, s := range map[way]*service{wayWarm: b.warm, wayEmpty: b.empty, wayCell: b.cells} {
		b.callers[w] = map[string]*caller{}
		for _, c := range b.cases {
			caller, err := newCaller(s.URL, c, "")
			if err != nil {
				return err
			}
			b.callers[w][c.name] = caller
		}
	}
	return nil
}

func (b *bench) closeCallers() {
	for _, of := range b.callers {
		for _, c := range of {
			c.close()
		}
	}
}

// services are those that were started.
func (b *bench) services() []*service {
	return slices.DeleteFunc([]*service{b.warm, b.empty, b.cells}, func(s *service) bool { return s == nil })
}

// awaitIdle waits for all services, as what one does, the machine does; and then
// for quietTime.
func (b *bench) awaitIdle(ctx context.Context) error {
	for _, s := range b.services() {
		if err := s.awaitIdle(ctx); err != nil {
			return err
		}
	}
	return sleep(ctx, quietTime)
}

func (b *bench) dropStored() (err error) {
	for _, s := range b.services() {
		err = errors.Join(err, s.dropStored())
	}
	return err
}
