package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
)

// Machine is what a reader of the figures needs to know.
type Machine struct {
	CPU            string `json:"cpu"`
	Cores          int    `json:"cores"`
	MemoryBytes    int64  `json:"memory_bytes"`
	Architecture   string `json:"architecture"`
	Kernel         string `json:"kernel"`
	System         string `json:"system"`
	Docker         string `json:"docker"`
	DockerClient   string `json:"docker_client"`
	StorageDriver  string `json:"storage_driver"`
	Runtime        string `json:"runtime"`
	CgroupVersion  string `json:"cgroup_version"`
	Image          string `json:"image"`
	ImageID        string `json:"image_id"`
	Commit         string `json:"commit"`          // of the checkout; "" without git
	CommitModified bool   `json:"commit_modified"` // there were changes on top of it
	Go             string `json:"go"`              // of the client
}

// dockerInfo is what is used of `docker info`.
type dockerInfo struct {
	ServerVersion   string
	Driver          string
	DefaultRuntime  string
	CgroupVersion   string
	OperatingSystem string
	KernelVersion   string
	Architecture    string
	NCPU            int
	MemTotal        int64
	ServerErrors    []string
	ClientInfo      struct{ Version string }
}

func describeMachine(ctx context.Context, image string) (Machine, error) {
	out, err := exec.CommandContext(ctx, "docker", "info", "--format", "{{json .}}").Output()
	if err != nil {
		return Machine{}, fmt.Errorf("docker info: %w", err)
	}
	var info dockerInfo
	if err := json.Unmarshal(out, &info); err != nil {
		return Machine{}, fmt.Errorf("docker info: %w", err)
	}
	if len(info.ServerErrors) > 0 {
		return Machine{}, fmt.Errorf("docker info: %s", info.ServerErrors)
	}
	id, err := exec.CommandContext(ctx, "docker", "image", "inspect", "--format", "{{.Id}}", image).Output()
	if err != nil {
		return Machine{}, fmt.Errorf("the image %s is missing: `make image` builds it: %w", image, err)
	}
	cpuinfo, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return Machine{}, fmt.Errorf("the benchmark needs Linux, and a Docker daemon on the same machine: %w", err)
	}
	m := Machine{
		CPU: cpuModel(string(cpuinfo)), Cores: info.NCPU, MemoryBytes: info.MemTotal, Architecture: info.Architecture,
		Kernel: info.KernelVersion, System: info.OperatingSystem,
		Docker: info.ServerVersion, DockerClient: info.ClientInfo.Version,
		StorageDriver: info.Driver, Runtime: info.DefaultRuntime, CgroupVersion: info.CgroupVersion,
		Image: image, ImageID: strings.TrimSpace(string(id)),
		Go: runtime.Version(),
	}
	m.Commit, m.CommitModified = commit(ctx)
	return m, nil
}

// cpuModel reads /proc/cpuinfo, whose names differ between architectures.
func cpuModel(cpuinfo string) string {
	for line := range strings.Lines(cpuinfo) {
		name, value, _ := strings.Cut(line, ":")
		switch strings.TrimSpace(name) {
		case "model name", "Model":
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}

func commit(ctx context.Context) (hash string, modified bool) {
	out, err := exec.CommandContext(ctx, "git", "rev-parse", "HEAD").Output()
	if err != nil {
		return "", false
	}
	changes, err := exec.CommandContext(ctx, "git", "status", "--porcelain", "--untracked-files=no").Output()
	return strings.TrimSpace(string(out)), err != nil || len(changes) > 0
}
