package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"notebox/environments/supervisor/wire"
)

// TestLook looks at a process without walls: this one. Each look tells what it misses.
func TestLook(t *testing.T) {
	self, err := os.FindProcess(os.Getpid())
	require.NoError(t, err)
	r, w, err := os.Pipe() // a descriptor that the zygote, which is this process too, has
	require.NoError(t, err)
	defer r.Close()
	defer w.Close()
	newLookout := func() *lookout {
		s := &supervisor{zygote: &zygote{process: &exec.Cmd{Process: self}}, setup: wire.Setup{FirstUser: 70000, Users: 2048, Masked: []string{"/proc/cmdline"}}}
		return &lookout{s: s, c: newCellOf(s)}
	}
	for _, c := range []struct {
		desc string
		look func(*lookout)
		want []wire.Wall
	}{
		{"namespaces", func(l *lookout) { l.namespaces(os.Getpid()) }, []wire.Wall{wire.WallUser, wire.WallNamespaces}},
		{"rights", func(l *lookout) { require.False(t, l.rights(os.Getpid())) }, []wire.Wall{wire.WallUser, wire.WallPrivileges, wire.WallSeccomp}},
		{"limits", func(l *lookout) { l.limits(os.Getpid()) }, []wire.Wall{wire.WallRlimits}},
		{"descriptors", func(l *lookout) { l.descriptors(os.Getpid()) }, []wire.Wall{wire.WallDescriptors}},
		{"mounts", func(l *lookout) { l.mounts(os.Getpid()) }, []wire.Wall{wire.WallFiles, wire.WallTmpfs, wire.WallProc, wire.WallGroups}},
	} {
		t.Run(c.desc, func(t *testing.T) {
			l := newLookout()
			c.look(l)
			have := map[wire.Wall]bool{}
			for _, m := range l.missing {
				have[m.Wall] = true
			}
			for _, wall := range c.want {
				require.True(t, have[wall], "%s in %v", wall, l.missing)
			}
			require.Len(t, have, len(c.want), "%v", l.missing)
		})
	}
}

// newCellOf returns a cell that was never begun.
func newCellOf(s *supervisor) *cell {
	return &cell{s: s, number: 1, open: wire.Open{Mounts: map[string]string{"/mnt/data": "size=1,nr_inodes=1"}}}
}

// TestHold: a limit that is not what was asked for is told.
func TestHold(t *testing.T) {
	open := wire.Open{Memory: 8193, CPUs: 0.5, Pids: 20} // memory is counted in pages
	divided := map[string]string{
		"memory/memory.limit_in_bytes": "8192\n", "memory/memory.memsw.limit_in_bytes": "8192\n", "memory/memory.swappiness": "0\n",
		"cpu/cpu.cfs_period_us": "100000\n", "cpu/cpu.cfs_quota_us": "50000\n", "pids/pids.max": "20\n",
		"memory/cgroup.procs": "1\n42\n", "cpu/cgroup.procs": "1\n42\n", "cpuacct/cgroup.procs": "1\n42\n", "pids/cgroup.procs": "1\n42\n",
	}
	unified := map[string]string{
		"/memory.max": "8192\n", "/memory.swap.max": "0\n", "/cpu.max": "50000 100000\n", "/pids.max": "20\n", "/cgroup.procs": "1\n42\n",
	}
	for _, c := range []struct {
		desc          string
		all           map[string]string
		file, content string // one that is another, or not there
		want          string
	}{
		{"v1, all are in force", divided, "", "", ""},
		{"v1, swap is not counted", divided, "memory/memory.memsw.limit_in_bytes", "", ""},
		{"v1, memory", divided, "memory/memory.limit_in_bytes", "9223372036854771712", "memory.limit_in_bytes"},
		{"v1, swap", divided, "memory/memory.memsw.limit_in_bytes", "9000", "memsw"},
		{"v1, cores", divided, "cpu/cpu.cfs_quota_us", "-1", "cfs_quota"},
		{"v1, processes", divided, "pids/pids.max", "max", "pids.max"},
		{"v1, no limit of processes", divided, "pids/pids.max", "", "pids.max"},
		{"v1, a process that got out", divided, "pids/cgroup.procs", "1\n", "group pids"},
		{"v2, all are in force", unified, "", "", ""},
		{"v2, swap is not counted", unified, "/memory.swap.max", "", ""},
		{"v2, memory", unified, "/memory.max", "max", "memory.max"},
		{"v2, swap", unified, "/memory.swap.max", "max", "memory.swap.max"},
		{"v2, cores", unified, "/cpu.max", "max 100000", "cpu.max"},
		{"v2, processes", unified, "/pids.max", "max", "pids.max"},
		{"v2, a process that got out", unified, "/cgroup.procs", "42\n", "group cell-1"},
	} {
		t.Run(c.desc, func(t *testing.T) {
			g := groupsOf(t, c.all)
			if place, file, ok := strings.Cut(c.file, "/"); ok {
				require.NoError(t, os.Remove(g.path(place, name(1), file)))
				if c.content != "" {
					require.NoError(t, os.WriteFile(g.path(place, name(1), file), []byte(c.content), 0o600))
				}
			}
			err := g.hold(1, []int{1, 42}, open)
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.want)
		})
	}
}

// groupsOf are those of cell 1, with these files: "controller/file", or on version 2 "/file".
func groupsOf(t *testing.T, files map[string]string) *groups {
	folder, g := t.TempDir(), &groups{own: map[string]string{}}
	for path, content := range files {
		place, file, _ := strings.Cut(path, "/")
		g.unified = place == ""
		g.own[place] = filepath.Join(folder, place)
		require.NoError(t, os.MkdirAll(g.path(place, name(1)), 0o700))
		require.NoError(t, os.WriteFile(g.path(place, name(1), file), []byte(content), 0o600))
	}
	return g
}

// TestChargedOfBoth: metrics read the same of either version.
func TestChargedOfBoth(t *testing.T) {
	for desc, files := range map[string]map[string]string{
		"v1": {"memory/memory.usage_in_bytes": "4096\n", "memory/cgroup.procs": "7\n8\n"},
		"v2": {"/memory.current": "4096\n", "/cgroup.procs": "7\n8\n"},
	} {
		g := groupsOf(t, files)
		require.Equal(t, int64(4096), g.charged(1), desc)
		require.Equal(t, []int{7, 8}, g.processes(1), desc)
	}
}
