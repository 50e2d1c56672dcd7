package docker

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"
)

// About is what a daemon says of itself and its host.
type About struct {
	Address                string    // that it was asked at: unix:///var/run/docker.sock
	Version, API           string    // of the daemon, and of what it is spoken to by
	System, Kernel         string    // "Debian GNU/Linux 12 (bookworm)", "6.1.0"
	Clock                  time.Time // the daemon's; zero if it does not say
	Behind                 time.Duration
	CgroupVersion          string // "1" or "2"
	CgroupDriver           string // "cgroupfs", "systemd" or "none"
	Runtime                string // that it starts containers with if it is told no other
	Runtimes               []string
	Seccomp, AppArmor      bool
	Rootless, RemapsUsers  bool
	Folder                 string // of its images, on its host
	MemoryLimit, PidsLimit bool   // whether it can give them
}

// About asks the daemon. Behind is by how much its clock is behind this process's, and has
// the length of the call as its error; below zero the clock is ahead.
func (e *Engine) About(ctx context.Context) (About, error) {
	before := time.Now()
	info, err := e.info(ctx)
	if err != nil {
		return About{Address: e.api.DaemonHost()}, err
	}
	middle := before.Add(time.Since(before) / 2)
	a := About{
		Address: e.api.DaemonHost(), Version: info.ServerVersion, API: e.api.ClientVersion(),
		System: info.OperatingSystem, Kernel: info.KernelVersion,
		CgroupVersion: info.CgroupVersion, CgroupDriver: info.CgroupDriver,
		Runtime: info.DefaultRuntime, Runtimes: slices.Sorted(maps.Keys(info.Runtimes)),
		Folder: info.DockerRootDir, MemoryLimit: info.MemoryLimit, PidsLimit: info.PidsLimit,
	}
	if e.options.Runtime != "" {
		a.Runtime = e.options.Runtime
	}
	if at, err := time.Parse(time.RFC3339Nano, info.SystemTime); err == nil {
		a.Clock, a.Behind = at, middle.Sub(at)
	}
	has := func(name string) bool {
		return slices.ContainsFunc(info.SecurityOptions, func(option string) bool {
			return option == "name="+name || strings.HasPrefix(option, "name="+name+",")
		})
	}
	a.Seccomp, a.AppArmor, a.Rootless, a.RemapsUsers = has("seccomp"), has("apparmor"), has("rootless"), has("userns")
	return a, nil
}
