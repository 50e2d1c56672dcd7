package redis_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/access"
	"notebox/storage/storagetest"
)

// callersPerService is more than any limit of these tests lets through.
const callersPerService = 8

// everywhere calls f from many callers at each service, until it returns false for each.
func everywhere(t *testing.T, all []*service, f func(alice *access.Caller) bool) {
	t.Helper()
	var callers sync.WaitGroup
	for _, s := range all {
		alice := s.alice(t)
		for range callersPerService {
			callers.Go(func() {
				for f(alice) {
				}
			})
		}
	}
	callers.Wait()
}

// requireWithin is the promise: to a tenth.
func requireWithin(t *testing.T, limit, got float64, what string) {
	t.Helper()
	t.Logf("%s: %.1f of %.1f, %+.1f %%", what, got, limit, 100*(got/limit-1))
	require.InDelta(t, limit, got, limit/10, what)
}

func TestRequestsOfThreeServices(t *testing.T) {
	t.Parallel()
	all := begin(t, 3, storagetest.Redis(t).URL(t), access.Limits{RequestsPerMinute: 600})
	var passed atomic.Int64
	begun := time.Now()
	end := begun.Add(6 * time.Second)
	everywhere(t, all, func(alice *access.Caller) bool {
		if err := alice.Request(); err == nil {
			passed.Add(1)
		} else {
			requireRefused(t, err, access.ReasonRequests)
			time.Sleep(time.Millisecond)
		}
		return time.Now().Before(end)
	})
	requireWithin(t, 600+10*time.Since(begun).Seconds(), float64(passed.Load()), "requests")
	requireState(t, all, access.SharingOK)
}

func TestRunsOfThreeServices(t *testing.T) {
	t.Parallel()
	const limit = 10
	all := begin(t, 3, storagetest.Redis(t).URL(t), access.Limits{RunsAtOnce: limit})
	var now, most, ended atomic.Int64
	end := time.Now().Add(4 * time.Second)
	everywhere(t, all, func(alice *access.Caller) bool {
		r, err := alice.BeginRun()
		if err != nil {
			requireRefused(t, err, access.ReasonRuns)
			time.Sleep(time.Millisecond)
			return time.Now().Before(end)
		}
		here := now.Add(1)
		for {
			before := most.Load()
			if here <= before || most.CompareAndSwap(before, here) {
				break
			}
		}
		time.Sleep(20 * time.Millisecond)
		now.Add(-1)
		r.End()
		ended.Add(1)
		return time.Now().Before(end)
	})
	t.Logf("%d runs", ended.Load())
	requireWithin(t, limit, float64(most.Load()), "runs at once")

	again := all[0].places(t, limit+1) // all places were given back
	require.Len(t, again, limit)
	_, err := all[1].alice(t).BeginRun()
	requireRefused(t, err, access.ReasonRuns)
	again[0].End()
	again[0].End()
	require.Len(t, all[2].places(t, 2), 1)
}

func TestCPUTimeOfThreeServices(t *testing.T) {
	t.Parallel()
	all := begin(t, 3, storagetest.Redis(t).URL(t), access.Limits{CPUPerDay: 100 * time.Second})
	var charged atomic.Int64
	everywhere(t, all, func(alice *access.Caller) bool {
		r, err := alice.BeginRun()
		if err != nil {
			requireRefused(t, err, access.ReasonCPU)
			return false
		}
		r.Charge(100 * time.Millisecond)
		charged.Add(100)
		r.End()
		return true
	})
	requireWithin(t, 100, float64(charged.Load())/1000, "CPU seconds")
	for _, s := range all {
		requireRefused(t, s.alice(t).MayBeginRun(), access.ReasonCPU)
	}
	late := open(t, all[0].url, all[0].limits) // one that has charged nothing
	requireRefused(t, late.alice(t).MayUseCPU(), access.ReasonCPU)
}

// TestCallsOfARun: what limits cost. Without limits nothing is asked.
func TestCallsOfARun(t *testing.T) {
	t.Parallel()
	const runs = 50
	for _, c := range []struct {
		desc, key string
		limits    access.Limits
		calls     float64
	}{
		{"no limits", "bob's", access.Limits{}, 0},
		{"requests a minute", aKey, access.Limits{RequestsPerMinute: 6000}, 1},
		{"runs at once", aKey, access.Limits{RunsAtOnce: 10}, 2},
		{"CPU time", aKey, access.Limits{CPUPerDay: time.Hour}, 2},
		{"all", aKey, access.Limits{RequestsPerMinute: 6000, RunsAtOnce: 10, CPUPerDay: time.Hour}, 3},
	} {
		t.Run(c.desc, func(t *testing.T) {
			one := begin(t, 1, storagetest.Redis(t).URL(t), c.limits)[0]
			time.Sleep(1200 * time.Millisecond) // its first reports
			before, begun := one.sharing(t).Calls, time.Now()
			for range runs {
				caller := one.caller(t, c.key)
				require.NoError(t, caller.Request())
				require.NoError(t, caller.MayBeginRun())
				r, err := caller.BeginRun()
				require.NoError(t, err)
				r.Charge(time.Millisecond)
				r.End()
			}
			took := time.Since(begun) / runs
			calls := float64(one.sharing(t).Calls-before) / runs
			t.Logf("%.2f calls a run, %s", calls, took)
			require.InDelta(t, c.calls, calls, 0.1)
		})
	}
}

// TestIdle: a service that nobody calls reports every five seconds, and no more.
func TestIdle(t *testing.T) {
	t.Parallel()
	one := begin(t, 1, storagetest.Redis(t).URL(t), access.Limits{RunsAtOnce: 1, RequestsPerMinute: 10})[0]
	time.Sleep(2 * time.Second) // its first reports
	before := one.sharing(t).Calls
	time.Sleep(2 * access.Lease / 3)
	require.InDelta(t, 2, float64(one.sharing(t).Calls-before), 1)
}
