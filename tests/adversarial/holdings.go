package adversarial

import (
	"bufio"
	"context"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"notebox/tests/starter"
)

const (
	// firstUser to lastUser are the uids of the users' processes, as in runner/docker:
	// even ones of code, odd ones of the harness's children.
	firstUser, lastUser = 65536, 99999
	// workerUsers are how many of them a worker has, as in runner/docker. The first two are
	// its own, in its cells too.
	workerUsers = 512

	// settleTime bounds the wait until a service is back to where it was. A pool of
	// three is filled in two seconds on a quiet machine, connections to the daemon are
	// closed after 30 s; on a machine under load all of it takes many times as long.
	settleTime = 5 * time.Minute
	settlePoll = 100 * time.Millisecond

	// idleDescriptors and idleGoroutines are what a service may have more than at
	// its start while it goes on: connections to the daemon are kept for 30 s after
	// their last use, one descriptor and two goroutines each. At its end it has to
	// have none of them, see Settled.
	idleDescriptors = 16
	idleGoroutines  = 40
	// workerDescriptors and workerGoroutines are what it has for each worker of cells. One comes
	// with the first run of a language, and a spare one after it; they stay for minutes.
	// Goroutines are three that speak to it and look after it, two of its stream, one that waits
	// for its container's end, and two of the connection by which that waits.
	workerDescriptors = 2
	workerGoroutines  = 8
	// memorySlack is what a service may have resident beyond its start, bytes. Its
	// garbage collector lets the heap grow to twice what lives, and a reply of 8 MiB
	// of output lives as events, as a document and as JSON. It is counted from the
	// start of a service and not from the case before, so that what every case
	// leaves behind adds up to more.
	memorySlack = 160 << 20
	// peakSlack is what it may ever have had beyond its start, bytes: several such
	// replies at once, and far less than the gigabytes that cases try to put out.
	peakSlack = 512 << 20
)

// Holdings are what a service holds of the machine.
type Holdings struct {
	Sandboxes   []string // of this service, by id
	Warm        int      // of these, ready for a run; -1 if no metric tells
	Kernels     int      // processes of users in them
	Workers     int      // that cells are in
	Strays      []string // processes of users in sandboxes of this service that are gone
	Uploads     []string // files of what is under way
	Temporary   []string // files in its temporary folder and parts of files in the store
	Descriptors int
	Goroutines  int   // -1 if it has no metrics that tell
	Resident    int64 // bytes, now
	Peak        int64 // bytes, the most it has had
}

// Look returns what the service holds now; known are the sandboxes that it has had.
func (s *Service) Look(ctx context.Context, d *Daemon, known *Known) (Holdings, error) {
	var h Holdings
	var err error
	if h.Sandboxes, err = d.Sandboxes(ctx, s.ID); err != nil {
		return h, err
	}
	known.add(h.Sandboxes...)
	h.Kernels, h.Strays = userProcesses(known, h.Sandboxes)
	h.Uploads = files(filepath.Join(s.Folder, "state", "uploads"), nil)
	h.Temporary = append(files(filepath.Join(s.Folder, "tmp"), nil),
		files(filepath.Join(s.Folder, "files"), regexp.MustCompile(`\.tmp$`))...)
	h.Goroutines = s.metric(ctx, "go_goroutines")
	for _, state := range []string{"starting", "used", "spare", "ending"} {
		h.Workers += max(0, s.metric(ctx, `notebox_workers{state="`+state+`"}`))
	}
	h.Warm = s.metric(ctx, `notebox_pool_sandboxes{state="warm"}`)
	proc := fmt.Sprintf("/proc/%d", s.PID())
	descriptors, err := os.ReadDir(proc + "/fd")
	if err != nil {
		return h, fmt.Errorf("the service is gone: %w", err)
	}
	h.Descriptors = len(descriptors)
	own, err := status(proc + "/status")
	h.Resident, h.Peak = own.resident, own.peak
	return h, err
}

// more names what is more than at the start, and more than slack.
func (h *Holdings) more(start *Holdings, exactly bool) string {
	descriptors, goroutines := idleDescriptors, idleGoroutines
	if exactly {
		descriptors, goroutines = 0, 0
	}
	workers := max(0, h.Workers-start.Workers)
	descriptors += workers * workerDescriptors
	goroutines += workers * workerGoroutines
	var out []string
	add := func(ok bool, format string, args ...any) {
		if !ok {
			out = append(out, fmt.Sprintf(format, args...))
		}
	}
	add(len(h.Sandboxes) == poolSize, "%d sandboxes, not the %d of the pool", len(h.Sandboxes), poolSize)
	// A sandbox that still starts has not all that it holds later.
	add(h.Warm == poolSize || h.Warm == -1, "%d warm sandboxes, not %d", h.Warm, poolSize)
	add(h.Kernels > 0 || len(h.Sandboxes) == 0, "no process of users is found in them")
	add(h.Kernels <= poolSize, "%d processes of users in them, more than one each", h.Kernels)
	add(len(h.Strays) == 0, "processes of runs that have ended: %q", h.Strays)
	add(len(h.Uploads) == 0, "files of uploads: %q", h.Uploads)
	add(len(h.Temporary) == 0, "temporary files: %q", h.Temporary)
	add(h.Descriptors <= start.Descriptors+descriptors, "%d open files, %d at the start", h.Descriptors, start.Descriptors)
	add(h.Goroutines <= start.Goroutines+goroutines, "%d goroutines, %d at the start", h.Goroutines, start.Goroutines)
	add(h.Resident <= start.Resident+memorySlack, "%d MB of memory, %d MB at the start", h.Resident>>20, start.Resident>>20)
	add(h.Peak <= start.Peak+peakSlack, "%d MB of memory at the most, %d MB at the start", h.Peak>>20, start.Peak>>20)
	return strings.Join(out, "; ")
}

// Settled waits until the service holds what it held at its start, with the slack
// of one that goes on or, at its end, exactly; memory always has its slack.
func (s *Service) Settled(ctx context.Context, d *Daemon, known *Known, start *Holdings, exactly bool) error {
	for deadline := time.Now().Add(settleTime); ; {
		h, err := s.Look(ctx, d, known)
		if err != nil {
			return err
		}
		more := h.more(start, exactly)
		if more == "" {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("after %v there are %s", settleTime, more)
		}
		time.Sleep(settlePoll)
	}
}

// userProcesses counts the processes of users in the sandboxes that are there, and
// lists those in sandboxes that are known and not there any more.
func userProcesses(known *Known, there []string) (n int, strays []string) {
	for folder, p := range ofUsers() {
		switch {
		case slices.Contains(there, p.sandbox):
			if p.user%2 == firstUser%2 {
				n++
			}
		case known.has(p.sandbox):
			name, _ := os.ReadFile(folder + "/comm")
			strays = append(strays, filepath.Base(folder)+" "+strings.TrimSpace(string(name)))
		}
	}
	return n, strays
}

// userThreads counts the threads of users' processes in sandboxes that are known.
func userThreads(known *Known) (n int) {
	for folder, p := range ofUsers() {
		if known.has(p.sandbox) {
			one, _ := status(folder + "/status")
			n += one.threads
		}
	}
	return n
}

// userProcess is one of a sandbox that is not root's.
type userProcess struct {
	user    uint32
	sandbox string // id
}

// ofUsers lists the processes of users on this machine by their folder in /proc.
func ofUsers() map[string]userProcess {
	out := map[string]userProcess{}
	folders, _ := filepath.Glob("/proc/[0-9]*")
	for _, folder := range folders {
		info, err := os.Stat(folder)
		if err != nil {
			continue // it has ended
		}
		if owner, ok := info.Sys().(*syscall.Stat_t); ok && firstUser <= owner.Uid && owner.Uid <= lastUser {
			sandbox := starter.SandboxOf(folder)
			if starter.IsCell(sandbox) && (owner.Uid-firstUser)%workerUsers < 2 {
				continue // the harness of a cell is its worker's
			}
			out[folder] = userProcess{owner.Uid, sandbox}
		}
	}
	return out
}

// files lists what is below a folder, folders left out, whose name matches.
func files(folder string, name *regexp.Regexp) (out []string) {
	_ = filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && (name == nil || name.MatchString(path)) {
			out = append(out, strings.TrimPrefix(path, folder+"/"))
		}
		return nil // what is removed meanwhile is not there
	})
	return out
}

// process is what the kernel says of one; see proc_pid_status(5).
type process struct {
	threads        int
	resident, peak int64 // bytes
}

func status(file string) (p process, err error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return p, fmt.Errorf("the process is gone: %w", err)
	}
	for line := range strings.Lines(string(raw)) {
		name, value, _ := strings.Cut(line, ":")
		number, _ := strconv.ParseInt(strings.Fields(value + " 0")[0], 10, 64)
		switch name {
		case "Threads":
			p.threads = int(number)
		case "RssAnon":
			p.resident = number << 10 // from KiB
		case "VmHWM":
			p.peak = number << 10
		}
	}
	return p, nil
}

// metric asks the service's metrics for one; -1 if they do not have it.
func (s *Service) metric(ctx context.Context, name string) int {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+"/metrics", nil)
	if err != nil {
		return -1
	}
	res, err := (&http.Client{Transport: direct()}).Do(req)
	if err != nil {
		return -1
	}
	defer res.Body.Close()
	for lines := bufio.NewScanner(res.Body); lines.Scan(); {
		if text, ok := strings.CutPrefix(lines.Text(), name+" "); ok {
			n, err := strconv.ParseFloat(text, 64)
			if err == nil {
				return int(n)
			}
		}
	}
	return -1
}
