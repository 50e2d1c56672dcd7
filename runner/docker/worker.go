package docker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/system"

	supervision "notebox/environments/supervisor/wire"
	"notebox/runner"
	"notebox/runner/posture"
)

const (
	// supervisorProgram is a worker's, in each image.
	supervisorProgram = "/opt/notebox/supervisor"
	// workerUsers are how many ids a worker has: two for its zygote, and then two for each
	// cell. So 255 cells begin before one has ids that another one had, and so many may be
	// there at one time.
	workerUsers = 512
	// workerMemory bounds supervisor and zygote, bytes: the zygote has all libraries in it,
	// and each cell counts by itself.
	workerMemory = 1 << 30
	// workerPids bounds processes and threads of supervisor and zygote, and cells before they
	// are in their own groups.
	workerPids = 1024
)

var _ runner.Host = (*Engine)(nil)

// StartWorker implements runner.Host.
func (e *Engine) StartWorker(ctx context.Context, env runner.Environment) (runner.Sandbox, []byte, runner.Walls, error) {
	info, err := e.info(ctx)
	switch {
	case err != nil:
		return nil, nil, runner.Walls{}, err
	case !hasGroups(info):
		return nil, nil, runner.Walls{}, noCells(supervision.WallGroups, "cells need cgroup v2, or v1 with the driver cgroupfs; the Docker daemon has v%s and %s", info.CgroupVersion, info.CgroupDriver)
	case !sharesKernel(e.options.Runtime):
		return nil, nil, runner.Walls{}, noCells(supervision.WallWorker, "the runtime %s has a kernel of its own", e.options.Runtime)
	}
	users, err := e.Users(ctx)
	if err == nil && users.parts(workerUsers) == 0 {
		err = noCells(supervision.WallWorker, "a worker needs %d user ids, and sandboxes may have those from %d to %d", workerUsers, users.First, users.Last)
	}
	if err != nil {
		return nil, nil, runner.Walls{}, err
	}
	profile, err := workerProfile()
	if err != nil {
		return nil, nil, runner.Walls{}, err
	}
	var first int
	token := supervision.NewToken()
	s, err := e.begin(ctx, func(name, id string) (*sandbox, error) {
		c := workerConfig(env, e.labels(id, env))
		c.StdinOnce = e.options.Fleeting
		c.Labels[labelToken] = string(token)
		err := e.createAlone(ctx, name, workerUsers, c, func(user int) *container.HostConfig {
			first = user
			h := e.workerHost(profile)
			e.setGroups(h, info)
			return h
		})
		if err != nil {
			return nil, err
		}
		return e.run(ctx, name)
	})
	if err != nil {
		return nil, nil, runner.Walls{}, err
	}
	return s, token, runner.Walls{
		FirstUser: first,
		Users:     workerUsers,
		Memory:    workerMemory,
		Pids:      workerPids,
		Masked:    posture.Masked(int(e.cores.Load())),
		ReadOnly:  posture.ReadOnly,
		Sysctls:   posture.Sysctls(),
		Seccomp:   posture.Seccomp,
		Mounts:    posture.CellMounts,
	}, nil
}

// hasGroups reports whether a worker can have control groups for its cells: a daemon with another
// driver has none, and systemd's on version 1 was never tried.
func hasGroups(info system.Info) bool {
	return info.CgroupDriver == "cgroupfs" || info.CgroupDriver == "systemd" && info.CgroupVersion == "2"
}

func noCells(wall supervision.Wall, format string, args ...any) error {
	return unavailable("this host cannot have cells", &supervision.Missing{Wall: wall, Why: fmt.Sprintf(format, args...)})
}

// AttachWorker implements runner.Host.
func (e *Engine) AttachWorker(ctx context.Context, id string) (runner.Sandbox, []byte, error) {
	if !strings.HasPrefix(id, namePrefix) {
		return nil, nil, fmt.Errorf("%w: %q is no worker's", runner.ErrNoSandbox, id)
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	s, err := e.adopt(ctx, id)
	if errors.Is(err, runner.ErrNoSandbox) {
		return nil, nil, err
	} else if err != nil {
		return nil, nil, e.explain(err)
	}
	have, err := e.api.ContainerInspect(ctx, id)
	if err == nil && len(have.Config.Labels[labelToken]) != supervision.TokenSize {
		err = fmt.Errorf("%w: it is no worker", runner.ErrNoSandbox)
	}
	if err != nil {
		s.Close()
		return nil, nil, e.explain(err)
	}
	return s, []byte(have.Config.Labels[labelToken]), nil
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
	// Docker's profile for AppArmor forbids mounts.
	h.SecurityOpt = []string{"no-new-privileges:true", "seccomp=" + profile, "apparmor=unconfined"}
	h.MaskedPaths, h.ReadonlyPaths = []string{}, []string{}
	h.NanoCPUs, h.PidsLimit = 0, &pids
	return h
}

// setGroups has the worker write to its service's part of the control groups.
func (e *Engine) setGroups(h *container.HostConfig, info system.Info) {
	const all = "/sys/fs/cgroup"
	h.CgroupParent = "/notebox/" + e.options.ServiceID
	folder := h.CgroupParent
	if info.CgroupDriver == "systemd" { // which has a slice in another one for each dash in its name
		h.CgroupParent = "notebox-" + strings.ReplaceAll(e.options.ServiceID, "-", "_") + ".slice"
		folder = "/notebox.slice/" + h.CgroupParent
	}
	// By Binds, which make what is not there.
	if info.CgroupVersion != "2" {
		for _, controller := range supervision.Controllers {
			h.Binds = append(h.Binds, path.Join(all, controller, folder)+":"+path.Join(supervision.GroupsFolder, controller))
		}
		return
	}
	h.Binds = append(h.Binds, path.Join(all, folder)+":"+supervision.GroupsFolder)
	h.CgroupnsMode = "host" // or it would not know which group is its own
	// Cells are in the container's group. Those limits are for the worker's own part of it.
	h.Memory, h.MemorySwap, h.PidsLimit = 0, 0, nil
}

// workerProfile is the sandboxes' with what walls are built with.
func workerProfile() (string, error) {
	var profile map[string]json.RawMessage
	var rules, kept []map[string]json.RawMessage
	if err := errors.Join(json.Unmarshal(posture.Seccomp, &profile), json.Unmarshal(profile["syscalls"], &rules)); err != nil {
		return "", err
	}
	add := func(rule map[string]json.RawMessage, names []string) error {
		var err error
		rule["names"], err = json.Marshal(names)
		kept = append(kept, rule)
		return err
	}
	for _, rule := range rules {
		var names []string
		if err := json.Unmarshal(rule["names"], &names); err != nil {
			return "", err
		}
		names = slices.DeleteFunc(names, func(name string) bool { return slices.Contains(supervision.WallCalls, name) })
		if len(names) > 0 {
			if err := add(rule, names); err != nil {
				return "", err
			}
		}
	}
	if err := add(map[string]json.RawMessage{"action": json.RawMessage(`"SCMP_ACT_ALLOW"`)}, supervision.WallCalls); err != nil {
		return "", err
	}
	var err error
	if profile["syscalls"], err = json.Marshal(kept); err != nil {
		return "", err
	}
	out, err := json.Marshal(profile)
	return string(out), err
}
