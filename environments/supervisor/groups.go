package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"notebox/environments/supervisor/wire"
)

const (
	// workerPrefix is what the name of each worker's group begins with.
	workerPrefix = "worker-"
	// removeTries and removePause bound the wait for a group to be empty whose last process
	// has ended: the kernel takes a moment.
	removeTries, removePause = 2000, time.Millisecond
	// cpuPeriod of the limit of processor time, microseconds: the kernel's own.
	cpuPeriod = 100_000
)

// groups are the control groups of this worker's cells.
type groups struct {
	// own are the groups that cells' are in, by where a cell finds its part, below
	// /sys/fs/cgroup: a controller, or "" on version 2.
	own     map[string]string
	leaf    string   // on version 1: that of supervisor and zygote; "" if they have their container's
	unified bool     // version 2
	lock    *os.File // on version 1: of this worker's group
	// rename is os.Rename, which waits for all that use the hierarchy of groups.
	rename func(from, to string) error
	rmdir  func(path string) error // is unix.Rmdir
}

// newGroups makes this worker's groups.
func newGroups(folder string, setup wire.Setup) (*groups, error) {
	if _, err := os.Stat(filepath.Join(folder, "cgroup.controllers")); err == nil {
		return newUnified(folder, setup)
	}
	g, err := newDivided(folder, workerPrefix+setup.Name)
	if err != nil || folder == wire.GroupsFolder { // else the container is not this worker's alone
		return g, err
	}
	return g, g.enter(setup)
}

// enter puts supervisor and zygote into a group of their own on version 1.
func (g *groups) enter(setup wire.Setup) error {
	g.leaf = leaf
	if err := g.mkdir(leaf); err != nil {
		return err
	}
	memory, limits := strconv.FormatInt(setup.Memory, 10), []limit{}
	limits = append(limits,
		limit{"memory", "memory.limit_in_bytes", memory},
		limit{"memory", "memory.memsw.limit_in_bytes", memory},
		limit{"pids", "pids.max", strconv.FormatInt(setup.Pids, 10)},
	)
	for place := range g.own {
		limits = append(limits, limit{place, "cgroup.procs", "0"}) // whoever writes it
	}
	_, err := g.limit(leaf, limits)
	return err
}

// newDivided makes a group of that name of each controller, and removes those of workers that
// are no more.
func newDivided(folder, name string) (*groups, error) {
	g := &groups{own: map[string]string{}, rename: os.Rename, rmdir: unix.Rmdir}
	for _, controller := range wire.Controllers {
		if _, err := os.Stat(filepath.Join(folder, controller, "cgroup.procs")); err != nil {
			if controller == wire.Freezer {
				continue
			}
			return nil, fmt.Errorf("cgroup v1 with the controller %s: %w", controller, err)
		}
		g.own[controller] = filepath.Join(folder, controller, name)
	}
	if err := sweep(folder); err != nil {
		return nil, err
	}
	if err := g.mkdir(); err != nil {
		return nil, err
	}
	// The first one's folder has the lock.
	lock, err := os.Open(g.path(wire.Controllers[0]))
	if err != nil {
		return nil, err
	}
	g.lock = lock // until this process ends
	return g, unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB)
}

// sweep removes the groups of workers that have ended: nobody has their lock.
func sweep(folder string) error {
	others, err := filepath.Glob(filepath.Join(folder, wire.Controllers[0], workerPrefix+"*"))
	if err != nil {
		return err
	}
	for _, other := range others {
		lock, err := os.Open(other)
		if err != nil {
			continue // another worker removes it
		}
		free := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil
		if free && time.Since(modified(lock)) > time.Second { // one that begins has not locked yet
			thaw(filepath.Join(folder, wire.Freezer, filepath.Base(other)))
			for _, controller := range wire.Controllers {
				removeTree(filepath.Join(folder, controller, filepath.Base(other)))
			}
		}
		lock.Close()
	}
	return nil
}

func modified(f *os.File) time.Time {
	info, err := f.Stat()
	if err != nil {
		return time.Now()
	}
	return info.ModTime()
}

// removeTree removes a group and those in it, as far as nothing runs there.
func removeTree(path string) {
	entries, _ := os.ReadDir(path)
	for _, e := range entries {
		if e.IsDir() {
			_ = unix.Rmdir(filepath.Join(path, e.Name()))
		}
	}
	_ = unix.Rmdir(path)
}

func (g *groups) path(place string, more ...string) string {
	return filepath.Join(append([]string{g.own[place]}, more...)...)
}

// place is where the groups of a controller are.
func (g *groups) place(controller string) string {
	if g.unified {
		return ""
	}
	return controller
}

func name(cell uint32) string { return "cell-" + strconv.FormatUint(uint64(cell), 10) }

// mkdir makes a group in each place. Two of these may be one, as links.
func (g *groups) mkdir(more ...string) error {
	for place := range g.own {
		if err := os.Mkdir(g.path(place, more...), 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return nil
}

// limit is what is written to a file of a group.
type limit struct{ place, file, value string }

// noSwap are the limits that a host without accounting of swap has no file for. Its containers
// have no such limit either.
var noSwap = []string{"memory.memsw.limit_in_bytes", "memory.swap.max"}

// limit sets limits of the groups of that name, and returns those that the host has.
func (g *groups) limit(name string, limits []limit) ([]limit, error) {
	var set []limit
	for _, l := range limits {
		switch err := write(g.path(l.place, name, l.file), l.value); {
		case err == nil:
			set = append(set, l)
		case !l.notCounted(err):
			return nil, err
		}
	}
	return set, nil
}

// notCounted reports whether the host has no such limit.
func (l limit) notCounted(err error) bool {
	return slices.Contains(noSwap, l.file) && errors.Is(err, fs.ErrNotExist)
}

// write writes to a file that the kernel has made, or finds that it has not.
func write(path, value string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	return errors.Join(err, f.Close())
}

// make makes the groups of a cell, with its limits. It returns what code is shown of them, by files
// below /sys/fs/cgroup.
func (g *groups) make(cell uint32, o wire.Open) (map[string]string, error) {
	if err := g.mkdir(name(cell)); err != nil {
		return nil, err
	}
	set, err := g.limit(name(cell), g.limits(o))
	if err != nil {
		return nil, err
	}
	shown := map[string]string{}
	for _, l := range set {
		shown[filepath.Join(l.place, l.file)] = l.value
	}
	if !g.unified {
		return shown, nil
	}
	shown["cgroup.controllers"] = "cpu memory pids" // by which programs know version 2
	return shown, os.Chmod(g.path("", name(cell), "cgroup.procs"), mayBeJoined)
}

// limits are those of a cell, as the kernel shows them. On version 2 the others go on if a process
// ends for want of memory, as in a container: the harness is one, and has to say so.
func (g *groups) limits(o wire.Open) []limit {
	page := int64(os.Getpagesize())
	memory, pids := strconv.FormatInt(o.Memory/page*page, 10), strconv.FormatInt(o.Pids, 10)
	if g.unified {
		return []limit{
			{file: "memory.max", value: memory},
			{file: "memory.swap.max", value: "0"},
			{file: "cpu.max", value: fmt.Sprintf("%s %d", quota(o), cpuPeriod)},
			{file: "pids.max", value: pids},
		}
	}
	return []limit{
		{"memory", "memory.limit_in_bytes", memory},
		{"memory", "memory.memsw.limit_in_bytes", memory}, // memory and swap together: no swap
		{"memory", "memory.swappiness", "0"},
		{"cpu", "cpu.cfs_period_us", strconv.Itoa(cpuPeriod)},
		{"cpu", "cpu.cfs_quota_us", quota(o)},
		{"pids", "pids.max", pids},
	}
}

// quota of processor time in each cpuPeriod, microseconds.
func quota(o wire.Open) string { return strconv.FormatInt(int64(o.CPUs*cpuPeriod), 10) }

// join puts a process into the groups of a cell. On version 2 it was born there.
func (g *groups) join(cell uint32, pid int) error {
	if g.unified {
		return nil
	}
	for place := range g.own {
		if err := write(g.path(place, name(cell), "cgroup.procs"), strconv.Itoa(pid)); err != nil {
			return err
		}
	}
	return nil
}

// keep has those who look at the host see that a cell is a session's.
func (g *groups) keep(cell uint32) {
	if g.unified { // whose groups cannot be renamed
		_ = unix.Setxattr(g.path("", name(cell)), "user.notebox.session", nil, 0)
		return
	}
	for place := range g.own {
		_ = g.rename(g.path(place, name(cell)), g.path(place, keptName(cell)))
	}
}

func keptName(cell uint32) string { return "session-" + strconv.FormatUint(uint64(cell), 10) }

// remove removes the groups of a cell that has ended. One that stays busy is unix.EBUSY: remove is to
// be called again.
func (g *groups) remove(cell uint32) error {
	var all []error
	for place := range g.own {
		for _, path := range []string{g.path(place, name(cell)), g.path(place, keptName(cell))} {
			err := g.rmdir(path)
			for tries := 0; err == unix.EBUSY && tries < removeTries; tries++ {
				time.Sleep(removePause)
				err = g.rmdir(path)
			}
			if err != nil && err != unix.ENOENT {
				all = append(all, fmt.Errorf("remove %s: %w", path, err))
			}
		}
	}
	return errors.Join(all...)
}
