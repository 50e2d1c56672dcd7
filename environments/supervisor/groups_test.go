package main

import (
	"bytes"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"notebox/environments/supervisor/wire"
)

// TestWithoutAccountingOfSwap: a host that has none has no such file, and its cells have no such
// limit.
func TestWithoutAccountingOfSwap(t *testing.T) {
	folder := t.TempDir()
	g := &groups{own: map[string]string{}}
	for controller, files := range map[string][]string{
		"memory":  {"memory.limit_in_bytes", "memory.swappiness"},
		"cpu":     {"cpu.cfs_period_us", "cpu.cfs_quota_us"},
		"cpuacct": nil,
		"pids":    {"pids.max"},
	} {
		g.own[controller] = filepath.Join(folder, controller)
		require.NoError(t, os.MkdirAll(g.path(controller, "cell-1"), 0o755))
		for _, file := range files {
			require.NoError(t, os.WriteFile(g.path(controller, "cell-1", file), nil, 0o644))
		}
	}
	shown, err := g.make(1, wire.Open{Memory: 1 << 20, CPUs: 0.5, Pids: 9})
	require.NoError(t, err)
	require.Equal(t, map[string]string{
		"memory/memory.limit_in_bytes": "1048576", "memory/memory.swappiness": "0", "cpu/cpu.cfs_period_us": "100000",
		"cpu/cpu.cfs_quota_us": "50000", "pids/pids.max": "9",
	}, shown, "what code sees is what is in force")
	limit, err := os.ReadFile(g.path("memory", "cell-1", "memory.limit_in_bytes"))
	require.NoError(t, err)
	require.Equal(t, "1048576", string(limit))
	require.NoFileExists(t, filepath.Join(g.path("memory", "cell-1"), "memory.memsw.limit_in_bytes"))
	_, err = g.make(2, wire.Open{})
	require.Error(t, err, "a limit that any host has is not there")
}

// TestABusyGroup: the service hears that a cell is gone when its groups are, however late the kernel
// lets go of them.
func TestABusyGroup(t *testing.T) {
	var out bytes.Buffer
	s := newSupervisor(t, &out, 1)
	var free atomic.Bool
	asked := 0
	s.zygote = &zygote{cells: map[uint32]*cell{}}
	s.groups = &groups{own: map[string]string{"memory": t.TempDir()}, rmdir: func(string) error {
		asked++
		if !free.Load() {
			return unix.EBUSY
		}
		return nil
	}}
	c := s.cells[1]
	c.kill()
	done := make(chan struct{})
	go func() { c.run(); close(done) }()
	select {
	case <-done:
		require.Fail(t, "it is gone while its group is there")
	case <-time.After(3 * removeTries * removePause): // each pause is a little longer
	}
	free.Store(true)
	<-done
	require.Greater(t, asked, removeTries+1)
	have := heard(t, out.Bytes())
	require.Len(t, have, 1)
	require.Equal(t, wire.KindGone, have[0].Kind)
	gone, err := wire.Decode[wire.Gone](have[0])
	require.NoError(t, err)
	require.Empty(t, gone.Error)
}
