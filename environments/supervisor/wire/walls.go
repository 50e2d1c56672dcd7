package wire

import "fmt"

// Wall is one of those around a cell. Which a host can give depends on its kernel, its Docker
// daemon and what both are told.
type Wall string

// The walls of a cell.
const (
	WallWorker      Wall = "worker"          // a worker starts at all, and has ids of its own
	WallUser        Wall = "user_namespace"  // root in it is nobody outside
	WallNamespaces  Wall = "namespaces"      // pid, mount, ipc, uts, net, cgroup
	WallFiles       Wall = "files"           // a tree of its own that cannot be written, and small devices
	WallProc        Wall = "proc"            // /proc of its own, masked
	WallTmpfs       Wall = "tmpfs"           // file systems in memory, with limits of size and files
	WallGroups      Wall = "control_groups"  // limits of memory, cores and processes
	WallSeccomp     Wall = "seccomp"         // the sandboxes' filter of system calls
	WallPrivileges  Wall = "privileges"      // no capability for code, and none to be had
	WallRlimits     Wall = "resource_limits" // of files and core dumps
	WallDescriptors Wall = "descriptors"     // none of the worker's
)

// Walls are all of them.
func Walls() []Wall {
	return []Wall{
		WallWorker, WallUser, WallNamespaces, WallFiles, WallProc, WallTmpfs, WallGroups, WallSeccomp,
		WallPrivileges, WallRlimits, WallDescriptors,
	}
}

// WallCalls are the system calls that walls are built with. A worker may make them, and no cell.
var WallCalls = []string{
	"clone", "clone3", "mount", "pivot_root", "sethostname", "setns", "umount2", "unshare",
}

// Missing is a wall that cells do not have, as an error.
type Missing struct {
	Wall Wall   `json:"wall"`
	Why  string `json:"why"`
}

// Missed returns a Missing whose reason is err's.
func Missed(wall Wall, err error) *Missing { return &Missing{wall, err.Error()} }

func (m *Missing) Error() string { return fmt.Sprintf("%s: %s", m.Wall, m.Why) }

type (
	// Looked says which walls a cell was found to be without.
	Looked struct {
		Missing []Missing `json:"missing"`
	}
	// Measured is the memory of a worker and its cells, bytes. PSS is what a process has in
	// memory, where a page that n processes share counts as a n-th for each.
	Measured struct {
		WorkerCharged int64 `json:"worker_charged"` // to the worker's container
		WorkerPSS     int64 `json:"worker_pss"`     // of supervisor and zygote
		Cells         int   `json:"cells"`
		CellsCharged  int64 `json:"cells_charged"` // to the control groups of all cells
		Sampled       int   `json:"sampled"`       // cells whose PSS was measured, see MaxSampled
		SampledPSS    int64 `json:"sampled_pss"`   // of these
	}
)

// MaxSampled bounds how many cells are looked at for their PSS: the kernel goes through all
// pages of each process, which takes it a millisecond or two.
const MaxSampled = 8
