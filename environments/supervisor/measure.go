package main

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"notebox/environments/supervisor/wire"
)

// ownMemory are the files, by version of the control groups, that say what is charged to the
// worker's container.
var ownMemory = []string{"/sys/fs/cgroup/memory/memory.usage_in_bytes", "/sys/fs/cgroup/memory.current"}

// measure looks at the memory of this worker and of its cells.
func (s *supervisor) measure() wire.Measured {
	s.mu.Lock()
	cells, zygote, groups := slices.Collect(maps.Keys(s.cells)), s.zygote, s.groups
	s.mu.Unlock()
	out := wire.Measured{Cells: len(cells)}
	for _, file := range ownMemory {
		out.WorkerCharged += number(file)
	}
	if zygote == nil {
		return out
	}
	out.WorkerPSS = zygote.pss(append(zygote.withBuilder(), os.Getpid()))
	for _, cell := range cells { // in no order
		out.CellsCharged += groups.charged(cell)
		if out.Sampled >= wire.MaxSampled {
			continue
		}
		if pss := zygote.pss(groups.processes(cell)); pss > 0 {
			out.Sampled++
			out.SampledPSS += pss
		}
	}
	return out
}

// pss is the memory of processes, in which a page that n have counts as a n-th for each.
func (z *zygote) pss(pids []int) (sum int64) {
	_ = z.owner.do(func() error { // who may look into what is in the namespace
		for _, pid := range pids {
			raw, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "smaps_rollup"))
			if _, after, ok := bytes.Cut(raw, []byte("\nPss:")); ok {
				kib, _, _ := bytes.Cut(bytes.TrimLeft(after, " "), []byte(" "))
				n, _ := strconv.ParseInt(string(kib), 10, 64)
				sum += n << 10
			}
		}
		return nil
	})
	return sum
}

// charged is the memory that is charged to a cell.
func (g *groups) charged(cell uint32) int64 {
	return number(g.find(cell, "memory", "memory.usage_in_bytes"))
}

// processes are those in a cell's groups.
func (g *groups) processes(cell uint32) (pids []int) {
	raw, _ := os.ReadFile(g.find(cell, wire.Controllers[0], "cgroup.procs"))
	for field := range bytes.FieldsSeq(raw) {
		if pid, err := strconv.Atoi(string(field)); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// find returns the path of a file of a cell's group, which has one of two names.
func (g *groups) find(cell uint32, controller, file string) string {
	path := g.path(controller, name(cell), file)
	if _, err := os.Stat(path); err != nil {
		return g.path(controller, keptName(cell), file)
	}
	return path
}

// number reads a file that holds one; 0 if it does not.
func number(file string) int64 {
	raw, _ := os.ReadFile(file)
	n, _ := strconv.ParseInt(string(bytes.TrimSpace(raw)), 10, 64)
	return n
}
