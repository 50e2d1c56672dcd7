package docker

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"

	"notebox/runner"
)

const (
	// supervisorProgram is a worker's, in each image.
	supervisorProgram = "/opt/notebox/supervisor"
	// groupsFolder is where a worker finds its part of the host's control groups, a folder
	// for each controller.
	groupsFolder = "/run/groups"
	// workerUsers are how many ids a worker has: two for its zygote, and then two for each
	// cell. So a thousand cells begin before one has ids that another one had.
	workerUsers = 2048
	// workerMemory bounds supervisor and zygote, bytes: the zygote has all libraries in it,
	// and each cell counts by itself.
	workerMemory = 1 << 30
	// workerPids bounds processes and threads of supervisor and zygote, and cells before they
	// are in their own groups.
	workerPids = 1024
	// workerFiles is how many descriptors the supervisor may have: some for each cell.
	workerFiles = 1 << 16
)

// controllers are the folders of cgroup v1 that cells have groups of.
var controllers = []string{"memory", "cpu", "cpuacct", "pids"}

// builders are the system calls that walls are built with. A sandbox may not make them.
var builders = []string{
	"clone", "clone3", "fsconfig", "fsmount", "fsopen", "mount", "mount_setattr", "move_mount",
	"open_tree", "pivot_root", "setdomainname", "sethostname", "setns", "umount2", "unshare",
}

var _ runner.Host = (*Engine)(nil)

// StartWorker implements runner.Host.
func (e *Engine) StartWorker(ctx context.Context, env runner.Environment) (runner.Sandbox, runner.Walls, error) {
	if _, err := e.info(ctx); err != nil {
		return nil, runner.Walls{}, err
	}
	users, err := e.Users(ctx)
	if err != nil {
		return nil, runner.Walls{}, err
	}
	profile, err := workerProfile()
	if err != nil {
		return nil, runner.Walls{}, err
	}
	first := users.Last + 1 - workerUsers
	s, err := e.begin(ctx, func(ctx context.Context, name, id string) (*sandbox, error) {
		c := workerConfig(env, e.labels(id, env))
		if err := e.create(ctx, name, c, e.workerHost(profile)); err != nil {
			return nil, err
		}
		return e.run(ctx, name)
	})
	if err != nil {
		return nil, runner.Walls{}, err
	}
	return s, runner.Walls{
		FirstUser: first,
		Users:     workerUsers,
		Masked:    masked(int(e.cores.Load())),
		ReadOnly:  readOnly,
		Sysctls:   sysctls(),
		Seccomp:   seccompJSON,
		Mounts: func(l runner.Limits, user int) map[string]string {
			all := maps.Clone(folders(l, user))
			all["/dev/shm"] = fmt.Sprintf("size=%d,mode=1777", shmSize)
			for folder, options := range all {
				all[folder] = ofMount(options)
			}
			return all
		},
	}, nil
}

// ofMount leaves out of a list of options what is a flag of a mount, and not an option of the
// file system: that is the same for all.
func ofMount(options string) string {
	flags := []string{"rw", "nosuid", "nodev", "exec"}
	return strings.Join(slices.DeleteFunc(strings.Split(options, ","), func(o string) bool { return slices.Contains(flags, o) }), ",")
}

func workerConfig(env runner.Environment, labels map[string]string) *container.Config {
	c := containerConfig(env, labels)
	c.Entrypoint = []string{supervisorProgram}
	return c
}

// workerHost differs from hostConfig in what a worker needs to build walls, and in nothing
// else: it may make namespaces, see all of /proc, and write to its service's part of the
// control groups.
func (e *Engine) workerHost(profile string) *container.HostConfig {
	no, pids := false, int64(workerPids)
	h := hostConfig(runner.Limits{Memory: workerMemory, Pids: workerPids, DataSize: 1 << 20, TmpSize: 1 << 20, Inodes: 64}, e.options.Runtime, 0, int(e.cores.Load()))
	h.Init = &no // the supervisor is: what it ends with ends all
	h.SecurityOpt = []string{"no-new-privileges:true", "seccomp=" + profile}
	h.MaskedPaths, h.ReadonlyPaths = []string{}, []string{}
	h.NanoCPUs, h.PidsLimit = 0, &pids
	h.CgroupParent = "/notebox/" + e.options.ServiceID
	for i := range h.Ulimits {
		if h.Ulimits[i].Name == "nofile" {
			h.Ulimits[i].Soft, h.Ulimits[i].Hard = workerFiles, workerFiles
		}
	}
	for _, controller := range controllers {
		h.Mounts = append(h.Mounts, mount.Mount{
			Type: mount.TypeBind, Source: path.Join("/sys/fs/cgroup", controller, h.CgroupParent), Target: path.Join(groupsFolder, controller),
		})
	}
	return h
}

// workerProfile is the sandboxes' with what walls are built with.
func workerProfile() (string, error) {
	var profile map[string]any
	if err := json.Unmarshal(seccompJSON, &profile); err != nil {
		return "", err
	}
	rules, ok := profile["syscalls"].([]any)
	if !ok {
		return "", fmt.Errorf("the seccomp profile has no rules")
	}
	var kept []any
	for _, r := range rules {
		rule := r.(map[string]any)
		names := slices.DeleteFunc(rule["names"].([]any), func(name any) bool { return slices.Contains(builders, name.(string)) })
		if len(names) > 0 {
			rule["names"] = names
			kept = append(kept, rule)
		}
	}
	profile["syscalls"] = append(kept, map[string]any{"names": builders, "action": "SCMP_ACT_ALLOW"})
	out, err := json.Marshal(profile)
	return string(out), err
}
