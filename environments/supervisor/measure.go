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

// measure looks at the memory of this worker and of its cells.
func (s *supervisor) measure() wire.Measured {
	s.mu.Lock()
	cells, zygote, groups := slices.Collect(maps.Keys(s.cells)), s.zygote, s.groups
	s.mu.Unlock()
	out := wire.Measured{Cells: len(cells)}
	if zygote == nil {
		return out
	}
	out.WorkerCharged = groups.chargedToWorker()
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

// The files that say how much memory is charged to a group, on version 1 and on version 2.
const charged1, charged2 = "memory.usage_in_bytes", "memory.current"

// chargedToWorker is the memory that is charged to supervisor and zygote: on version 1 as a rule to
// their container, which sees its own group there.
func (g *groups) chargedToWorker() int64 {
	switch {
	case g.unified:
		return number(g.path("", leaf, charged2))
	case g.leaf != "":
		return number(g.path("memory", g.leaf, charged1))
	}
	return number(filepath.Join("/sys/fs/cgroup/memory", charged1))
}

// charged is the memory that is charged to a cell.
func (g *groups) charged(cell uint32) int64 {
	if g.unified {
		return number(g.find(cell, "", charged2))
	}
	return number(g.find(cell, "memory", charged1))
}

// processes are those in a cell's groups.
func (g *groups) processes(cell uint32) (pids []int) {
	raw, _ := os.ReadFile(g.find(cell, g.place(wire.Controllers[0]), "cgroup.procs"))
	for field := range bytes.FieldsSeq(raw) {
		if pid, err := strconv.Atoi(string(field)); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// find returns the path of a file of a cell's group, which has one of two names.
func (g *groups) find(cell uint32, place, file string) string {
	path := g.path(place, name(cell), file)
	if _, err := os.Stat(path); err != nil {
		return g.path(place, keptName(cell), file)
	}
	return path
}

// number reads a file that holds one; 0 if it does not.
func number(file string) int64 {
	raw, _ := os.ReadFile(file)
	n, _ := strconv.ParseInt(string(bytes.TrimSpace(raw)), 10, 64)
	return n
}
