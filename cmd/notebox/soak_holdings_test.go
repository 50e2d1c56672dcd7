package main

import (
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/runner/docker"
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
)

// holdings looks at what a service holds: its own, and of the machine where it
// is alone on it.
type holdings struct {
	program *program
	folder  string
	alone   bool
}

// held is what must come back to where it was.
type held struct {
	goroutines  int
	descriptors int
	containers  int // of this service: its waiting sandboxes
	uploads     int // entries of the folder for what is under way
	state       int // entries of the rest of the state folder
	temporary   int // files of the store that are not whole
	children    int // of this process, and what has ended and was not waited for
	foreign     int // on the whole machine: users' processes, and containerd's shims
	layers      int // of the daemon's storage

	heap, resident int64 // bytes; see heapSlack
}

func (h held) String() string {
	return fmt.Sprintf("%d goroutines, %d descriptors, %d containers, %d uploads, %d state files, %d temporary files, "+
		"%d children, %d sandbox processes and shims, %d layers, %.1f MB heap, %.1f MB resident",
		h.goroutines, h.descriptors, h.containers, h.uploads, h.state, h.temporary,
		h.children, h.foreign, h.layers, float64(h.heap)/1e6, float64(h.resident)/1e6)
}

// counts are all that are compared exactly.
func (h held) counts() held {
	h.heap, h.resident = 0, 0
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
				t.Log(stacks())
			}
			require.FailNow(t, "it has grown", "%s\nbefore: %s\nafter:  %s", grown, before, now)
		}
		time.Sleep(settlePoll)
	}
}

// grown names what is more than before. Containers must be as many: a pool that is
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
		{"bytes of heap", int(before.heap + heapSlack), int(h.heap)},
		{"resident bytes", int(before.resident + residentSlack), int(h.resident)},
	} {
		if c.now > c.before {
			out = append(out, fmt.Sprintf("%s: %d, at most %d", c.what, c.now, c.before))
		}
	}
	if h.containers != before.containers {
		out = append(out, fmt.Sprintf("containers: %d, not %d", h.containers, before.containers))
	}
	return strings.Join(out, "; ")
}

func (h *holdings) look(t *testing.T) held {
	t.Helper()
	http.DefaultClient.CloseIdleConnections() // those of these tests
	state := entries(t, h.folder+"/state", func(string) bool { return true })
	uploads := entries(t, h.folder+"/state/uploads", func(string) bool { return true })
	now := held{
		containers: len(sandboxes(t, h.program.settings.serviceID)),
		uploads:    uploads,
		state:      state - uploads,
		temporary:  entries(t, h.folder+"/files", func(name string) bool { return filepath.Ext(name) == ".tmp" }),
		children:   children(t),
	}
	if h.alone {
		now.foreign, now.layers = foreignProcesses(t), layers(t)
	}
	debug.FreeOSMemory() // runs the garbage collector first
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	now.heap, now.resident = int64(memory.HeapInuse), resident(t)
	// Last, and in this order: reading a folder takes a descriptor.
	now.goroutines = runtime.NumGoroutine()
	list, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	now.descriptors = len(list)
	return now
}

// entries counts what is below a folder, itself left out; 0 where there is none.
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

func resident(t *testing.T) int64 {
	t.Helper()
	raw, err := os.ReadFile("/proc/self/statm") // in pages; proc_pid_statm(5)
	require.NoError(t, err)
	pages, err := strconv.ParseInt(strings.Fields(string(raw))[1], 10, 64)
	require.NoError(t, err)
	return pages * int64(os.Getpagesize())
}

// children counts this process's.
func children(t *testing.T) int {
	t.Helper()
	return processes(t, func(_ string, status string) bool {
		return strings.Contains(status, fmt.Sprintf("\nPPid:\t%d\n", os.Getpid()))
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

// layers counts the folders of the daemon's overlay2, or 0 where they cannot be
// seen from here.
func layers(t *testing.T) int {
	t.Helper()
	root, err := exec.Command("docker", "info", "--format", "{{.DockerRootDir}}").Output()
	require.NoError(t, err)
	list, _ := os.ReadDir(filepath.Join(strings.TrimSpace(string(root)), "overlay2"))
	return len(list)
}

func stacks() string {
	all := make([]byte, 1<<20)
	return string(all[:runtime.Stack(all, true)])
}

// TestHoldings: what grows is named.
func TestHoldings(t *testing.T) {
	before := held{goroutines: 10, containers: 2, heap: 1 << 20, resident: 100 << 20}
	for _, c := range []struct {
		desc   string
		change func(*held)
		grown  string
	}{
		{"the same", func(*held) {}, ""},
		{"less", func(h *held) { h.goroutines = 9 }, ""},
		{"a goroutine", func(h *held) { h.goroutines++ }, "goroutines: 11, at most 10"},
		{"a container more", func(h *held) { h.containers++ }, "containers: 3, not 2"},
		{"a container less", func(h *held) { h.containers-- }, "containers: 1, not 2"},
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
