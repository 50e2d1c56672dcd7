package adversarial

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	// leftName is what the code of F10 calls its process.
	leftName = "left-behind"
	// leftLimit is how long its sandbox may be there after its client left.
	leftLimit = 2 * time.Second
	// beginLimit bounds the wait for the code to begin.
	beginLimit = 60 * time.Second
	// crowdSandboxes and crowdRunning are the case's --max-sandboxes and --max-running.
	crowdSandboxes, crowdRunning = 6, 3
)

// named returns the sandboxes of this service in which a process has called itself
// leftName.
func (t *Trial) named() (ids []string) {
	for folder, p := range ofUsers() {
		name, _ := os.ReadFile(folder + "/comm")
		if strings.TrimSpace(string(name)) == leftName && t.Known.has(p.sandbox) && !slices.Contains(ids, p.sandbox) {
			ids = append(ids, p.sandbox)
		}
	}
	return ids
}

// awaitNamed waits until so many sandboxes run the case's code.
func (t *Trial) awaitNamed(n int) ([]string, error) {
	for deadline := time.Now().Add(loaded(beginLimit, t.load.highest())); ; time.Sleep(settlePoll) {
		if ids := t.named(); len(ids) == n {
			return ids, nil
		}
		if time.Now().After(deadline) {
			return nil, fmt.Errorf("%d runs did not begin: %q", n, t.named())
		}
	}
}

// leave starts the case's request and returns when its code runs; gone closes its
// connection and returns when the client is through.
func (t *Trial) leave(ctx context.Context) (gone func()) {
	ctx, cancel := context.WithCancel(ctx)
	over := make(chan struct{})
	go func() {
		defer close(over)
		_, _ = t.Client.Send(ctx, &t.Attempt.Requests[0], nil) // an error, as it is cut off
	}()
	return func() {
		cancel()
		<-over
	}
}

// leftSandboxEnds leaves while the code runs, and looks when its sandbox is gone.
func leftSandboxEnds(ctx context.Context, t *Trial) (out []Failure) {
	gone := t.leave(ctx)
	ids, err := t.awaitNamed(1)
	gone()
	if err != nil {
		return []Failure{failed("%v", err)}
	}
	left := time.Now()
	for {
		there, err := t.Daemon.Sandboxes(ctx, t.Service.ID)
		if err != nil {
			return []Failure{failed("%v", err)}
		}
		took := time.Since(left)
		if !slices.Contains(there, ids[0]) {
			if limit := loaded(leftLimit, t.load.highest()); took > limit {
				out = append(out, Failure{Late: true, Text: fmt.Sprintf("the sandbox was gone %v after its client, more than %v", took, limit)})
			}
			return out
		}
		if took > settleTime {
			return []Failure{failed("the sandbox is there %v after its client", took)}
		}
		time.Sleep(settlePoll)
	}
}

// leftQueue fills all places and the queue. Those who wait leave; then others may wait.
func leftQueue(ctx context.Context, t *Trial) (out []Failure) {
	t.Attempt.Requests = []Request{{Code: leftBehind, Timeout: 60}}
	var leave []func()
	defer func() {
		for _, gone := range leave {
			gone()
		}
	}()
	for range crowdRunning - 1 { // the neighbour has one
		leave = append(leave, t.leave(ctx))
	}
	if _, err := t.awaitNamed(crowdRunning - 1); err != nil {
		return []Failure{failed("%v", err)}
	}
	full := Request{Code: "print('ran')", AtOnce: 4, LeaveAfter: 1}
	answers, err := t.Client.Send(ctx, &full, nil)
	if err != nil {
		return []Failure{failed("%v", err)}
	}
	for _, a := range answers {
		if !a.Left {
			out = append(out, failed("one that should wait got HTTP %d: %s", a.Status, shown(string(a.Body))))
		}
	}
	waits := make(chan []Failure, 1)
	go func() { waits <- t.waitInQueue(ctx, 4) }()
	time.Sleep(time.Second) // they wait now, or have been refused
	for _, gone := range leave {
		gone()
	}
	leave = nil
	return append(out, <-waits...)
}

// waitInQueue sends so many requests, each again while the service has not noticed yet
// that others left its queue, and wants that all run.
func (t *Trial) waitInQueue(ctx context.Context, n int) (out []Failure) {
	deadline := time.Now().Add(loaded(beginLimit, t.load.highest()))
	failures := make(chan []Failure, n)
	for range n {
		go func() {
			r := Request{Code: "print('ran')", Expect: Expect{Run: list[string]{"ok"}}}
			for {
				answers, err := t.Client.Send(ctx, &r, nil)
				if err != nil {
					failures <- []Failure{failed("%v", err)}
					return
				}
				if answers[0].Status != 503 || time.Now().After(deadline) {
					failures <- r.Expect.Failures(answers[0], t.load.highest())
					return
				}
				time.Sleep(settlePoll)
			}
		}()
	}
	for range n {
		out = append(out, <-failures...)
	}
	return out
}

// leftBehind is the code of F10.
const leftBehind = `import ctypes, time
ctypes.CDLL(None).prctl(15, b'` + leftName + `', 0, 0, 0)
time.sleep(60)`

// crowd sends the case's requests at one moment. Meanwhile no more sandboxes are there
// than may be; of the runs no more than may went on at any time.
func crowd(ctx context.Context, t *Trial) []Failure {
	watching, stop := context.WithCancel(ctx)
	defer stop()
	most := 0
	var watch sync.WaitGroup
	watch.Go(func() {
		for watching.Err() == nil {
			if ids, err := t.Daemon.Sandboxes(watching, t.Service.ID); err == nil {
				most = max(most, len(ids))
			}
			time.Sleep(settlePoll / 4)
		}
	})
	answers, out := t.SendAll(ctx)
	stop()
	watch.Wait()
	if most > crowdSandboxes {
		out = append(out, failed("there were %d sandboxes, more than %d", most, crowdSandboxes))
	}
	ran := 0
	var moments []moment
	for _, a := range answers {
		if a.Status != 200 || a.Reply == nil {
			if wait, err := strconv.Atoi(a.Header.Get("Retry-After")); err != nil || wait < 1 || wait > 60 {
				out = append(out, failed("HTTP %d with Retry-After %q", a.Status, a.Header.Get("Retry-After")))
			}
			continue
		}
		ran++
		var begin, end float64
		if _, err := fmt.Sscan(a.Reply.Text, &begin, &end); err != nil || a.Reply.Status != "ok" {
			out = append(out, failed("a run is %s and printed %s", a.Reply.Status, shown(a.Reply.Text)))
		}
		moments = append(moments, moment{begin, 1}, moment{end, -1})
	}
	if ran < crowdRunning || ran == len(answers) {
		out = append(out, failed("%d of %d ran", ran, len(answers)))
	}
	if n := highest(moments); n > crowdRunning-1 { // the neighbour runs too
		out = append(out, failed("%d ran at one time", n))
	}
	return out
}

// moment is when so many more, or fewer, run.
type moment struct {
	at   float64
	more int
}

func highest(moments []moment) (most int) {
	slices.SortFunc(moments, func(a, b moment) int {
		switch {
		case a.at < b.at:
			return -1
		case a.at > b.at:
			return 1
		}
		return a.more - b.more
	})
	now := 0
	for _, m := range moments {
		now += m.more
		most = max(most, now)
	}
	return most
}
