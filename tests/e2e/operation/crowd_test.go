package operation

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/tests/e2e/service"
	"notebox/tests/starter"
)

const (
	// crowdCallers send at the same moment.
	crowdCallers = 200
	// crowdSlack is what a wait may take beyond --max-wait: a busy host's timers,
	// and its clients' own turn.
	crowdSlack = 20 * time.Second
	// refillTime is for a pool after the crowd has left.
	refillTime = time.Minute
)

// census counts a service's sandboxes as often as the daemon answers.
type census struct {
	most, samples int
	err           error
}

// takeCensus counts until stop is called, which returns what was seen.
func takeCensus(t *testing.T, id string) (stop func() census) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	out := make(chan census, 1)
	go func() {
		var c census
		for ctx.Err() == nil && c.err == nil {
			all, err := starter.Sandboxes(context.Background(), id)
			c.most, c.err = max(c.most, len(all)), err
			c.samples++
			time.Sleep(10 * time.Millisecond) // the rest of the machine is for what is counted
		}
		out <- c
	}()
	return func() census { cancel(); return <-out }
}

// crowdAnswer is an answer and when it came.
type crowdAnswer struct {
	service.Answer
	took time.Duration // since all began
}

// crowd sends a request from each of many callers at the same moment, and returns
// all answers.
func crowd(t *testing.T, p *service.Service, callers int, code string, headers ...string) []crowdAnswer {
	t.Helper()
	out, errs := make([]crowdAnswer, callers), make([]error, callers)
	var all sync.WaitGroup
	began := time.Now()
	for i := range callers {
		all.Go(func() {
			out[i].Answer, errs[i] = service.TryAsk(http.MethodPost, p.URL+"/v1/execute", code, headers...)
			out[i].took = time.Since(began)
		})
	}
	all.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
	return out
}

// watchReadiness asks until stop is called, which returns every status that came.
func watchReadiness(p *service.Service) (stop func() map[int]int) {
	ended, out := make(chan struct{}), make(chan map[int]int, 1)
	go func() {
		seen := map[int]int{}
		for {
			a, err := service.TryAsk(http.MethodGet, p.URL+"/readyz", "")
			if err != nil {
				a.Status = 0
			}
			seen[a.Status]++
			select {
			case <-ended:
				out <- seen
				return
			case <-time.After(100 * time.Millisecond):
			}
		}
	}()
	return func() map[int]int { close(ended); return <-out }
}

// requireRefusals checks each answer that is not a reply, and counts all by status.
func requireRefusals(t *testing.T, all []crowdAnswer, within time.Duration) map[int]int {
	t.Helper()
	seen := map[int]int{}
	for _, a := range all {
		seen[a.Status]++
		switch a.Status {
		case http.StatusOK:
			r := a.Reply(t)
			require.Equal(t, "ok", r.Status, r.Text)
			require.LessOrEqual(t, time.Duration(r.Usage.QueueMS)*time.Millisecond, within)
		case http.StatusTooManyRequests, http.StatusServiceUnavailable:
			seconds, err := strconv.Atoi(a.Header.Get("Retry-After"))
			require.NoError(t, err)
			require.GreaterOrEqual(t, seconds, 1)
			require.LessOrEqual(t, a.took, within)
		default:
			require.Fail(t, "neither a reply nor a refusal", "%d: %s", a.Status, a.Body)
		}
	}
	return seen
}

// requireCalm: the pool is filled again, and nothing else is left. It asks the metrics, as
// /readyz runs code every ten seconds.
func requireCalm(t *testing.T, p *service.Service) {
	t.Helper()
	require.Eventually(t, func() bool {
		warm := p.Sandboxes(t, "warm")
		return warm == int(p.Metric(t, "notebox_pool_target")) && warm == int(p.Metric(t, "notebox_sandboxes")) &&
			warm == len(service.SandboxNames(t, p.ID))
	}, refillTime, 100*time.Millisecond)
	uploads, err := os.ReadDir(p.Folder + "/state/uploads")
	require.NoError(t, err)
	require.Empty(t, uploads)
}

// TestCrowd: two hundred at once are all served or turned away in time, with no more
// sandboxes than are allowed.
func TestCrowd(t *testing.T) {
	for _, c := range []struct {
		desc    string
		waiting string
		wait    time.Duration
		served  int // at least
		refused int // at least
	}{
		{desc: "that may wait", waiting: "200", wait: 15 * time.Second, served: 8}, // the places twice; some tens on an idle machine
		{desc: "that may not", waiting: "10", wait: 2 * time.Second, served: 4, refused: crowdCallers / 2},
	} {
		t.Run(c.desc, func(t *testing.T) {
			const allowed = 6
			p := service.Start(t, "crowd-"+c.waiting, "--max-running", "4", "--max-waiting", c.waiting,
				"--max-wait", c.wait.String(), "--max-sandboxes", strconv.Itoa(allowed), "--pool-size", "2")
			counted, ready := takeCensus(t, p.ID), watchReadiness(p)
			all := crowd(t, p, crowdCallers, "print('here')")
			seen, readiness := counted(), ready()

			statuses := requireRefusals(t, all, c.wait+crowdSlack)
			t.Logf("answers: %v; at most %d sandboxes in %d samples; readiness: %v", statuses, seen.most, seen.samples, readiness)
			require.NoError(t, seen.err)
			require.Greater(t, seen.samples, 10)
			require.LessOrEqual(t, seen.most, allowed)
			require.Equal(t, []int{http.StatusOK}, keysOf(readiness), "a service that is full is ready")
			require.GreaterOrEqual(t, statuses[http.StatusOK], c.served)
			require.GreaterOrEqual(t, statuses[http.StatusServiceUnavailable], c.refused)
			requireCalm(t, p)
			require.NoError(t, p.Stop(t.Context()))
			require.Empty(t, service.Containers(t, p.ID))
		})
	}
}

func keysOf(m map[int]int) (out []int) {
	for key := range m {
		out = append(out, key)
	}
	return out
}

// TestCrowdOfOneKey keeps no other key waiting, and has a share of the queue.
func TestCrowdOfOneKey(t *testing.T) {
	folder := t.TempDir()
	require.NoError(t, os.WriteFile(folder+"/keys", []byte("key-a\nkey-b\n"), 0o600))
	const waiting, flood = 40, 60
	p := service.Start(t, "crowd-keys", "--api-keys-file", folder+"/keys",
		"--max-running", "2", "--max-waiting", strconv.Itoa(waiting), "--pool-size", "2")

	var served atomic.Int64 // of key A
	answers := make(chan service.Answer, flood)
	for range flood {
		go func() {
			a, err := service.TryAsk(http.MethodPost, p.URL+"/v1/execute", "import time\ntime.sleep(1)", "Authorization: Bearer key-a")
			if err != nil {
				a.Body = fmt.Append(nil, err)
			}
			if a.Status == http.StatusOK {
				served.Add(1)
			}
			answers <- a
		}()
	}
	seen := map[int]int{}
	take := func() {
		a := <-answers
		seen[a.Status]++
		if a.Status != http.StatusOK {
			require.Equal(t, http.StatusTooManyRequests, a.Status, "%s", a.Body)
			seconds, err := strconv.Atoi(a.Header.Get("Retry-After"))
			require.NoError(t, err)
			require.GreaterOrEqual(t, seconds, 1)
		}
	}
	// Two run, and as many wait as are left free for others: half.
	const accepted = 2 + waiting/2
	for seen[http.StatusTooManyRequests] < flood-accepted-1 { // one may have ended and made room
		take()
	}
	require.Equal(t, http.StatusOK, service.Ask(t, http.MethodGet, p.URL+"/readyz", "").Status, "full, and ready")
	for _, a := range crowd(t, p, 2, "print('b')", "Authorization: Bearer key-b") {
		require.Equal(t, "ok", a.Reply(t).Status)
	}
	require.Less(t, int(served.Load()), accepted/2, "B is through long before A's queue is")
	for seen[http.StatusOK]+seen[http.StatusTooManyRequests] < flood {
		take()
	}
	require.InDelta(t, accepted, seen[http.StatusOK], 1)
}
