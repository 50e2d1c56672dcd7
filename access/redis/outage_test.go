package redis_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/access"
	"notebox/storage/storagetest"
)

// TestOutage: without the store each of three services holds its part, all together the whole.
// The store comes back without its data, and hears all again.
func TestOutage(t *testing.T) {
	t.Parallel()
	server := storagetest.Redis(t)
	all := begin(t, 3, server.URL(t), access.Limits{RunsAtOnce: 10, CPUPerDay: 100 * time.Second})
	first := all[0].places(t, 2)
	require.Len(t, first, 2)
	first[0].Charge(40 * time.Second)
	first[0].End()
	for _, s := range all { // each hears of the 40 s
		r, err := s.alice(t).BeginRun()
		require.NoError(t, err)
		r.End()
	}

	server.Stop(t)
	requireState(t, all, access.SharingDown)
	time.Sleep(2500 * time.Millisecond) // until then it might only be slow
	var runs []*access.Run
	for _, s := range all {
		runs = append(runs, s.places(t, 11)...)
	}
	require.Len(t, append(runs, first[1]), 10, "4, 3 and 3 are the parts, of which one was taken")
	requireState(t, all, access.SharingDown)
	for _, s := range all {
		require.Equal(t, 3, s.sharing(t).Services)
		requireRefused(t, s.alice(t).MayBeginRun(), access.ReasonRuns)
		begun := time.Now()
		_, err := s.alice(t).BeginRun()
		requireRefused(t, err, access.ReasonRuns)
		require.Less(t, time.Since(begun), 20*time.Millisecond, "the store is not asked")
	}
	spent := 0.0
	for i, r := range runs {
		r.Charge(time.Second)
		spent++
		if i%2 == 0 {
			r.End()
		}
	}
	for _, s := range all {
		for {
			some := s.places(t, 1)
			if len(some) == 0 {
				break
			}
			some[0].Charge(time.Second)
			spent++
			some[0].End()
			if s.alice(t).MayUseCPU() != nil {
				break
			}
		}
	}
	requireWithin(t, 60, spent, "CPU seconds of what was left, without the store")

	time.Sleep(2 * time.Second) // it is tried, and fails: that is not logged
	server.Start(t)
	requireState(t, all, access.SharingOK)
	for _, s := range all {
		require.Equal(t, 1, s.log.count("level=WARN"), "once")
		require.Equal(t, 1, s.log.count("level=INFO"))
		require.NotContains(t, s.log.text.String(), aKey)
		require.Eventually(t, func() bool {
			_, err := s.alice(t).BeginRun()
			return err != nil && s.alice(t).MayUseCPU() != nil
		}, 10*time.Second, 50*time.Millisecond, "all heard what the others have charged")
	}
}

// TestPlacesAfterAnOutage: those that are held count again.
func TestPlacesAfterAnOutage(t *testing.T) {
	t.Parallel()
	server := storagetest.Redis(t)
	all := begin(t, 3, server.URL(t), access.Limits{RunsAtOnce: 6})
	held := all[0].places(t, 4)
	require.Len(t, held, 4)
	server.Stop(t)
	require.Len(t, all[1].places(t, 5), 2)
	requireState(t, all[1:2], access.SharingDown)
	held[0].End() // the store does not hear of it, and has forgotten it
	server.Start(t)
	requireState(t, all, access.SharingOK)
	time.Sleep(2 * time.Second) // all services have said all
	require.Len(t, all[2].places(t, 6), 1)
}

// TestRequestsOverAnOutage: the minute's requests are as many as without it.
func TestRequestsOverAnOutage(t *testing.T) {
	t.Parallel()
	server := storagetest.Redis(t)
	all := begin(t, 3, server.URL(t), access.Limits{RequestsPerMinute: 600})
	var passed atomic.Int64
	begun := time.Now()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		everywhere(t, all, func(alice *access.Caller) bool {
			if alice.Request() == nil {
				passed.Add(1)
			} else {
				time.Sleep(time.Millisecond)
			}
			return time.Since(begun) < 12*time.Second
		})
	}()
	time.Sleep(4 * time.Second)
	server.Stop(t)
	time.Sleep(4 * time.Second)
	server.Start(t)
	<-ended
	requireWithin(t, 600+10*time.Since(begun).Seconds(), float64(passed.Load()), "requests")
	requireState(t, all, access.SharingOK)
}

// TestStartWithoutTheStore: a service serves, and finds the store later.
func TestStartWithoutTheStore(t *testing.T) {
	t.Parallel()
	server := storagetest.Redis(t)
	url := server.URL(t)
	server.Stop(t)
	one := open(t, url, access.Limits{RunsAtOnce: 2})
	require.Equal(t, access.Sharing{Store: access.SharingDown, Services: 1, Calls: 1, Failed: 1}, one.sharing(t))
	require.Len(t, one.places(t, 3), 2)
	server.Start(t)
	requireState(t, []*service{one}, access.SharingOK)
}

// childURL is set in a process of TestKilled's own.
const childURL = "NOTEBOX_TEST_CHILD_URL"

// TestKilled: the places of a service that was killed are free after a Lease, and not before.
func TestKilled(t *testing.T) {
	limits := access.Limits{RunsAtOnce: 4}
	if url := os.Getenv(childURL); url != "" {
		require.Len(t, open(t, url, limits).places(t, 3), 3)
		fmt.Println("three places")
		time.Sleep(time.Hour)
	}
	t.Parallel()
	url := storagetest.Redis(t).URL(t)
	child := exec.Command(os.Args[0], "-test.run=^TestKilled$", "-test.v")
	child.Env = append(os.Environ(), childURL+"="+url)
	out, err := child.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())
	defer func() { _ = child.Wait() }()
	defer func() { _ = child.Process.Kill() }()
	for lines := bufio.NewScanner(out); lines.Scan() && lines.Text() != "three places"; {
	}
	other := open(t, url, limits)
	require.Equal(t, 2, other.sharing(t).Services)
	time.Sleep(access.Lease + time.Second) // renewed
	require.Len(t, other.places(t, 4), 1)

	require.NoError(t, child.Process.Kill())
	killed := time.Now()
	require.Empty(t, other.places(t, 1), "not yet")
	var again int
	require.Eventually(t, func() bool {
		again += len(other.places(t, 4))
		return again == 3
	}, access.Lease+2*time.Second, 50*time.Millisecond)
	t.Logf("all places were back %s after the kill", time.Since(killed))
	require.Eventually(t, func() bool { return other.sharing(t).Services == 1 }, 3*access.Lease, 50*time.Millisecond)
}
