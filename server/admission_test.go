package server

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/runner"
	"notebox/runner/admission"
)

// TestTwoHundredAtOnce sends a service with room for four two hundred requests
// of two keys at one time.
func TestTwoHundredAtOnce(t *testing.T) {
	const (
		requests = 200
		maxWait  = 500 * time.Millisecond
		slack    = 5 * time.Second // until a busy host has got to each of them
	)
	keys, err := NewKeys("one", "two")
	require.NoError(t, err)
	var inside, most atomic.Int64
	s := newService(t, func(c *Config) {
		c.Keys = keys
		c.Runner = admission.New(runFunc(func(_ context.Context, spec runner.Spec, _ runner.Sink) (*runner.Outcome, error) {
			now := inside.Add(1)
			for m := most.Load(); now > m && !most.CompareAndSwap(m, now); m = most.Load() {
			}
			defer inside.Add(-1)
			time.Sleep(50 * time.Millisecond)
			return executed(spec, runner.StatusOK), nil
		}), admission.Limits{MaxRunning: 4, MaxWaiting: 60, MaxWait: maxWait, ShareWaiting: true})
	})
	var all sync.WaitGroup
	got := make([]answer, requests)
	took := make([]time.Duration, requests)
	for i := range requests {
		req := s.request(http.MethodPost, "/v1/execute", "text/x-python", strings.NewReader("x"))
		req.Header.Set("X-API-Key", []string{"one", "two"}[i%2])
		all.Go(func() {
			begun := time.Now()
			got[i] = s.do(req)
			took[i] = time.Since(begun)
		})
	}
	all.Wait()
	for i, a := range got {
		require.Contains(t, []int{200, 429, 503}, a.StatusCode, "%s", a.body)
		require.Less(t, took[i], maxWait+slack)
		if a.StatusCode == 200 {
			require.Less(t, s.replied(a).Usage["queue_ms"], (maxWait + slack).Milliseconds())
			continue
		}
		seconds, err := strconv.Atoi(a.Header.Get("Retry-After"))
		require.NoError(t, err)
		require.Positive(t, seconds)
	}
	require.LessOrEqual(t, most.Load(), int64(4))
}

func TestReadyWhenFull(t *testing.T) {
	var a *admission.Admission
	started, end := make(chan struct{}), make(chan struct{})
	s := newService(t, func(c *Config) {
		a = admission.New(runFunc(func(_ context.Context, spec runner.Spec, _ runner.Sink) (*runner.Outcome, error) {
			close(started)
			<-end
			return executed(spec, runner.StatusOK), nil
		}), admission.Limits{MaxRunning: 1})
		c.Runner = a
		c.Ready = func(context.Context) error { return nil }
	})
	var first sync.WaitGroup
	first.Go(func() { s.postJSON(`{"code":"x"}`) })
	<-started
	s.requireProblem(s.postJSON(`{"code":"x"}`), 503, "too many runs are waiting")
	require.Equal(t, 200, s.get("/readyz").StatusCode)
	close(end)
	first.Wait()
}

// TestWhoLeavesFreesItsPlace has a client go away while its request waits.
func TestWhoLeavesFreesItsPlace(t *testing.T) {
	end := make(chan struct{})
	a := admission.New(runFunc(func(_ context.Context, spec runner.Spec, _ runner.Sink) (*runner.Outcome, error) {
		<-end
		return executed(spec, runner.StatusOK), nil
	}), admission.Limits{MaxRunning: 1, MaxWaiting: 1, MaxWait: time.Minute})
	s := newService(t, func(c *Config) { c.Runner = a })
	var all sync.WaitGroup
	all.Go(func() { s.postJSON(`{"code":"x"}`) })
	require.Eventually(t, func() bool { return a.Running() == 1 }, time.Minute, time.Millisecond)
	ctx, leave := context.WithCancel(t.Context())
	req := s.request(http.MethodPost, "/v1/execute", "text/x-python", strings.NewReader("x")).WithContext(ctx)
	all.Go(func() { _, _ = http.DefaultTransport.RoundTrip(req) })
	require.Eventually(t, func() bool { return a.Waiting() == 1 }, time.Minute, time.Millisecond)
	leave()
	require.Eventually(t, func() bool { return a.Waiting() == 0 }, time.Minute, time.Millisecond)
	close(end)
	all.Wait()
	require.Zero(t, a.Running())
}
