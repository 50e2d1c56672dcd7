package main

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"notebox/environments/supervisor/wire"
)

// kept are the two capabilities of a harness: see walls.py.
const kept = setgid | setuid

// lookout holds a cell against what its walls are to be. It looks from outside, at what the
// kernel says of the cell's processes, and asks nothing that is in the cell.
type lookout struct {
	s       *supervisor
	c       *cell
	missing []wire.Missing
}

// look returns which walls a cell that runs is without.
func (s *supervisor) look(c *cell) []wire.Missing {
	l := &lookout{s: s, c: c}
	err := s.zygote.owner.do(func() error { // who may look into what is in the namespace
		l.all()
		return nil
	})
	if err != nil {
		l.miss(wire.WallWorker, "the supervisor cannot look at the cell: %v", err)
	}
	return l.missing
}

func (l *lookout) miss(wall wire.Wall, format string, args ...any) {
	l.missing = append(l.missing, wire.Missing{Wall: wall, Why: fmt.Sprintf(format, args...)})
}

func (l *lookout) all() {
	pids := l.s.groups.processes(l.c.number)
	code := false
	for _, pid := range pids {
		l.namespaces(pid)
		code = l.rights(pid) || code
		l.limits(pid)
		l.descriptors(pid)
	}
	if !code {
		l.miss(wire.WallUser, "no process of the cell has an id of its own")
		return
	}
	if err := l.s.groups.hold(l.c.number, pids, l.c.open); err != nil {
		l.miss(wire.WallGroups, "%v", err)
	}
	l.mounts(pids[0])
}

func proc(pid int, file string) string { return fmt.Sprintf("/proc/%d/%s", pid, file) }

// zygotePid is the process that cells are forked from.
func (l *lookout) zygotePid() int { return l.s.zygote.process.Process.Pid }

// namespaces are to be other ones than those of the worker: of the user the zygote's.
func (l *lookout) namespaces(pid int) {
	for _, kind := range []string{"user", "pid", "mnt", "ipc", "uts", "net", "cgroup"} {
		its, err := os.Readlink(proc(pid, "ns/"+kind))
		own, ownErr := os.Readlink("/proc/self/ns/" + kind)
		zygotes, zygotesErr := os.Readlink(proc(l.zygotePid(), "ns/"+kind))
		wall := wire.WallNamespaces
		if kind == "user" {
			wall = wire.WallUser
		}
		switch err := errors.Join(err, ownErr, zygotesErr); {
		case err != nil:
			l.miss(wall, "%v", err)
		case its == own, kind != "user" && its == zygotes, kind == "user" && its != zygotes:
			l.miss(wall, "a process of the cell is in the worker's namespace %s", kind)
		}
	}
}

// rights are the ids, capabilities and filters of a process. It reports whether the process
// can be code's.
func (l *lookout) rights(pid int) (code bool) {
	its, err := status(proc(pid, "status"))
	own, ownErr := status("/proc/self/status")
	if err := errors.Join(err, ownErr); err != nil {
		l.miss(wire.WallPrivileges, "%v", err)
		return false
	}
	first, end := l.s.setup.FirstUser, l.s.setup.FirstUser+l.s.setup.Users
	code = true
	for _, field := range strings.Fields(its["Uid"] + " " + its["Gid"]) {
		id, err := strconv.Atoi(field)
		if err != nil || id < first || id >= end {
			l.miss(wire.WallUser, "a process of the cell has the id %s", field)
		}
		code = code && id >= first+wire.ZygoteIDs
	}
	for _, set := range []string{"CapInh", "CapPrm", "CapEff", "CapAmb", "CapBnd"} {
		bits, err := strconv.ParseUint(its[set], 16, 64)
		if err != nil || bits&^kept != 0 || bits != 0 && code && set != "CapBnd" {
			l.miss(wire.WallPrivileges, "a process of the cell has %s %s", set, its[set])
		}
	}
	if its["NoNewPrivs"] != "1" {
		l.miss(wire.WallPrivileges, "no_new_privs is not set")
	}
	filters, _ := strconv.Atoi(its["Seccomp_filters"])
	workers, _ := strconv.Atoi(own["Seccomp_filters"])
	if _, told := own["Seccomp_filters"]; its["Seccomp"] != "2" || told && filters < workers+2 {
		l.miss(wire.WallSeccomp, "a process of the cell does not have both filters")
	}
	return code
}

// status reads a file of lines "Name:\tvalue".
func status(path string) (map[string]string, error) {
	raw, err := os.ReadFile(path)
	all := map[string]string{}
	for line := range strings.Lines(string(raw)) {
		if name, value, ok := strings.Cut(line, ":"); ok {
			all[name] = strings.TrimSpace(value)
		}
	}
	return all, err
}

// limits are those of the worker's container, and for what is counted for all cells together
// only a part of them.
func (l *lookout) limits(pid int) {
	its, err := rlimits(proc(pid, "limits"))
	own, ownErr := rlimits("/proc/self/limits")
	if err := errors.Join(err, ownErr); err != nil {
		l.miss(wire.WallRlimits, "%v", err)
		return
	}
	for name, most := range map[string]float64{
		"Max core file size":  own["Max core file size"],
		"Max open files":      own["Max open files"],
		"Max pending signals": own["Max pending signals"] / 2,
		"Max msgqueue size":   own["Max msgqueue size"] / 2,
	} {
		if have, ok := its[name]; !ok || have > most {
			l.miss(wire.WallRlimits, "%q is %g", name, have)
		}
	}
}

// rlimits reads the hard limits of a process.
func rlimits(path string) (map[string]float64, error) {
	raw, err := os.ReadFile(path)
	all := map[string]float64{}
	for line := range strings.Lines(string(raw)) {
		const nameWidth = 26
		if len(line) <= nameWidth {
			continue
		}
		fields := strings.Fields(line[nameWidth:])
		if len(fields) < 2 {
			continue
		}
		value, err := strconv.ParseFloat(fields[1], 64)
		if err != nil { // unlimited
			value = math.Inf(1)
		}
		all[strings.TrimSpace(line[:nameWidth])] = value
	}
	return all, err
}

// descriptors are none that the zygote or its builder has too.
func (l *lookout) descriptors(pid int) {
	its, err := opened(pid)
	if err != nil {
		l.miss(wire.WallDescriptors, "%v", err)
	}
	for _, other := range l.s.zygote.withBuilder() {
		workers, err := opened(other)
		if err != nil {
			l.miss(wire.WallDescriptors, "%v", err)
		}
		for _, target := range its {
			if slices.Contains(workers, target) {
				l.miss(wire.WallDescriptors, "a process of the cell has %s of the zygote", target)
			}
		}
	}
}

// opened are the sockets and pipes of a process. To list them takes its own id: that of the
// calling thread for files is root's before and after.
func opened(pid int) (targets []string, err error) {
	var folder unix.Stat_t
	if err := unix.Stat(proc(pid, "fd"), &folder); err != nil {
		return nil, err
	}
	if _, err := unix.SetfsuidRetUid(int(folder.Uid)); err != nil {
		return nil, err
	}
	defer func() { _, _ = unix.SetfsuidRetUid(0) }()
	entries, err := os.ReadDir(proc(pid, "fd"))
	for _, e := range entries {
		target, err := os.Readlink(proc(pid, "fd/"+e.Name()))
		if err == nil && (strings.HasPrefix(target, "socket:") || strings.HasPrefix(target, "pipe:")) {
			targets = append(targets, target)
		}
	}
	return targets, err
}

// mounted is what is to be seen at a folder.
type mounted struct {
	kind, options, limits string
}

// mounts are those that a cell sees.
func (l *lookout) mounts(pid int) {
	all, err := mountsOf(proc(pid, "mountinfo"))
	if err != nil {
		l.miss(wire.WallFiles, "%v", err)
		return
	}
	if !has(all["/"].options, "ro") {
		l.miss(wire.WallFiles, "the root can be written")
	}
	for folder, kind := range map[string]string{"/dev/pts": "devpts", "/dev/mqueue": "mqueue"} {
		if all[folder].kind != kind {
			l.miss(wire.WallFiles, "%s is not the cell's own", folder)
		}
	}
	for place, m := range all { // of which one cell's readers keep all others waiting
		if strings.HasPrefix(m.kind, "cgroup") {
			l.miss(wire.WallGroups, "there are control groups at %s", place)
		}
	}
	for folder, options := range l.c.open.Mounts {
		for _, option := range strings.Split(options, ",") {
			key, _, _ := strings.Cut(option, "=")
			limited := slices.ContainsFunc(strings.Split(all[folder].limits, ","), func(o string) bool { return strings.HasPrefix(o, key+"=") })
			if all[folder].kind != "tmpfs" || (key == "size" || key == "nr_inodes") && !limited {
				l.miss(wire.WallTmpfs, "%s has no limit %q", folder, key)
			}
		}
	}
	if all["/proc"].kind != "proc" || !has(all["/proc/sys"].options, "ro") {
		l.miss(wire.WallProc, "/proc is not the cell's own, or /proc/sys can be written")
	}
	for _, path := range l.s.setup.Masked {
		_, hidden := all[path]
		if _, err := os.Stat(path); strings.HasPrefix(path, "/proc/") && err == nil && !hidden {
			l.miss(wire.WallProc, "%s is not masked", path)
		}
	}
}

func has(list, option string) bool { return slices.Contains(strings.Split(list, ","), option) }

// mountsOf reads /proc/PID/mountinfo (proc_pid_mountinfo(5)). What was mounted last counts.
func mountsOf(path string) (map[string]mounted, error) {
	raw, err := os.ReadFile(path)
	all := map[string]mounted{}
	for line := range strings.Lines(string(raw)) {
		before, after, _ := strings.Cut(line, " - ")
		place, what := strings.Fields(before), strings.Fields(after)
		if len(place) > 5 && len(what) > 2 {
			all[place[4]] = mounted{kind: what[0], options: place[5], limits: what[2]}
		}
	}
	return all, err
}

// hold says which limit of a cell is not in force, or nil.
func (g *groups) hold(cell uint32, pids []int, o wire.Open) error {
	for _, want := range g.limits(o) {
		raw, err := os.ReadFile(g.find(cell, want.place, want.file))
		switch have := string(bytes.TrimSpace(raw)); {
		case err != nil && want.notCounted(err): // for containers neither
		case err != nil:
			return err
		case have != want.value:
			return fmt.Errorf("%s is %s, not %s", want.file, have, want.value)
		}
	}
	for place := range g.own {
		raw, err := os.ReadFile(g.find(cell, place, "cgroup.procs"))
		if err != nil {
			return err
		}
		for _, pid := range pids {
			if !slices.ContainsFunc(bytes.Fields(raw), func(f []byte) bool { return string(f) == strconv.Itoa(pid) }) {
				return fmt.Errorf("a process of the cell is not in its group %s", filepath.Join(place, name(cell)))
			}
		}
	}
	return nil
}
