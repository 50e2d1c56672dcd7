package adversarial

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	loadCallers = 16
	// badShare is how many of the requests are bad.
	badShare = 0.2
	// loadSeconds is how long each half lasts without NOTEBOX_LOAD_SECONDS: long
	// enough for every caller to have several turns on two cores.
	loadSeconds = 8
	// slower is how many times longer the slowest hundredth of the good requests may
	// take beside bad ones.
	slower = 5
)

// loadSettings are ordinary ones, with a queue that nobody has to be refused by:
// 16 callers and the case that sends two at once.
var loadSettings = map[string]string{
	"memory":        "1GiB", // so that several that fill it leave the machine alone
	"data-size":     "256MiB",
	"max-waiting":   "64",
	"max-wait":      "10m",
	"start-timeout": "5m", // a busy machine is no fault
}

var seed = flag.Uint64("seed", 0, "of the requests under load (default: a random one, which is printed)")

// TestUnderLoad has 16 callers send good requests, and then good and bad ones: the
// good ones are answered right and in time, nothing is a 5xx, nothing is left. How
// long they may take is required if NOTEBOX_LOAD_SECONDS says that this is a
// measurement, as a machine that does other work at the same time tells nothing.
func TestUnderLoad(t *testing.T) {
	seconds, measured := loadSeconds, false
	if text := os.Getenv("NOTEBOX_LOAD_SECONDS"); text != "" {
		var err error
		seconds, err = strconv.Atoi(text)
		require.NoError(t, err, "NOTEBOX_LOAD_SECONDS")
		measured = true
	}
	if *seed == 0 {
		*seed = rand.Uint64()
	}
	t.Logf("seed %d", *seed)
	worst := badOnes(t)
	daemon, err := OpenDaemon()
	require.NoError(t, err)
	defer daemon.Close()
	g := group{settings: loadSettings}
	trial := g.start(t, daemon, fmt.Sprintf("adversarial-%d-load", os.Getpid()))

	half := time.Duration(seconds) * time.Second
	alone := mix{trial: trial}.send(t.Context(), half)
	t.Log("good ones alone: ", alone)
	mixed := mix{trial: trial, bad: worst}.send(t.Context(), half)
	t.Log("with 20% bad ones: ", mixed)
	for _, half := range []*tally{alone, mixed} {
		require.Empty(t, half.failures)
		require.NotEmpty(t, half.good, "no good request was answered")
	}
	require.NotEmpty(t, mixed.bad, "no bad request was sent")
	ratio := float64(mixed.quantile(0.99)) / float64(alone.quantile(0.99))
	t.Logf("p99 beside bad ones is %.2f times that without", ratio)
	if measured {
		require.LessOrEqual(t, ratio, float64(slower), "p99 beside bad requests, in times of that without")
	}
	g.end(t, trial)
	require.Empty(t, planted.canary.Found(), "a secret got out")
}

// mix are callers of one service.
type mix struct {
	trial *Trial
	bad   []bad // none: good requests only
}

// send has each caller send one request after another until the time is over, and
// returns when the last one has its answer.
func (m mix) send(ctx context.Context, during time.Duration) *tally {
	connections := &http.Transport{MaxIdleConnsPerHost: loadCallers}
	defer connections.CloseIdleConnections()
	client := *m.trial.Client
	client.Transport = connections
	out := &tally{statuses: map[int]int{}, bad: map[string]int{}, other: map[string]int{}, begun: time.Now()}
	var callers sync.WaitGroup
	for i := range loadCallers {
		callers.Go(func() {
			r := rand.New(rand.NewPCG(*seed, uint64(i)))
			first := i%int(1/badShare) == 0 // is bad whatever chance says: a short half has some too
			for time.Since(out.begun) < during && ctx.Err() == nil {
				turn := first || r.Float64() < badShare
				first = false
				if len(m.bad) > 0 && turn {
					out.sendBad(ctx, &client, r, m.bad)
				} else {
					out.sendGood(ctx, &client, r)
				}
			}
		})
	}
	callers.Wait()
	out.took = time.Since(out.begun)
	return out
}

// tally is what came of the requests of several callers.
type tally struct {
	begun time.Time
	took  time.Duration

	mu       sync.Mutex
	good     []time.Duration // how long each good run took, the wait included
	bad      map[string]int  // how many of each
	other    map[string]int  // bad ones whose outcome is not the one of their case
	statuses map[int]int     // of all requests, by HTTP; 0 if the client left
	failures []string
}

func (l *tally) sendGood(ctx context.Context, c *Client, r *rand.Rand) {
	one := goodKinds[r.IntN(len(goodKinds))](r)
	var answers []*Answer
	var before *Answer
	for i := range one.requests {
		now, err := c.Send(ctx, &one.requests[i], before)
		l.count(one.kind, now, err)
		if err != nil {
			return
		}
		before = now[0]
		answers = append(answers, before)
		for _, f := range one.requests[i].Expect.Failures(before, 1) {
			l.fail(one.kind, f.Text)
			return
		}
	}
	if one.wrong != nil {
		if text := one.wrong(answers); text != "" {
			l.fail(one.kind, text)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.good = append(l.good, answers[0].Took)
}

// sendBad requires an answer only: what a run is ended by depends on the limits and
// on what else the machine does. That each outcome is right, TestCases shows.
func (l *tally) sendBad(ctx context.Context, c *Client, r *rand.Rand, all []bad) {
	id, requests := pick(r, all)
	var before *Answer
	for i := range requests {
		now, err := c.Send(ctx, &requests[i], before)
		if errors.Is(err, errNoLink) {
			return // the run before has ended early, and left no file
		}
		l.count(id, now, err)
		if err != nil {
			return
		}
		before = now[0]
		l.mu.Lock()
		l.bad[id]++
		if wrong := requests[i].Expect.wrong(before); !before.Left && len(wrong) > 0 {
			l.other[fmt.Sprintf("%s: %.150s", id, wrong[0])]++
		}
		l.mu.Unlock()
	}
}

// count notes the statuses of answers, and what may never come.
func (l *tally) count(what string, answers []*Answer, err error) {
	if err != nil {
		l.fail(what, err.Error())
		return
	}
	for _, a := range answers {
		l.mu.Lock()
		l.statuses[a.Status]++
		l.mu.Unlock()
		if a.Status >= 500 {
			l.fail(what, fmt.Sprintf("HTTP %d: %s", a.Status, shown(string(a.Body))))
		}
	}
}

func (l *tally) fail(what, text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failures = append(l.failures, what+": "+text)
}

// quantile is the good requests' latency that a share of them stays within.
func (l *tally) quantile(share float64) time.Duration {
	if len(l.good) == 0 {
		return 0
	}
	slices.Sort(l.good)
	return l.good[int(share*float64(len(l.good)-1)+0.5)]
}

func (l *tally) String() string {
	sent := 0
	for n := range maps.Values(l.bad) {
		sent += n
	}
	return fmt.Sprintf("%d good runs, p50 %v, p99 %v; %d bad requests; %v in all; by HTTP status %v; otherwise than alone %v",
		len(l.good), l.quantile(0.5).Round(time.Millisecond), l.quantile(0.99).Round(time.Millisecond),
		sent, l.took.Round(time.Second), l.statuses, l.other)
}
