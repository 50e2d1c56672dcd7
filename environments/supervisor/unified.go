package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"notebox/environments/supervisor/wire"
)

// leaf is the group of supervisor and zygote on version 2: a group that has others in it, with
// limits of their own, has no processes.
const leaf = "worker"

// mayBeJoined is the mode of the file that the zygote must be allowed to write, to have a cell
// born in a group: of that group, and of the one that both are in. It helps nobody else: the
// one that any other process and a cell's group are both in is root's.
const mayBeJoined = 0o666

// newUnified takes over the container's own group, which Docker has delegated and removes with
// the container: supervisor and zygote go into a group in it, and cells' are beside that.
func newUnified(folder string, setup wire.Setup) (*groups, error) {
	raw, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, err
	}
	_, path, _ := strings.Cut(strings.TrimSpace(string(raw)), "0::") // version 2's line is the last
	g := &groups{unified: true, rmdir: unix.Rmdir, own: map[string]string{"": filepath.Join(folder, filepath.Base(path))}}
	if err := g.mkdir(leaf); err != nil {
		return nil, err
	}
	if _, err := g.limit("", []limit{
		{file: leaf + "/cgroup.procs", value: "0"}, // whoever writes it
		{file: "cgroup.subtree_control", value: "+cpu +memory +pids"},
		{file: leaf + "/memory.max", value: strconv.FormatInt(setup.Memory, 10)},
		{file: leaf + "/memory.swap.max", value: "0"},
		{file: leaf + "/pids.max", value: strconv.FormatInt(setup.Pids, 10)},
	}); err != nil {
		return nil, err
	}
	return g, os.Chmod(g.path("", "cgroup.procs"), mayBeJoined)
}

// birthplace opens the group that a cell is born in. There is none on version 1.
func (g *groups) birthplace(cell uint32) (*os.File, error) {
	if !g.unified {
		return nil, nil
	}
	path := g.path("", name(cell))
	fd, err := unix.Open(path, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil
}
