package docker

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/go-units"

	"notebox/runner"
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

// harnessFolder is root's, on a file system of its own: below /tmp, or any folder that code
// may write to, code can make it first. The image's /etc/passwd and /etc/group are links
// into it.
const harnessFolder = "/run/notebox"

const (
	// shmSize of /dev/shm, bytes: Docker's own default, which Python's
	// multiprocessing is used to.
	shmSize = 64 << 20
	// processMemory is what must be left for processes when every tmpfs is
	// full, bytes: a harness and a kernel are 160 MB.
	processMemory = 256 << 20
	// oomScore makes the host's kernel, when the host itself is short of memory,
	// end sandboxes before what else runs there; code in them has 1000.
	oomScore = 500
	// harnessSize of the folder that is the harness's own, bytes: the names of users, where
	// kernels listen, and the certificates of a run with a network. Of what processMemory is for.
	harnessSize, harnessInodes = 4 << 20, 1024
	// ptys of one sandbox: a terminal multiplexer with many windows. The host's kernel has
	// 3,072 for all containers together.
	ptys = 32
	// coreLimit of RLIMIT_CORE, bytes: no file, and no program either. If core_pattern is
	// a pipe, a kernel starts its program as root of the host at each crash and for each
	// limit, 0 too, but this one, which is its own mark for that program's crashes.
	coreLimit = 1
	// tcpBuffer is the size of each of the two buffers that a TCP socket grows to, bytes,
	// which no limit of memory holds on cgroup v1. A loopback is as fast with it as with
	// the kernel's own of megabytes.
	tcpBuffer = 128 << 10
	// openFiles of one process: a large pool of workers, and no more descriptors
	// than a program closes in a moment when it starts another.
	openFiles = 8192
)

// seccompProfile is Docker's default made stricter; see seccomp_test.go, which
// makes it.
//
//go:embed seccomp.json
var seccompJSON []byte

// seccompProfile is short, as the daemon reads and writes it several times for each sandbox.
var seccompProfile = compact(seccompJSON)

func compact(document []byte) string {
	var short bytes.Buffer
	if err := json.Compact(&short, document); err != nil {
		panic(err) // it is part of the program
	}
	return short.String()
}

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
		Env:             []string{"HOME=" + harnessFolder}, // the kernel has another
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
		ShmSize:        shmSize,
		OomScoreAdj:    oomScore,
		Tmpfs:          folders(l, user),
		MaskedPaths:    masked(cores),
		ReadonlyPaths:  readOnly,
		Resources: container.Resources{
			Memory:           l.Memory,
			MemorySwap:       l.Memory, // memory and swap together: no swap
			MemorySwappiness: &noSwap,
			NanoCPUs:         int64(l.CPUs * 1e9),
			PidsLimit:        &l.Pids,
			Ulimits: []*container.Ulimit{
				{Name: "core", Soft: coreLimit, Hard: coreLimit},
				{Name: "nofile", Soft: openFiles, Hard: openFiles},
			},
		},
	}
	if sharesKernel(runtime) {
		h.Mounts = []mount.Mount{terminals()}
		h.Sysctls = sysctls()
	}
	return h
}

// folders are the file systems in memory of a sandbox. The harness reads from the owner of
// /mnt/data which user it is.
func folders(l runner.Limits, user int) map[string]string {
	return map[string]string{
		runner.DataFolder: tmpfs(l.DataSize, l.Inodes, fmt.Sprintf("mode=0755,uid=%d,gid=%d", user, user)),
		"/tmp":            tmpfs(l.TmpSize, l.Inodes, "mode=1777"),
		harnessFolder:     tmpfs(harnessSize, harnessInodes, "mode=0755"),
	}
}

// readOnly are paths that code cannot write: of Docker's five, the others are masked.
var readOnly = []string{"/proc/sys", "/proc/sysrq-trigger"}

func sysctls() map[string]string {
	return map[string]string{
		"net.ipv4.tcp_rmem":     fmt.Sprintf("4096 %d %[1]d", tcpBuffer),
		"net.ipv4.tcp_wmem":     fmt.Sprintf("4096 16384 %d", tcpBuffer),
		"net.ipv4.tcp_fastopen": "0", // sends what makes a connection without connect
	}
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

// masked are files and folders of /proc and /sys that code finds empty: those that Docker
// masks in any version, and what else tells of the host's disks, devices, memory and
// interrupts, of its kernel's command line, or counts what others do there. What libraries
// read is not among them: cpuinfo, meminfo, stat, vmstat, loadavg, uptime, the processors.
func masked(cores int) []string {
	paths := strings.Fields(`
		/proc/acpi /proc/asound /proc/interrupts /proc/kcore /proc/keys /proc/latency_stats
		/proc/sched_debug /proc/scsi /proc/timer_list /proc/timer_stats
		/sys/devices/virtual/powercap /sys/firmware

		/proc/buddyinfo /proc/bus /proc/cmdline /proc/config.gz /proc/consoles /proc/diskstats
		/proc/driver /proc/fs /proc/iomem /proc/ioports /proc/irq /proc/key-users /proc/locks /proc/mdstat
		/proc/modules /proc/mtrr /proc/partitions /proc/pressure /proc/schedstat /proc/softirqs
		/proc/swaps /proc/zoneinfo
		/proc/sys/fs/aio-nr /proc/sys/fs/dentry-state /proc/sys/fs/file-nr /proc/sys/fs/inode-nr
		/proc/sys/fs/inode-state /proc/sys/kernel/pty
		/sys/block /sys/bus /sys/class/block /sys/class/hwmon /sys/class/thermal /sys/dev
		/sys/devices/LNXSYSTM:00 /sys/devices/pci0000:00 /sys/devices/platform
		/sys/devices/virtual/bdi /sys/devices/virtual/block /sys/devices/virtual/dmi
		/sys/devices/virtual/thermal
		/sys/fs/btrfs /sys/fs/ext4 /sys/fs/f2fs /sys/fs/xfs
		/sys/kernel/boot_params /sys/kernel/iommu_groups /sys/kernel/irq /sys/kernel/slab
		/sys/module`)
	for core := range cores {
		paths = append(paths, fmt.Sprintf("/sys/devices/system/cpu/cpu%d/thermal_throttle", core))
	}
	return paths
}

// tmpfs are the mount options; people run what they put there, so exec.
func tmpfs(size, inodes int64, more string) string {
	return fmt.Sprintf("rw,nosuid,nodev,exec,size=%d,nr_inodes=%d,%s", size, inodes, more)
}
