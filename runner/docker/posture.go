package docker

import (
	_ "embed"
	"fmt"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/go-units"

	"notebox/runner"
)

// The labels of every container.
const (
	labelService     = "notebox.service"     // whose it is: Options.ServiceID
	labelSandbox     = "notebox.sandbox"     // its own id
	labelEnvironment = "notebox.environment" // what it was started from
	labelUser        = "notebox.user"        // the first of its ids; see users.go
)

// harnessFolder is root's, on a file system of its own. The image's /etc/passwd and
// /etc/group are links into it.
const harnessFolder = "/run/notebox"

const (
	// harnessSize of the folder that is the harness's own, bytes: the names of users. Of what
	// processMemory is for.
	harnessSize, harnessInodes = 4 << 20, 1024
	// shmSize of /dev/shm, bytes: Docker's own default, which Python's
	// multiprocessing is used to.
	shmSize = 64 << 20
	// processMemory is what must be left for processes when every tmpfs is
	// full, bytes: a harness and a kernel are 160 MB.
	processMemory = 256 << 20
	// oomScore makes the host's kernel, when the host itself is short of memory,
	// end sandboxes before what else runs there; code in them has 1000.
	oomScore = 500
	// openFiles of one process: a large pool of workers, and no more descriptors
	// than a program closes in a moment when it starts another.
	openFiles = 8192
)

// seccompProfile is Docker's default made stricter; see seccomp_test.go, which
// makes it.
//
//go:embed seccomp.json
var seccompProfile string

// Check says why sandboxes with these limits would not be safe, or nil.
func Check(l runner.Limits) error {
	if need := l.DataSize + l.TmpSize + shmSize + processMemory; l.Memory < need {
		return fmt.Errorf("the memory limit of %s is less than /mnt/data, /tmp and /dev/shm together with %s for processes: %s",
			units.BytesSize(float64(l.Memory)), units.BytesSize(processMemory), units.BytesSize(float64(need)))
	}
	return nil
}

func containerConfig(env runner.Environment, labels map[string]string) *container.Config {
	return &container.Config{
		Image:           env.Image,
		Hostname:        "sandbox",
		User:            "0:0", // the harness, which keeps two capabilities; the code is the owner of /mnt/data
		WorkingDir:      "/",
		Env:             []string{"HOME=/tmp/harness"}, // the harness's own; the kernel has another
		Labels:          labels,
		NetworkDisabled: true,
		OpenStdin:       true,
		StdinOnce:       false, // a session's program goes on where its service is gone
		AttachStdin:     true,
		AttachStdout:    true,
		AttachStderr:    true,
	}
}

// hostConfig is that of a sandbox whose code runs as user.
func hostConfig(l runner.Limits, runtime string, user int) *container.HostConfig {
	yes, noSwap := true, int64(0)
	return &container.HostConfig{
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
		ShmSize:        shmSize,
		OomScoreAdj:    oomScore,
		Tmpfs: map[string]string{
			// The harness reads from its owner which user it is.
			"/mnt/data":   tmpfs(l.DataSize, l.Inodes, fmt.Sprintf("mode=0755,uid=%d,gid=%d", user, user)),
			"/tmp":        tmpfs(l.TmpSize, l.Inodes, "mode=1777"),
			harnessFolder: tmpfs(harnessSize, harnessInodes, "mode=0755"),
		},
		Resources: container.Resources{
			Memory:           l.Memory,
			MemorySwap:       l.Memory, // memory and swap together: no swap
			MemorySwappiness: &noSwap,
			NanoCPUs:         int64(l.CPUs * 1e9),
			PidsLimit:        &l.Pids,
			Ulimits: []*container.Ulimit{
				{Name: "core", Soft: 0, Hard: 0},
				{Name: "nofile", Soft: openFiles, Hard: openFiles},
			},
		},
	}
}

// tmpfs are the mount options; people run what they put there, so exec.
func tmpfs(size, inodes int64, more string) string {
	return fmt.Sprintf("rw,nosuid,nodev,exec,size=%d,nr_inodes=%d,%s", size, inodes, more)
}
