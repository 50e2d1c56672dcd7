package adversarial

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
)

var resourceChecks = map[string]Check{
	"host_processes_flat":    hostProcessesFlat,
	"host_disk_untouched":    hostDiskUntouched,
	"sandbox_gone_in_5_s":    sandboxGone,
	"neighbour_half_as_fast": neighbourHalfAsFast,
}

// during calls look again and again while send goes on, at least once.
func during(ctx context.Context, look func(context.Context), send func()) {
	ctx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	all.Go(func() {
		for ctx.Err() == nil {
			look(ctx)
			time.Sleep(settlePoll)
		}
	})
	send()
	cancel()
	all.Wait()
}

// hostProcessesFlat sends the case and counts, meanwhile, the threads that the code
// in all sandboxes of the service has on this machine.
func hostProcessesFlat(ctx context.Context, t *Trial) (out []Failure) {
	most := 0
	during(ctx, func(context.Context) { most = max(most, userThreads(t.Known)) }, func() { out = t.Send(ctx) })
	// The case's sandbox has its limit of 64; the neighbour's and those that wait have
	// a kernel each, of some 15 threads.
	const limit = 64 + (poolSize+2)*20
	if most == 0 || most > limit {
		out = append(out, Failure{Text: fmt.Sprintf("the code had %d threads on the host, not 1 to %d", most, limit)})
	}
	return out
}

// hostDiskUntouched looks at the writable layers that the service's containers have
// on the daemon's disk.
func hostDiskUntouched(ctx context.Context, t *Trial) (out []Failure) {
	var most int64
	looks := 0
	look := func(ctx context.Context) {
		list, err := t.Daemon.api.ContainerList(ctx, container.ListOptions{
			Size: true, Filters: filters.NewArgs(filters.Arg("label", "notebox.service="+t.Service.ID)),
		})
		if err == nil {
			looks++
		}
		for _, c := range list {
			most = max(most, c.SizeRw)
		}
	}
	during(ctx, look, func() { out = t.Send(ctx) })
	if looks == 0 || most > 0 {
		out = append(out, Failure{Text: fmt.Sprintf("in %d looks a container's layer had up to %d bytes, not none", looks, most)})
	}
	return out
}

// sandboxGone measures from the reply to the end of the sandbox that made it.
func sandboxGone(ctx context.Context, t *Trial) []Failure {
	before, err := t.Daemon.Sandboxes(ctx, t.Service.ID)
	if err != nil {
		return []Failure{{Text: err.Error()}}
	}
	out := t.Send(ctx)
	limit := loaded(5*time.Second, t.load.highest())
	for end := time.Now().Add(settleTime); time.Now().Before(end); time.Sleep(settlePoll) {
		now, err := t.Daemon.Sandboxes(ctx, t.Service.ID)
		if err != nil {
			return append(out, Failure{Text: err.Error()})
		}
		gone := slices.ContainsFunc(before, func(id string) bool { return !slices.Contains(now, id) })
		if took := settleTime - time.Until(end); gone && took > limit {
			return append(out, Failure{Late: true, Text: fmt.Sprintf("the sandbox was gone after %v", took)})
		}
		if gone {
			return out
		}
	}
	return append(out, Failure{Text: "the sandbox is still there"})
}

// work takes some 0.2 seconds of one core, and says how long it took.
const work = `import time
begun = time.perf_counter()
for _ in range(5_000_000):
    pass
print(time.perf_counter() - begun)`

// neighbourHalfAsFast measures the same work alone and beside the case.
func neighbourHalfAsFast(ctx context.Context, t *Trial) []Failure {
	alone, _, err := measureWork(ctx, t)
	if err != nil {
		return []Failure{{Text: err.Error()}}
	}
	hogging, cancel := context.WithCancel(ctx)
	defer cancel()
	hog, err := beginStream(hogging, t.Client.URL, t.Attempt.Requests[0].Code)
	if err != nil {
		return []Failure{{Text: err.Error()}}
	}
	beside, busy, err := measureWork(ctx, t)
	if err != nil {
		return []Failure{{Text: err.Error()}}
	}
	cpu, wall, err := hog.cancelled(ctx)
	if err != nil {
		return []Failure{{Text: err.Error()}}
	}
	var out []Failure
	// What holds it back is its limit of one core, whatever else the machine does.
	if cpu > 1.2*wall+0.5 {
		out = append(out, Failure{Text: fmt.Sprintf("it used %.1f s of CPU in %.1f s, more than its one core", cpu, wall)})
	}
	// What wants to run besides these two is not the case's doing.
	others := max(0, busy*float64(runtime.NumCPU())-float64(runtime.NumCPU())-1)
	if limit := 2 * alone * (1 + others/float64(runtime.NumCPU())); beside > limit {
		out = append(out, Failure{Late: true, Text: fmt.Sprintf("the same work took %.2f s alone and %.2f s beside it", alone, beside)})
	}
	return out
}

// measureWork returns the seconds that the work took, and how busy the machine was.
func measureWork(ctx context.Context, t *Trial) (seconds, busy float64, err error) {
	load := measureLoad()
	defer load.stop()
	answers, err := t.Client.Send(ctx, &Request{Code: work, Timeout: 120}, nil)
	if err != nil {
		return 0, 0, err
	}
	if r := answers[0].Reply; r != nil && r.Status == "ok" {
		_, err = fmt.Sscan(r.Text, &seconds)
		return seconds, load.highest(), err
	}
	return 0, 0, fmt.Errorf("the work: %s", answers[0].Body)
}
