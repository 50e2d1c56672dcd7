package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"

	"notebox/runner"
	"notebox/runner/docker"
)

// Daemon is what is asked of a Docker daemon.
type Daemon interface {
	About(ctx context.Context) (docker.About, error)
	CanGive(ctx context.Context, l runner.Limits) error
	Ready(ctx context.Context, env runner.Environment) error
}

// Names of checks that others come after, or that callers look for.
const (
	NameSettings  = "settings"
	NameEngine    = "engine"
	NameIsolation = "isolation"
)

// NoDaemon is the Daemon of settings by which none can be asked. Why says what is wrong with
// them.
type NoDaemon struct{ Why error }

// About implements Daemon.
func (n NoDaemon) About(context.Context) (docker.About, error) { return docker.About{}, n.Why }

// CanGive implements Daemon.
func (n NoDaemon) CanGive(context.Context, runner.Limits) error { return n.Why }

// Ready implements Daemon.
func (n NoDaemon) Ready(context.Context, runner.Environment) error { return n.Why }

// Engine are the checks of the daemon and of what its host can give.
func Engine(d Daemon, limits runner.Limits) []Check {
	var about docker.About
	after := []string{NameEngine}
	of := func(name string, vital bool, look func() Finding) Check {
		return Check{Name: name, Vital: vital, After: after, Look: func(context.Context) Finding { return look() }}
	}
	return []Check{
		{Name: NameEngine, Vital: true, Look: func(ctx context.Context) Finding {
			a, err := d.About(ctx)
			about = a
			if err != nil {
				return unreached(a.Address, err)
			}
			return ok("Docker %s (API %s) at %s, on %s, Linux %s", a.Version, a.API, a.Address, a.System, a.Kernel)
		}},
		of("cgroups", true, func() Finding { return groups(about) }),
		of("runtime", true, func() Finding { return runtimeOf(about) }),
		of("seccomp", false, func() Finding { return seccomp(about) }),
		of("apparmor", false, func() Finding { return apparmor(about) }),
		{Name: "limits", Vital: true, After: []string{NameEngine, "runtime"}, Look: func(ctx context.Context) Finding {
			if err := d.CanGive(ctx, limits); err != nil {
				return wrong("Lower --cpus or --memory to what that host has.", "%s", words(err))
			}
			return ok("the host can give each sandbox cores: %g, memory: %s", limits.CPUs, bytesOf(limits.Memory))
		}},
	}
}

// unreached says why a daemon does not answer, as far as the error tells.
func unreached(address string, err error) Finding {
	if address == "" {
		return wrong("Correct DOCKER_HOST, DOCKER_TLS_VERIFY and DOCKER_CERT_PATH, or unset them.", "%s", words(err))
	}
	inner := err
	if e := (*runner.Error)(nil); errors.As(err, &e) && e.Err != nil {
		inner = e.Err
	}
	text := words(inner)
	switch {
	case errors.Is(inner, syscall.EACCES) || strings.Contains(text, "permission denied"):
		return wrong("Add yourself to the group docker (sudo usermod -aG docker $USER) and log in again, or run notebox as a user who may.", "this user may not speak to the Docker daemon at %s", address)
	case errors.Is(err, context.DeadlineExceeded):
		return wrong("Restart it: sudo systemctl restart docker.", "the Docker daemon at %s does not answer in time", address)
	}
	return wrong("Start it (sudo systemctl start docker), install Docker Engine if there is none, or name another daemon by DOCKER_HOST.", "no Docker daemon answers at %s: %s", address, text)
}

func groups(a docker.About) Finding {
	switch {
	case !a.MemoryLimit || !a.PidsLimit || a.CgroupDriver == "none":
		return wrong("Give the daemon the controllers memory, cpu and pids: on Debian boot with cgroup_enable=memory; rootless Docker needs cgroup v2 with systemd.", "the daemon cannot limit the memory and the processes of a sandbox")
	case a.CgroupVersion == "1":
		return warning("Boot the host with cgroup v2: systemd.unified_cgroup_hierarchy=1.", "cgroup v1, driver %s: what a sandbox's sockets hold is outside its limit of memory", a.CgroupDriver)
	}
	return ok("cgroup v%s, driver %s", a.CgroupVersion, a.CgroupDriver)
}

func runtimeOf(a docker.About) Finding {
	// A name with a dot or a path is a containerd shim's, which no daemon lists.
	if !strings.ContainsAny(a.Runtime, "./") && !slices.Contains(a.Runtimes, a.Runtime) {
		return wrong("Set --sandbox-runtime to one of these, or add it to the daemon's daemon.json.", "the daemon has no runtime %q; it has %s", a.Runtime, strings.Join(a.Runtimes, ", "))
	}
	return ok("sandboxes start with %s", a.Runtime)
}

func seccomp(a docker.About) Finding {
	if !a.Seccomp {
		return warning("Use a kernel with CONFIG_SECCOMP_FILTER, and a daemon that was built with seccomp.", "the daemon does not filter system calls: code in a sandbox reaches all of the kernel")
	}
	return ok("the daemon filters system calls; notebox brings a profile of its own")
}

func apparmor(a docker.About) Finding {
	switch {
	case a.Rootless:
		return ok("the daemon is rootless, so cells are not possible and AppArmor adds little")
	case a.AppArmor:
		return ok("there is AppArmor: containers have Docker's profile; workers of cells have none, as it forbids the mounts that walls are made of")
	}
	return ok("this host has no AppArmor; no wall of notebox's needs it")
}

// bytesOf is a size as people read it.
func bytesOf(n int64) string {
	switch {
	case n >= 10<<30:
		return fmt.Sprintf("%d GiB", n>>30)
	case n >= 1<<30:
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	}
	return fmt.Sprintf("%d MiB", n>>20)
}
