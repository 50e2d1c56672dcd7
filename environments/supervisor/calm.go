package main

import (
	"cmp"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"notebox/environments/supervisor/wire"
)

// Whoever makes namespaces and mounts waits for all who read what the kernel says of mounts, which
// thousands of processes can do without end: a cell then takes half a minute to begin. While those
// stand still it takes as long as ever.
const (
	// lateAfter is far above what a cell takes to begin on an idle host.
	lateAfter = 250 * time.Millisecond
	// calmTime is how long cells stand still: several cells begin meanwhile. Then they go on for
	// calmPause at least.
	calmTime, calmPause = 500 * time.Millisecond, 500 * time.Millisecond
	// crowd is how many processes and threads of all cells of a worker can hold up others. A cell
	// with at most few goes on: a kernel that waits has ten.
	crowd, few = 256, 12
)

// hurry tells the service that a cell is late, again and again until it has begun.
func (c *cell) hurry(begun <-chan struct{}) {
	tick := time.NewTicker(lateAfter)
	defer tick.Stop()
	for {
		select {
		case <-begun:
			return
		case <-c.killed:
			return
		case <-tick.C:
			_ = c.s.current().Send(wire.KindLate, c.number, nil) // an error shows on the reading side
		}
	}
}

// calm has the cells with most processes stand still for a moment, so many that the rest is no
// crowd.
func (s *supervisor) calm() {
	if !s.calming.TryLock() {
		return
	}
	defer s.calming.Unlock()
	s.mu.Lock()
	cells, groups := slices.Collect(maps.Keys(s.cells)), s.groups
	s.mu.Unlock()
	if groups == nil || !groups.freezes() {
		return
	}
	large := crowded(cells, func(cell uint32) int64 {
		return number(groups.find(cell, groups.place("pids"), "pids.current"))
	})
	if len(large) == 0 {
		return
	}
	var thaw []func()
	for _, cell := range large {
		thaw = append(thaw, groups.freeze(cell))
	}
	s.rest(calmTime)
	for _, f := range thaw {
		f()
	}
	s.rest(calmPause)
}

// rest sleeps, or until the worker is about to be removed: one with a cell that stands still cannot
// be.
func (s *supervisor) rest(d time.Duration) {
	select {
	case <-time.After(d):
	case <-s.leaving:
	}
}

// crowded are the largest of cells, without which the others have no crowd of processes.
func crowded(cells []uint32, processes func(cell uint32) int64) (large []uint32) {
	all, rest := map[uint32]int64{}, int64(0)
	for _, cell := range cells {
		all[cell] = processes(cell)
		rest += all[cell]
	}
	slices.SortFunc(cells, func(a, b uint32) int { return cmp.Compare(all[b], all[a]) })
	for _, cell := range cells {
		if all[cell] <= few || rest < crowd {
			break
		}
		large = append(large, cell)
		rest -= all[cell]
	}
	return large
}

// The files of a group by which its processes stand still, on version 1 and on version 2, and what
// is written to them for that, and to have them go on.
var (
	frozen1 = [3]string{"freezer.state", "FROZEN", "THAWED"}
	frozen2 = [3]string{"cgroup.freeze", "1", "0"}
)

// freezes reports whether the host can have cells stand still.
func (g *groups) freezes() bool { return g.unified || g.own[wire.Freezer] != "" }

// freeze has a cell stand still until what it returns is called. One that has ended meanwhile has no
// group. The file stays open, as the group of a cell that is kept gets another name.
func (g *groups) freeze(cell uint32) (thaw func()) {
	file := frozen1
	if g.unified {
		file = frozen2
	}
	place := g.place(wire.Freezer)
	var f *os.File
	var err error
	for _, name := range []string{name(cell), keptName(cell), name(cell)} {
		if f, err = os.OpenFile(g.path(place, name, file[0]), os.O_WRONLY, 0); err == nil {
			break
		}
	}
	if err != nil {
		return func() {}
	}
	_, _ = f.WriteString(file[1]) // it ends
	return func() {
		_, _ = f.WriteAt([]byte(file[2]), 0)
		f.Close()
	}
}

// thaw has what a worker has left standing still go on, so that it can end.
func thaw(group string) {
	files, _ := filepath.Glob(filepath.Join(group, "*", frozen1[0]))
	for _, file := range files {
		_ = write(file, frozen1[2])
	}
}
