package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"strconv"
	"strings"
)

// Memory is what waiting sandboxes take of the host, in bytes: the mean of one.
type Memory struct {
	Sandboxes int     `json:"sandboxes"`
	Processes float64 `json:"processes"` // of one

	// Resident counts what processes share once for each (Rss), Proportional in
	// shares (Pss): see proc_pid_smaps(5). Their sums are not comparable with
	// Control, which also counts the sandbox's file system in memory.
	Resident     int64 `json:"resident_bytes"`
	Proportional int64 `json:"proportional_bytes"`
	Control      int64 `json:"cgroup_bytes,omitempty"` // 0: its cgroup is not visible here

	// Of the process outside the container that looks after it, containerd's shim.
	ShimResident     int64 `json:"shim_resident_bytes"`
	ShimProportional int64 `json:"shim_proportional_bytes"`

	Problem string `json:"problem,omitempty"` // why it could not be read
}

// readMemory reads that of the containers. It needs to be root, or the owner of
// their processes; if it may not read, Problem says so and there is no error.
func readMemory(ctx context.Context, ids []string) (*Memory, error) {
	sum := Memory{Sandboxes: len(ids)}
	for _, id := range ids {
		err := sum.add(ctx, id)
		if errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist) {
			return &Memory{Sandboxes: len(ids), Problem: "the sandboxes' processes cannot be read here: " + err.Error()}, nil
		}
		if err != nil {
			return nil, fmt.Errorf("memory of container %.12s: %w", id, err)
		}
	}
	if n := int64(len(ids)); n > 0 {
		sum.Processes = round(sum.Processes/float64(n), 1)
		for _, bytes := range []*int64{&sum.Resident, &sum.Proportional, &sum.Control, &sum.ShimResident, &sum.ShimProportional} {
			*bytes /= n
		}
	}
	return &sum, nil
}

func (m *Memory) add(ctx context.Context, id string) error {
	pids, err := processesOf(ctx, id)
	if err != nil {
		return err
	}
	for _, pid := range pids {
		resident, proportional, err := memoryOf(pid)
		if err != nil {
			return err
		}
		m.Processes++
		m.Resident += resident
		m.Proportional += proportional
	}
	if bytes, err := controlled(pids[0]); err == nil {
		m.Control += bytes
	}
	shim, err := parentOf(pids[0])
	if err != nil {
		return err
	}
	resident, proportional, err := memoryOf(shim)
	m.ShimResident += resident
	m.ShimProportional += proportional
	return err
}

// processesOf returns the process ids of a container as this host counts them,
// the one that it began with first.
func processesOf(ctx context.Context, id string) ([]int, error) {
	out, err := exec.CommandContext(ctx, "docker", "inspect", "--format", "{{.State.Pid}}", id).Output()
	if err != nil {
		return nil, fmt.Errorf("docker inspect: %w", err)
	}
	first, err := strconv.Atoi(strings.TrimSpace(string(out)))
	if err != nil || first == 0 {
		return nil, fmt.Errorf("docker inspect: the container has no process: %q", out)
	}
	if out, err = exec.CommandContext(ctx, "docker", "top", id, "-eo", "pid").Output(); err != nil {
		return nil, fmt.Errorf("docker top: %w", err)
	}
	pids := []int{first}
	for _, word := range strings.Fields(string(out)) {
		if pid, err := strconv.Atoi(word); err == nil && pid != first { // not the heading
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

func memoryOf(pid int) (resident, proportional int64, err error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return 0, 0, err
	}
	return parseSmaps(string(raw))
}

// parseSmaps reads the sums of smaps_rollup, see proc_pid_smaps(5). They are bytes.
func parseSmaps(rollup string) (resident, proportional int64, err error) {
	found := map[string]int64{}
	for line := range strings.Lines(rollup) {
		fields := strings.Fields(line)
		if len(fields) != 3 || fields[2] != "kB" {
			continue
		}
		kilobytes, err := strconv.ParseInt(fields[1], 10, 64)
		if err != nil {
			return 0, 0, fmt.Errorf("smaps_rollup: %w", err)
		}
		found[fields[0]] = kilobytes << 10
	}
	if found["Rss:"] == 0 || found["Pss:"] == 0 {
		return 0, 0, fmt.Errorf("smaps_rollup: no Rss and Pss in it")
	}
	return found["Rss:"], found["Pss:"], nil
}

func parentOf(pid int) (int, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(raw)) {
		if text, ok := strings.CutPrefix(line, "PPid:"); ok {
			return strconv.Atoi(strings.TrimSpace(text))
		}
	}
	return 0, fmt.Errorf("/proc/%d/status has no PPid", pid)
}

// controlled is what the control group of a process is charged with.
func controlled(pid int) (int64, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		return 0, err
	}
	file, err := memoryFile(string(raw))
	if err != nil {
		return 0, err
	}
	if raw, err = os.ReadFile(file); err != nil {
		return 0, err
	}
	return strconv.ParseInt(strings.TrimSpace(string(raw)), 10, 64)
}

// memoryFile finds the file with the memory in use, from /proc/<pid>/cgroup: see
// cgroups(7). Where version 1 has the memory, version 2 has it not.
func memoryFile(cgroup string) (string, error) {
	unified := ""
	for lines := bufio.NewScanner(strings.NewReader(cgroup)); lines.Scan(); {
		parts := strings.SplitN(lines.Text(), ":", 3)
		if len(parts) != 3 {
			continue
		}
		switch parts[1] {
		case "memory":
			return path.Join("/sys/fs/cgroup/memory", parts[2], "memory.usage_in_bytes"), nil
		case "":
			unified = path.Join("/sys/fs/cgroup", parts[2], "memory.current")
		}
	}
	if unified == "" {
		return "", fmt.Errorf("no control group of memory in %q", cgroup)
	}
	return unified, nil
}
