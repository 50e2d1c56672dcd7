// Package posture is what a sandbox may do and have, whatever engine starts it.
package posture

import (
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/docker/go-units"

	"notebox/runner"
)

// HarnessFolder is root's, on a file system of its own: below /tmp, or any folder that code
// may write to, code can make it first. The image's /etc/passwd and /etc/group are links
// into it.
const HarnessFolder = "/run/notebox"

const (
	// ShmSize of /dev/shm, bytes: Docker's own default, which Python's
	// multiprocessing is used to.
	ShmSize = 64 << 20
	// processMemory is what must be left for processes when every tmpfs is
	// full, bytes: a harness and a kernel are 160 MB.
	processMemory = 256 << 20
	// harnessSize of the folder that is the harness's own, bytes: the names of users, where
	// kernels listen, and the certificates of a run with a network. Of what processMemory is for.
	harnessSize, harnessInodes = 4 << 20, 1024
	// OOMScore makes the host's kernel, when the host itself is short of memory,
	// end sandboxes before what else runs there; code in them has 1000.
	OOMScore = 500
	// CoreLimit of RLIMIT_CORE, bytes: no file, and no program either. If core_pattern is
	// a pipe, a kernel starts its program as root of the host at each crash and for each
	// limit, 0 too, but this one, which is its own mark for that program's crashes.
	CoreLimit = 1
	// tcpBuffer is the size of each of the two buffers that a TCP socket grows to, bytes,
	// which no limit of memory holds on cgroup v1. A loopback is as fast with it as with
	// the kernel's own of megabytes.
	tcpBuffer = 128 << 10
	// OpenFiles of one process: a large pool of workers, and no more descriptors
	// than a program closes in a moment when it starts another.
	OpenFiles = 8192
)

// Seccomp is Docker's default profile made stricter. The test of runner/docker makes it.
//
//go:embed seccomp.json
var Seccomp []byte

// Check says why sandboxes with these limits would not be safe, or nil.
func Check(l runner.Limits) error {
	if need := l.DataSize + l.TmpSize + ShmSize + processMemory; l.Memory < need {
		return fmt.Errorf("the memory limit of %s is less than /mnt/data, /tmp and /dev/shm together with %s for processes: %s",
			units.BytesSize(float64(l.Memory)), units.BytesSize(processMemory), units.BytesSize(float64(need)))
	}
	return nil
}

// Folders are the file systems in memory of a sandbox, with the options that Docker takes. The
// harness reads from the owner of /mnt/data which user it is.
func Folders(l runner.Limits, user int) map[string]string {
	return map[string]string{
		runner.DataFolder: tmpfs(l.DataSize, l.Inodes, fmt.Sprintf("mode=0755,uid=%d,gid=%d", user, user)),
		"/tmp":            tmpfs(l.TmpSize, l.Inodes, "mode=1777"),
		HarnessFolder:     tmpfs(harnessSize, harnessInodes, "mode=0755"),
	}
}

// tmpfs are the mount options; people run what they put there, so exec.
func tmpfs(size, inodes int64, more string) string {
	return fmt.Sprintf("rw,nosuid,nodev,exec,size=%d,nr_inodes=%d,%s", size, inodes, more)
}

// CellMounts are Folders of a cell and its /dev/shm, with the options of the file system alone:
// the flags of a mount are the same for all.
func CellMounts(l runner.Limits, user int) map[string]string {
	all := maps.Clone(Folders(l, user))
	all["/dev/shm"] = fmt.Sprintf("size=%d,mode=1777", ShmSize)
	flags := []string{"rw", "nosuid", "nodev", "exec"}
	for folder, options := range all {
		of := slices.DeleteFunc(strings.Split(options, ","), func(o string) bool { return slices.Contains(flags, o) })
		all[folder] = strings.Join(of, ",")
	}
	return all
}

// ReadOnly are paths that code cannot write: of Docker's five, the others are masked.
var ReadOnly = []string{"/proc/sys", "/proc/sysrq-trigger"}

// Sysctls of a sandbox's network.
func Sysctls() map[string]string {
	return map[string]string{
		"net.ipv4.tcp_rmem":     fmt.Sprintf("4096 %d %[1]d", tcpBuffer),
		"net.ipv4.tcp_wmem":     fmt.Sprintf("4096 16384 %d", tcpBuffer),
		"net.ipv4.tcp_fastopen": "0", // sends what makes a connection without connect
	}
}

// Masked are files and folders of /proc and /sys that code finds empty: those that Docker
// masks in any version, and what else tells of the host's disks, devices, memory and
// interrupts, of its kernel's command line, or counts what others do there. What libraries
// read is not among them: cpuinfo, meminfo, stat, vmstat, loadavg, uptime, the processors.
func Masked(cores int) []string {
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
