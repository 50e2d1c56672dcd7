package operation

import (
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/runner/docker"
	"notebox/tests/e2e/service"
	"notebox/tests/starter"
)

const (
	// settleTime is above the 30 s after which connections to the daemon that
	// nobody uses are closed, and above a pool's refill.
	settleTime = 2 * time.Minute
	settlePoll = 500 * time.Millisecond
	// settleStill is how often in a row the same must be seen to be what stays.
	settleStill = 8

	// Memory does not come back to the byte: the allocator keeps spans that are in
	// part used. A thousand runs that kept 5 KB each are above heapSlack, and an
	// image of each is above both.
	heapSlack     = 4 << 20
	residentSlack = 16 << 20
	// workersSlack is above what a worker gathers in the runs before its renewal.
	workersSlack = 64 << 20
	// collectAt has the service's collector run when the heap has grown by so much, %: what
	// is seen of the heap is what lives.
	collectAt = "5"
)

// holdings looks at what a service holds: its own, and of the machine where it
// is alone on it.
type holdings struct {
	service *service.Service
	alone   bool
}

// held is what must come back to where it was.
type held struct {
	goroutines  int
	descriptors int
	sandboxes   int // of this service: those that wait
	uploads     int // entries of the folder for what is under way
	state       int // entries of the rest of the state folder
	temporary   int // files of the store that are not whole
	children    int // of the service, and what has ended and was not waited for
	foreign     int // on the whole machine: users' processes, and containerd's shims
	layers      int // of the daemon's storage
	groups      int // control groups of its workers and cells
	mounts      int // in each namespace that a process of its sandboxes is in
	zombies     int // of its sandboxes

	heap, resident, workers int64 // bytes; see heapSlack
}

func (h held) String() string {
	return fmt.Sprintf("%d goroutines, %d descriptors, %d sandboxes, %d uploads, %d state files, %d temporary files, "+
		"%d children, %d sandbox processes and shims, %d layers, %d control groups, %d mounts, %d zombies, "+
		"%.1f MB heap, %.1f MB resident, %.1f MB charged to workers",
		h.goroutines, h.descriptors, h.sandboxes, h.uploads, h.state, h.temporary,
		h.children, h.foreign, h.layers, h.groups, h.mounts, h.zombies,
		float64(h.heap)/1e6, float64(h.resident)/1e6, float64(h.workers)/1e6)
}

// counts are all that are compared exactly.
func (h held) counts() held {
	h.heap, h.resident, h.workers = 0, 0, 0
	return h
}

// settled waits until nothing changes any more.
func (h *holdings) settled(t *testing.T) held {
	t.Helper()
	last, still := h.look(t), 0
	for deadline := time.Now().Add(settleTime); still < settleStill; {
		require.True(t, time.Now().Before(deadline), "it does not settle: %s", last)
		time.Sleep(settlePoll)
		now := h.look(t)
		if still++; now.counts() != last.counts() {
			still = 0
		}
		last = now
	}
	return last
}

// settledAs waits until the service holds what it held before, and no more.
func (h *holdings) settledAs(t *testing.T, before held) held {
	t.Helper()
	deadline := time.Now().Add(settleTime)
	for {
		now := h.look(t)
		grown := now.grown(before)
		if grown == "" {
			return now
		}
		if time.Now().After(deadline) {
			if now.goroutines > before.goroutines {
				_ = h.service.Signal(syscall.SIGQUIT) // it says where they are
				<-h.service.Ended()
				t.Log(h.service.Logged())
			}
			require.FailNow(t, "it has grown", "%s\nbefore: %s\nafter:  %s", grown, before, now)
		}
		time.Sleep(settlePoll)
	}
}

// grown names what is more than before. Sandboxes must be as many: a pool that is
// not filled again has lost something too.
func (h held) grown(before held) string {
	var out []string
	for _, c := range []struct {
		what        string
		before, now int
	}{
		{"goroutines", before.goroutines, h.goroutines},
		{"descriptors", before.descriptors, h.descriptors},
		{"uploads", before.uploads, h.uploads},
		{"state files", before.state, h.state},
		{"temporary files", before.temporary, h.temporary},
		{"children", before.children, h.children},
		{"sandbox processes and shims", before.foreign, h.foreign},
		{"layers", before.layers, h.layers},
		{"control groups", before.groups, h.groups},
		{"mounts", before.mounts, h.mounts},
		{"zombies", before.zombies, h.zombies},
		{"bytes of heap", int(before.heap + heapSlack), int(h.heap)},
		{"resident bytes", int(before.resident + residentSlack), int(h.resident)},
		{"bytes charged to workers", int(before.workers + workersSlack), int(h.workers)},
	} {
		if c.now > c.before {
			out = append(out, fmt.Sprintf("%s: %d, at most %d", c.what, c.now, c.before))
		}
	}
	if h.sandboxes != before.sandboxes {
		out = append(out, fmt.Sprintf("sandboxes: %d, not %d", h.sandboxes, before.sandboxes))
	}
	return strings.Join(out, "; ")
}

func (h *holdings) look(t *testing.T) held {
	t.Helper()
	http.DefaultClient.CloseIdleConnections() // those of these tests
	state := entries(t, h.service.Folder+"/state", func(string) bool { return true })
	uploads := entries(t, h.service.Folder+"/state/uploads", func(string) bool { return true })
	now := held{
		sandboxes: len(service.SandboxNames(t, h.service.ID)),
		uploads:   uploads,
		state:     state - uploads,
		temporary: entries(t, h.service.Stored(), func(name string) bool { return filepath.Ext(name) == ".tmp" }),
		children:  h.children(t),
	}
	if h.alone {
		now.foreign, now.layers = foreignProcesses(t), layers(t)
	}
	now.mounts, now.zombies = h.inSandboxes(t)
	now.groups = len(starter.Groups(h.service.ID))
	now.workers = int64(h.service.Metric(t, `notebox_workers_memory_bytes{kind="charged"}`))
	now.heap, now.resident = int64(h.service.Metric(t, "go_memstats_heap_inuse_bytes")), h.resident(t)
	now.goroutines = int(h.service.Metric(t, "go_goroutines"))
	list, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", h.service.PID()))
	require.NoError(t, err)
	now.descriptors = len(list)
	return now
}

// entries counts what is below a folder, itself left out; 0 if there is none.
func entries(t *testing.T, folder string, want func(name string) bool) (n int) {
	t.Helper()
	err := filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
		if os.IsNotExist(err) { // removed meanwhile
			return nil
		}
		if err == nil && path != folder && want(path) {
			n++
		}
		return err
	})
	require.NoError(t, err)
	return n
}

func (h *holdings) resident(t *testing.T) int64 {
	t.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", h.service.PID())) // in pages; proc_pid_statm(5)
	require.NoError(t, err)
	pages, err := strconv.ParseInt(strings.Fields(string(raw))[1], 10, 64)
	require.NoError(t, err)
	return pages * int64(os.Getpagesize())
}

// children counts the service's.
func (h *holdings) children(t *testing.T) int {
	t.Helper()
	return processes(t, func(_ string, status string) bool {
		return strings.Contains(status, fmt.Sprintf("\nPPid:\t%d\n", h.service.PID()))
	})
}

// foreignProcesses counts the users' processes of all sandboxes on this machine,
// and the shims that look after containers.
func foreignProcesses(t *testing.T) int {
	t.Helper()
	return processes(t, func(folder, status string) bool {
		if strings.HasPrefix(status, "Name:\tcontainerd-shim") && !strings.Contains(status, "\nState:\tZ") {
			return true // one that has ended waits for init, whoever that is
		}
		info, err := os.Stat(folder)
		if err != nil {
			return false
		}
		owner, ok := info.Sys().(*syscall.Stat_t)
		return ok && docker.DefaultUsers.First <= int(owner.Uid) && int(owner.Uid) <= docker.DefaultUsers.Last
	})
}

func processes(t *testing.T, want func(folder, status string) bool) (n int) {
	t.Helper()
	list, err := filepath.Glob("/proc/[0-9]*")
	require.NoError(t, err)
	for _, folder := range list {
		status, err := os.ReadFile(folder + "/status")
		if err == nil && want(folder, string(status)) { // else it has ended
			n++
		}
	}
	return n
}

// inSandboxes counts the mounts of each namespace that processes of the service's sandboxes are in,
// and those processes that have ended and were not waited for.
func (h *holdings) inSandboxes(t *testing.T) (mounts, zombies int) {
	t.Helper()
	ours, err := starter.Containers(t.Context(), h.service.ID, "{{.ID}}")
	require.NoError(t, err)
	ours = append(ours, "/notebox/"+h.service.ID+"/")
	namespaces, parents := map[string]bool{}, map[string]bool{}
	processes(t, func(folder, _ string) bool {
		groups, _ := os.ReadFile(folder + "/cgroup") // it may have ended
		if slices.ContainsFunc(ours, func(name string) bool { return strings.Contains(string(groups), name) }) {
			parents[filepath.Base(folder)] = true
			namespace, _ := os.Readlink(folder + "/ns/mnt")
			if raw, err := os.ReadFile(folder + "/mountinfo"); err == nil && !namespaces[namespace] {
				namespaces[namespace] = true
				mounts += strings.Count(string(raw), "\n")
			}
		}
		return false
	})
	// By their parents: on version 1 of control groups they are in none any more.
	zombies = processes(t, func(_, status string) bool {
		_, rest, _ := strings.Cut(status, "\nPPid:\t")
		parent, _, _ := strings.Cut(rest, "\n")
		return strings.Contains(status, "\nState:\tZ") && parents[parent]
	})
	return mounts, zombies
}

// layers counts the folders of the daemon's overlay2, or 0 if they cannot be
// seen from here.
func layers(t *testing.T) int {
	t.Helper()
	root, err := exec.Command("docker", "info", "--format", "{{.DockerRootDir}}").Output()
	require.NoError(t, err)
	list, _ := os.ReadDir(filepath.Join(strings.TrimSpace(string(root)), "overlay2"))
	return len(list)
}

// TestHoldings: what grows is named.
func TestHoldings(t *testing.T) {
	before := held{goroutines: 10, sandboxes: 2, heap: 1 << 20, resident: 100 << 20}
	for _, c := range []struct {
		desc   string
		change func(*held)
		grown  string
	}{
		{"the same", func(*held) {}, ""},
		{"less", func(h *held) { h.goroutines = 9 }, ""},
		{"a goroutine", func(h *held) { h.goroutines++ }, "goroutines: 11, at most 10"},
		{"a sandbox more", func(h *held) { h.sandboxes++ }, "sandboxes: 3, not 2"},
		{"a sandbox less", func(h *held) { h.sandboxes-- }, "sandboxes: 1, not 2"},
		{"a control group", func(h *held) { h.groups++ }, "control groups: 1, at most 0"},
		{"a zombie", func(h *held) { h.zombies++ }, "zombies: 1, at most 0"},
		{"memory of workers within the slack", func(h *held) { h.workers += workersSlack }, ""},
		{"memory of workers", func(h *held) { h.workers += workersSlack + 1 }, "bytes charged to workers"},
		{"a mount", func(h *held) { h.mounts++ }, "mounts: 1, at most 0"},
		{"an upload", func(h *held) { h.uploads++ }, "uploads: 1, at most 0"},
		{"memory within the slack", func(h *held) { h.heap += heapSlack; h.resident += residentSlack }, ""},
		{"memory", func(h *held) { h.heap += heapSlack + 1 }, "bytes of heap"},
	} {
		t.Run(c.desc, func(t *testing.T) {
			now := before
			c.change(&now)
			if c.grown == "" {
				require.Empty(t, now.grown(before))
				return
			}
			require.Contains(t, now.grown(before), c.grown)
		})
	}
}
