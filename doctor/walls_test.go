package doctor

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"notebox/runner"
)

// TestMissingWalls: each wall of a container is looked for, and one that cannot be seen is not
// taken to be missing.
func TestMissingWalls(t *testing.T) {
	t.Parallel()
	limits := runner.Limits{Memory: 1 << 30, Pids: 256}
	whole := walls{User: 70000, Capabilities: "0000000000000000 0000000000000000", NoNew: "1", Seccomp: "2", Memory: "1073741824", Pids: "256"}
	require.Empty(t, whole.missing(limits))
	for _, c := range []struct {
		desc   string
		change func(*walls)
		want   string
	}{
		{"root", func(w *walls) { w.User = 0 }, "code runs as root"},
		{"capabilities", func(w *walls) { w.Capabilities = "0000000000000000 00000000000000c0" }, "code has capabilities"},
		{"new privileges", func(w *walls) { w.NoNew = "0" }, "code can gain rights"},
		{"a network", func(w *walls) { w.Interfaces = map[string]string{"lo": "0x9", "tunl0": "0x80", "eth0": "0x1003"} }, "code has a network (eth0)"},
		{"a network that cannot be seen", func(w *walls) { w.Interfaces = map[string]string{"lo": "", "eth0": ""} }, "code has a network (eth0)"},
		{"tunnels of the kernel's modules", func(w *walls) { w.Interfaces = map[string]string{"lo": "0x9", "tunl0": "0x80", "sit0": "0x80"} }, ""},
		{"files", func(w *walls) { w.Changed = "/opt" }, "code can change the image's files (in /opt)"},
		{"memory without a limit", func(w *walls) { w.Memory = "max" }, "its limit of memory is max and not 1073741824"},
		{"more memory", func(w *walls) { w.Memory = "9223372036854771712" }, "its limit of memory"},
		{"processes", func(w *walls) { w.Pids = "max" }, "its limit of processes is max and not 256"},
		{"a kernel that shows less", func(w *walls) { w.Memory, w.Pids, w.NoNew, w.Seccomp = "", "", "", "0" }, ""},
	} {
		t.Run(c.desc, func(t *testing.T) {
			t.Parallel()
			seen := whole
			c.change(&seen)
			missing := seen.missing(limits)
			if c.want == "" {
				require.Empty(t, missing)
				return
			}
			require.Len(t, missing, 1)
			require.Contains(t, missing[0], c.want)
		})
	}
}

// TestContainersWithoutWalls: what was found before stands beside what is missing.
func TestContainersWithoutWalls(t *testing.T) {
	t.Parallel()
	before := Finding{Level: Warning, Message: "containers, as a wall of cells is missing", Mend: "For cells: mend it."}
	found := walls{User: 0, Capabilities: "0"}.judge(before, runner.Limits{})
	require.Equal(t, Wrong, found.Level)
	require.Contains(t, found.Message, "containers, as a wall of cells is missing. Containers without all their walls: code runs as root")
	require.Contains(t, found.Mend, "--sandbox-runtime")
	require.Contains(t, found.Mend, "For cells: mend it.")
}

// TestClockWithoutAddress: if the service serves the files of a cloud, no link names the cloud's
// host. That is no fault, and there is nothing to mend.
func TestClockWithoutAddress(t *testing.T) {
	t.Parallel()
	other := OtherClock{Of: "the store's", Read: func(context.Context) (Reading, error) { return Reading{}, errNoAddress }}
	found := Clock(time.Time{}, other).Look(t.Context())
	require.Equal(t, OK, found.Level)
	require.Contains(t, found.Message, "no other to compare it with")
	require.Empty(t, found.Mend)
}

// TestDiskSpace: the worst is told, for what it matters to.
func TestDiskSpace(t *testing.T) {
	t.Parallel()
	on := func(disk int32, bytes uint64, p Place) space {
		return space{place: p, Statfs_t: unix.Statfs_t{Bsize: 1, Bavail: bytes, Blocks: 1 << 40, Files: 1 << 20, Ffree: 1 << 20, Fsid: unix.Fsid{Val: [2]int32{disk}}}}
	}
	files, state := Place{Of: "files", Folder: "/f"}, Place{Of: "state", Folder: "/s"}
	images := Place{Of: "images", Folder: "/i", Low: lowForImages}
	packed := on(1, 20<<30, files)
	packed.Ffree = 10
	for _, c := range []struct {
		desc    string
		all     []space
		level   Level
		message string
	}{
		{"one disk", []space{on(1, 20<<30, files), on(1, 20<<30, state), on(1, 20<<30, images)}, OK, "20 GiB free for files (/f), state (/s), images (/i)"},
		{"two disks", []space{on(1, 20<<30, files), on(2, 30<<30, images)}, OK, "20 GiB free for files (/f); 30 GiB free for images (/i)"},
		{"enough for files, and little for images", []space{on(1, 4<<30, files), on(1, 4<<30, images)}, Warning, "4.0 GiB free for images (/i): building an image takes up to 8.0 GiB"},
		{"full", []space{on(1, 100<<20, files), on(2, 30<<30, images)}, Wrong, "100 MiB free for files (/f)"},
		{"no more files", []space{packed}, Warning, "10 files can be added for files (/f)"},
		{"not seen", []space{{place: files, err: unix.EIO}}, Warning, "the free space for files (/f) cannot be seen"},
	} {
		t.Run(c.desc, func(t *testing.T) {
			t.Parallel()
			found := judge(c.all)
			require.Equal(t, c.level, found.Level, found)
			require.Contains(t, found.Message, c.message)
		})
	}
}
