package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	crowdCells    = 100 // that wait at one time
	crowdRequests = 200 // at one time
)

// CellsReport is what many cells take, and many requests at one time.
type CellsReport struct {
	// FirstAnswer is from the start of the program to the reply to a print, the image present.
	FirstAnswer float64 `json:"first_answer_ms"`
	Cells       int     `json:"cells"`
	// Ready is from the first cell that waits to the last.
	Ready float64 `json:"ready_ms"`
	// CellProportional is one waiting cell's PSS. Worker and Service are without cells.
	CellProportional    int64 `json:"cell_pss_bytes"`
	WorkerProportional  int64 `json:"worker_pss_bytes"`
	ServiceProportional int64 `json:"service_pss_bytes"`
	// Answered of Requests that were sent at one time, the last one after LastAnswer.
	Requests   int     `json:"requests"`
	Answered   int     `json:"answered"`
	LastAnswer float64 `json:"last_answer_ms"`
}

// measureCells fills in the report's cells, but for the requests.
func (b *bench) measureCells(ctx context.Context) error {
	r := &CellsReport{}
	begun := time.Now()
	s, err := launchService(ctx, b.options, b.folder, "first", b.poolSize, inCells...)
	if err != nil {
		return err
	}
	if err := s.answerOne(ctx, b.cases[0]); err != nil {
		return errors.Join(err, s.stop())
	}
	r.FirstAnswer = milliseconds(time.Since(begun))
	// An idle worker and its service, before the crowd.
	if err := s.awaitIdle(ctx); err != nil {
		return errors.Join(err, s.stop())
	}
	_, r.WorkerProportional, err = s.cellMemory(ctx)
	if err == nil {
		_, r.ServiceProportional, err = memoryOf(s.PID())
	}
	if err = errors.Join(err, s.stop()); err != nil {
		return err
	}
	if s, err = launchService(ctx, b.options, b.folder, "crowd", crowdCells, append([]string{"--max-sandboxes", strconv.Itoa(2 * crowdCells)}, inCells...)...); err != nil {
		return err
	}
	err = s.fill(ctx, r)
	b.report.Cells = r
	return errors.Join(err, s.stop())
}

// answerOne sends a run until it is answered.
func (s *service) answerOne(ctx context.Context, c benchCase) error {
	caller, err := newCaller(s.URL, c, "")
	if err != nil {
		return err
	}
	defer caller.close()
	_, err = caller.once(ctx)
	return err
}

// fill waits for a pool of cells to be full.
func (s *service) fill(ctx context.Context, r *CellsReport) error {
	var first time.Time
	for deadline := time.Now().Add(idleTimeout); ; {
		p, err := s.pool(ctx)
		if err == nil && p.Warm > 0 && first.IsZero() {
			first = time.Now()
		}
		if err == nil && p.Warm >= s.size {
			break
		}
		if time.Now().After(deadline) {
			return errors.Join(fmt.Errorf("%d cells do not wait after %s: %+v", s.size, idleTimeout, p), err)
		}
		if err := sleep(ctx, idlePoll); err != nil {
			return err
		}
	}
	r.Cells, r.Ready = s.size, milliseconds(time.Since(first))
	var err error
	r.CellProportional, _, err = s.cellMemory(ctx)
	log.Printf("%d cells: ready in %.0f ms, %s each", r.Cells, r.Ready, megabytes(r.CellProportional))
	return err
}

// cellMemory is the PSS of one cell, and of the workers without their cells, in bytes.
func (s *service) cellMemory(ctx context.Context) (cell, worker int64, err error) {
	ids, err := s.containers(ctx)
	if err != nil {
		return 0, 0, err
	}
	var pids []int
	for _, id := range ids {
		own, err := processesOf(ctx, id)
		if err != nil {
			return 0, 0, err
		}
		pids = append(pids, own[0])
	}
	children, err := childrenOf()
	if err != nil {
		return 0, 0, err
	}
	groups := map[string]bool{}
	for len(pids) > 0 {
		pid := pids[0]
		pids = append(pids[1:], children[pid]...)
		group, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
		var proportional int64
		if err == nil {
			_, proportional, err = memoryOf(pid)
		}
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue // it has ended meanwhile
		}
		if err != nil {
			return 0, 0, err
		}
		if name := cellGroup(string(group)); name != "" {
			groups[name] = true
			cell += proportional
		} else {
			worker += proportional
		}
	}
	if len(groups) > 0 {
		cell /= int64(len(groups))
	}
	return cell, worker, nil
}

// cellGroup is the control group of a cell's process, "" if it is none of a cell.
func cellGroup(cgroup string) string {
	for line := range strings.Lines(cgroup) {
		if name := filepath.Base(strings.TrimSpace(line)); strings.HasPrefix(name, "cell-") {
			return name
		}
	}
	return ""
}

// childrenOf are the processes of this host by their parents, see proc_pid_stat(5).
func childrenOf() (map[int][]int, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	children := map[int][]int{}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		raw, err := os.ReadFile(filepath.Join("/proc", e.Name(), "stat"))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		fields := bytes.Fields(raw[bytes.LastIndexByte(raw, ')')+1:])
		if len(fields) > 1 {
			parent, err := strconv.Atoi(string(fields[1]))
			if err != nil {
				return nil, fmt.Errorf("/proc/%d/stat: %w", pid, err)
			}
			children[parent] = append(children[parent], pid)
		}
	}
	return children, nil
}

// measureCrowd sends many requests at one time.
func (b *bench) measureCrowd(ctx context.Context) error {
	if err := b.awaitIdle(ctx); err != nil {
		return err
	}
	hits, err := b.callers[wayCell][b.cases[0].name].hits(ctx, crowdRequests, someHits(crowdRequests), 0)
	if err != nil {
		return err
	}
	answered := slices.DeleteFunc(hits, func(h hit) bool { return h.refused })
	r := b.report.Cells
	r.Requests, r.Answered = crowdRequests, len(answered)
	for _, h := range answered {
		r.LastAnswer = max(r.LastAnswer, milliseconds(h.latency))
	}
	return b.dropStored()
}

// targets are what is promised of cells: absolute figures are for a machine on which
// docker run takes two seconds for a print, and scaled to this one.
func (r *Report) cellTargets() (out []Target) {
	const usualSeed = 2000 // ms
	first := r.caseNamed("print")
	if r.Cells == nil || first == nil || first.Latency[waySeed].P50 == 0 {
		return nil
	}
	scale := first.Latency[waySeed].P50 / usualSeed
	atMost := func(what string, want, got float64) {
		if got > 0 {
			out = append(out, Target{what + ", at most", round(want, 4), got, got <= want})
		}
	}
	atLeast := func(what string, want, got float64) {
		out = append(out, Target{what + ", at least", round(want, 4), got, got >= want})
	}
	for _, t := range []struct {
		name               string
		perSecond, better  float64
		cpu, one, p50, p99 float64
	}{
		{name: "print", perSecond: 40, better: 10, cpu: 0.05, one: 30, p50: 15, p99: 30},
		{name: "plot", perSecond: 8, better: 5, p50: 100},
	} {
		c := r.caseNamed(t.name)
		if c == nil {
			continue
		}
		of := func(what string) string { return c.Title + " in cells: " + what }
		for i, l := range c.Sustained[wayCell] {
			if l.Callers == 1 {
				if t.one > 0 {
					atMost(of("one caller, p50 in ms"), t.one*scale, l.P50)
				}
				continue
			}
			callers := fmt.Sprintf(", %d callers", l.Callers)
			atLeast(of("runs a second"+callers), t.perSecond/scale, l.PerSecond)
			atLeast(of("times those of containers"+callers), t.better, ratio(l.PerSecond, c.Sustained[wayWarm][i].PerSecond))
			if t.cpu > 0 {
				atMost(of("CPU-seconds a run"+callers), t.cpu*scale, l.CPUPerRun)
			}
		}
		l := c.Latency[wayCell]
		atMost(of("idle, p50 in ms"), t.p50*scale, l.P50)
		if t.p99 > 0 {
			atMost(of("idle, p99 in ms"), t.p99*scale, l.P99)
		}
		atLeast(of("idle, times faster than docker run at p50"), 100, c.FasterP50[wayCell])
	}
	atMost("the last of 200 requests at one time, ms", 8000*scale, r.Cells.LastAnswer)
	atLeast("of 200 requests at one time, answered", crowdRequests, float64(r.Cells.Answered))
	atMost("100 waiting cells, ready, ms", 2000*scale, r.Cells.Ready)
	atMost("a waiting cell, MB of PSS", 12, float64(r.Cells.CellProportional)/1e6)
	atMost("the service and an idle worker, MB of PSS", 400, float64(r.Cells.WorkerProportional+r.Cells.ServiceProportional)/1e6)
	return append(out, Target{"from the program's start to the first answer, ms, at most", round(4000*scale, 4), r.Cells.FirstAnswer, r.Cells.FirstAnswer <= 4000*scale})
}
