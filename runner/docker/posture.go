package docker

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"

	"notebox/runner"
	"notebox/runner/posture"
)

// The labels of every container. Package builder reads those that are exported.
const (
	LabelService     = "notebox.service"     // whose it is: Options.ServiceID
	labelSandbox     = "notebox.sandbox"     // its own id
	labelEnvironment = "notebox.environment" // what it was started from
	labelUser        = "notebox.user"        // the first of its ids; see users.go
	labelUsers       = "notebox.users"       // how many, if it is a worker
	labelToken       = "notebox.token"       // a worker's
)

const (
	// ptys of one sandbox: a terminal multiplexer with many windows. The host's kernel has
	// 3,072 for all containers together.
	ptys = 32
)

// seccompProfile is short, as the daemon reads and writes it several times for each sandbox.
var seccompProfile = compact(posture.Seccomp)

func compact(document []byte) string {
	var short bytes.Buffer
	if err := json.Compact(&short, document); err != nil {
		panic(err) // it is part of the program
	}
	return short.String()
}

func containerConfig(env runner.Environment, labels map[string]string) *container.Config {
	return &container.Config{
		Image:           env.Image,
		Hostname:        "sandbox",
		User:            "0:0", // the harness, which keeps two capabilities; the code is the owner of /mnt/data
		WorkingDir:      "/",
		Env:             []string{"HOME=" + posture.HarnessFolder}, // the kernel has another
		Labels:          labels,
		NetworkDisabled: true,
		OpenStdin:       true,
		StdinOnce:       false, // a session's program goes on after its service is gone
		AttachStdin:     true,
		AttachStdout:    true,
		AttachStderr:    true,
	}
}

// hostConfig is that of a sandbox whose code runs as user, on a host with so many cores.
func hostConfig(l runner.Limits, runtime string, user, cores int) *container.HostConfig {
	yes, noSwap := true, int64(0)
	h := &container.HostConfig{
		AutoRemove:     true,
		Init:           &yes,
		Runtime:        runtime,
		NetworkMode:    "none",
		IpcMode:        "private",
		CgroupnsMode:   "private",
		ReadonlyRootfs: true,
		CapDrop:        []string{"ALL"},
		CapAdd:         []string{"SETGID", "SETUID"}, // to become the user, and nothing else
		SecurityOpt:    []string{"no-new-privileges:true", "seccomp=" + seccompProfile},
		LogConfig:      container.LogConfig{Type: "none"},
		RestartPolicy:  container.RestartPolicy{Name: "no"},
		ShmSize:        posture.ShmSize,
		OomScoreAdj:    posture.OOMScore,
		Tmpfs:          posture.Folders(l, user),
		MaskedPaths:    posture.Masked(cores),
		ReadonlyPaths:  posture.ReadOnly,
		Resources: container.Resources{
			Memory:           l.Memory,
			MemorySwap:       l.Memory, // memory and swap together: no swap
			MemorySwappiness: &noSwap,
			NanoCPUs:         int64(l.CPUs * 1e9),
			PidsLimit:        &l.Pids,
			Ulimits: []*container.Ulimit{
				{Name: "core", Soft: posture.CoreLimit, Hard: posture.CoreLimit},
				{Name: "nofile", Soft: posture.OpenFiles, Hard: posture.OpenFiles},
			},
		},
	}
	if sharesKernel(runtime) {
		h.Mounts = []mount.Mount{terminals()}
		h.Sysctls = posture.Sysctls()
	}
	return h
}

// sharesKernel reports whether containers of a runtime are on the host's own kernel, whose
// terminals and buffers are to be bounded. gVisor and Kata Containers are known to bring one.
func sharesKernel(runtime string) bool {
	return !strings.Contains(runtime, "runsc") && !strings.Contains(runtime, "kata")
}

// terminals is /dev/pts, with a bound of ptys, which can be set when it is mounted alone: a
// volume of the container's own, which ends with it.
func terminals() mount.Mount {
	return mount.Mount{Type: mount.TypeVolume, Target: "/dev/pts", VolumeOptions: &mount.VolumeOptions{
		NoCopy: true,
		DriverConfig: &mount.Driver{Name: "local", Options: map[string]string{
			"type": "devpts", "device": "devpts",
			"o": fmt.Sprintf("nosuid,noexec,newinstance,ptmxmode=0666,mode=0620,gid=5,max=%d", ptys),
		}},
	}}
}
