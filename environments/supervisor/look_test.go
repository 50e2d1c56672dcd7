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
		{"mounts", func(l *lookout) { l.mounts(os.Getpid()) }, []wire.Wall{wire.WallFiles, wire.WallTmpfs, wire.WallProc}},
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
	for _, c := range []struct {
		desc  string
		files map[string]string
		open  wire.Open
		want  string
	}{
		{"all are in force", nil, wire.Open{Memory: 8192, CPUs: 0.5, Pids: 20}, ""},
		{"memory is counted in pages", nil, wire.Open{Memory: 8193, CPUs: 0.5, Pids: 20}, ""},
		{"memory", map[string]string{"memory/memory.limit_in_bytes": "9223372036854771712"}, wire.Open{Memory: 8192, CPUs: 0.5, Pids: 20}, "memory.limit_in_bytes"},
		{"swap", map[string]string{"memory/memory.memsw.limit_in_bytes": "9000"}, wire.Open{Memory: 8192, CPUs: 0.5, Pids: 20}, "memsw"},
		{"cores", map[string]string{"cpu/cpu.cfs_quota_us": "-1"}, wire.Open{Memory: 8192, CPUs: 0.5, Pids: 20}, "cfs_quota"},
		{"processes", map[string]string{"pids/pids.max": "max"}, wire.Open{Memory: 8192, CPUs: 0.5, Pids: 20}, "pids.max"},
		{"a process that got out", map[string]string{"pids/cgroup.procs": "1\n"}, wire.Open{Memory: 8192, CPUs: 0.5, Pids: 20}, "group of pids"},
	} {
		t.Run(c.desc, func(t *testing.T) {
			folder, g := t.TempDir(), &groups{own: map[string]string{}}
			files := map[string]string{
				"memory/memory.limit_in_bytes": "8192", "memory/memory.memsw.limit_in_bytes": "8192",
				"cpu/cpu.cfs_quota_us": "50000", "pids/pids.max": "20",
			}
			for _, controller := range wire.Controllers {
				g.own[controller] = filepath.Join(folder, controller)
				require.NoError(t, os.MkdirAll(g.path(controller, name(1)), 0o700))
				files[controller+"/cgroup.procs"] = "1\n42\n"
			}
			for file, content := range c.files {
				files[file] = content
			}
			for file, content := range files {
				controller, rest, _ := strings.Cut(file, "/")
				require.NoError(t, os.WriteFile(g.path(controller, name(1), rest), []byte(content), 0o600))
			}
			err := g.hold(1, []int{1, 42}, c.open)
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.want)
		})
	}
}
