package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"notebox/environments/supervisor/wire"
)

const (
	// groupsFolder is where the service has put a part of the host's control groups, a
	// folder for each controller. All workers of a service share it.
	groupsFolder = "/run/groups"
	// workerPrefix is what the name of each worker's group begins with.
	workerPrefix = "worker-"
	// removeTries and removePause bound the wait for a group to be empty whose last process
	// has ended: the kernel takes a moment.
	removeTries, removePause = 2000, time.Millisecond
	// cpuPeriod of the limit of processor time, microseconds: the kernel's own.
	cpuPeriod = 100_000
)

// controllers of cgroup v1 that cells have groups of. The first one's folder has the lock.
var controllers = []string{"memory", "cpu", "cpuacct", "pids"}

// groups are the control groups of this worker's cells, version 1.
type groups struct {
	folder string // of all workers
	name   string // this worker's
	lock   *os.File
}

// newGroups makes a group of that name for this worker, and removes those of workers that are
// no more.
func newGroups(folder, name string) (*groups, error) {
	for _, controller := range controllers {
		if _, err := os.Stat(filepath.Join(folder, controller, "cgroup.procs")); err != nil {
			return nil, fmt.Errorf("cgroup v1 with the controller %s: %w", controller, err)
		}
	}
	g := &groups{folder: folder, name: workerPrefix + name}
	if err := g.sweep(); err != nil {
		return nil, err
	}
	if err := g.mkdir(); err != nil {
		return nil, err
	}
	lock, err := os.Open(g.path(controllers[0]))
	if err != nil {
		return nil, err
	}
	g.lock = lock // until this process ends
	return g, unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB)
}

// sweep removes the groups of workers that have ended: nobody has their lock.
func (g *groups) sweep() error {
	others, err := filepath.Glob(filepath.Join(g.folder, controllers[0], workerPrefix+"*"))
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
			for _, controller := range controllers {
				removeTree(filepath.Join(g.folder, controller, filepath.Base(other)))
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

func (g *groups) path(controller string, more ...string) string {
	return filepath.Join(append([]string{g.folder, controller, g.name}, more...)...)
}

// folders are this worker's groups by their controllers, which the zygote keeps a view of:
// a cell sees its own, as a container does.
func (g *groups) folders() map[string]string {
	all := map[string]string{}
	for _, controller := range controllers {
		all[controller] = g.path(controller)
	}
	return all
}

func name(cell uint32) string { return "cell-" + strconv.FormatUint(uint64(cell), 10) }

// mkdir makes a group of each controller. Two of these may be in one place, as links.
func (g *groups) mkdir(more ...string) error {
	for _, controller := range controllers {
		if err := os.Mkdir(g.path(controller, more...), 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return nil
}

// make makes the groups of a cell, with its limits.
func (g *groups) make(cell uint32, o wire.Open) error {
	if err := g.mkdir(name(cell)); err != nil {
		return err
	}
	memory := strconv.FormatInt(o.Memory, 10)
	for _, set := range []struct{ controller, file, value string }{
		{"memory", "memory.limit_in_bytes", memory},
		{"memory", "memory.memsw.limit_in_bytes", memory}, // memory and swap together: no swap
		{"memory", "memory.swappiness", "0"},
		{"cpu", "cpu.cfs_period_us", strconv.Itoa(cpuPeriod)},
		{"cpu", "cpu.cfs_quota_us", strconv.FormatInt(int64(o.CPUs*cpuPeriod), 10)},
		{"pids", "pids.max", strconv.FormatInt(o.Pids, 10)},
	} {
		err := write(g.path(set.controller, name(cell), set.file), set.value)
		// A host without accounting of swap has no such file, and its containers have no such limit.
		if err != nil && !(set.file == "memory.memsw.limit_in_bytes" && errors.Is(err, fs.ErrNotExist)) {
			return err
		}
	}
	return nil
}

// write writes a value to a file that is there: it makes none, which the kernel would refuse
// with another error than that there is none.
func write(path, value string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	return errors.Join(err, f.Close())
}

// join puts a process into the groups of a cell.
func (g *groups) join(cell uint32, pid int) error {
	for _, controller := range controllers {
		if err := write(g.path(controller, name(cell), "cgroup.procs"), strconv.Itoa(pid)); err != nil {
			return err
		}
	}
	return nil
}

// keep has those who look at the host see that a cell is a session's.
func (g *groups) keep(cell uint32) {
	for _, controller := range controllers {
		_ = os.Rename(g.path(controller, name(cell)), g.path(controller, keptName(cell)))
	}
}

func keptName(cell uint32) string { return "session-" + strconv.FormatUint(uint64(cell), 10) }

// remove removes the groups of a cell that has ended.
func (g *groups) remove(cell uint32) error {
	var all []error
	for _, controller := range controllers {
		for _, path := range []string{g.path(controller, name(cell)), g.path(controller, keptName(cell))} {
			err := unix.Rmdir(path)
			for tries := 0; err == unix.EBUSY && tries < removeTries; tries++ {
				time.Sleep(removePause)
				err = unix.Rmdir(path)
			}
			if err != nil && err != unix.ENOENT {
				all = append(all, fmt.Errorf("remove %s: %w", path, err))
			}
		}
	}
	return errors.Join(all...)
}
