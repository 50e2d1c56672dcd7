package access

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// clock is set by hand.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// keys are those of a file's lines.
func keys(t *testing.T, o Options, lines ...string) *Keys {
	t.Helper()
	k, err := New(entries(t, lines...), o)
	require.NoError(t, err)
	return k
}

func entries(t *testing.T, lines ...string) (all []Entry) {
	t.Helper()
	for _, line := range lines {
		e, err := ParseLine(line)
		require.NoError(t, err)
		all = append(all, e)
	}
	return all
}

func named(name, key, limits string) string {
	return name + " " + SecretOf(key).String() + " " + limits
}

func caller(t *testing.T, k *Keys, key string) *Caller {
	t.Helper()
	c, err := k.Caller(key)
	require.NoError(t, err)
	return c
}

func requireRefused(t *testing.T, err error, reason Reason, retryAfter time.Duration) {
	t.Helper()
	var r *Refusal
	require.ErrorAs(t, err, &r)
	require.Equal(t, reason, r.Reason)
	require.InDelta(t, retryAfter.Seconds(), r.RetryAfter.Seconds(), 0.001)
	require.NotEmpty(t, r.Message)
}

func TestWhoCalls(t *testing.T) {
	k := keys(t, Options{}, "plain", named("alice", "old", SecretOf("new").String()), named("nobody", "", ""))
	require.Equal(t, 3, k.Len())
	require.Equal(t, "alice", caller(t, k, "old").Name())
	require.Same(t, caller(t, k, "old"), caller(t, k, "new"))
	require.Equal(t, SecretOf("plain").Owner(), caller(t, k, "plain").Owner())
	for _, wrong := range []string{"", "x", "plai", "plain1", "Plain", SecretOf("plain").String()} {
		_, err := k.Caller(wrong)
		requireRefused(t, err, ReasonKey, 0)
	}
	_, ok := k.Find("x")
	require.False(t, ok)
}

func TestNoKeys(t *testing.T) {
	var k *Keys
	require.Zero(t, k.Len())
	k.OnChange(func(int) { t.Error("called") })
	c, err := k.Caller("anything")
	require.NoError(t, err)
	require.Nil(t, c)
	require.Empty(t, c.Owner()+c.Name())
	run, err := c.BeginRun()
	require.NoError(t, err)
	run.Charge(time.Hour)
	run.End()
	for _, err := range []error{c.Request(), c.MayUse("r", "r"), c.MayNetwork(), c.MayOpenSession(1000), c.MayBeginRun()} {
		require.NoError(t, err)
	}
	_, err = New(nil, Options{})
	require.ErrorIs(t, err, ErrNoKey)
	_, err = New(append(entries(t, "one"), entries(t, named("alice", "one", ""))...), Options{})
	require.ErrorIs(t, err, errSameKey)
}

func TestRequestsPerMinute(t *testing.T) {
	now := &clock{at: noon}
	k := keys(t, Options{Now: now.now}, named("alice", "a", "requests-per-minute=6"), "plain")
	alice := caller(t, k, "a")
	for range 6 {
		require.NoError(t, alice.Request())
	}
	for range 3 { // a refused one counts for nothing
		requireRefused(t, alice.Request(), ReasonRequests, 10*time.Second)
	}
	now.advance(4 * time.Second)
	requireRefused(t, alice.Request(), ReasonRequests, 6*time.Second)
	now.advance(6 * time.Second)
	require.NoError(t, alice.Request(), "Retry-After was true")
	requireRefused(t, alice.Request(), ReasonRequests, 10*time.Second)
	now.advance(-time.Hour)
	require.Error(t, alice.Request(), "a clock that is set back gives nothing")
	now.advance(time.Hour + time.Minute)
	for range 6 {
		require.NoError(t, alice.Request())
	}
	require.Error(t, alice.Request())
	for range 100 {
		require.NoError(t, caller(t, k, "plain").Request())
	}
}

func TestRunsAtOnce(t *testing.T) {
	now := &clock{at: noon}
	k := keys(t, Options{Now: now.now}, named("alice", "a", "runs-at-once=2"), named("bob", "b", "runs-at-once=1"))
	begin := func(c *Caller) *Run {
		run, err := c.BeginRun()
		require.NoError(t, err)
		return run
	}
	refuse := func(c *Caller, after time.Duration) {
		_, err := c.BeginRun()
		requireRefused(t, err, ReasonRuns, after)
		requireRefused(t, c.MayBeginRun(), ReasonRuns, after)
	}
	alice, bob := caller(t, k, "a"), caller(t, k, "b")
	require.NoError(t, alice.MayBeginRun())
	first := begin(alice)
	require.NoError(t, alice.MayBeginRun(), "to ask takes no place")
	second := begin(alice)
	refuse(alice, firstRetry)
	begin(bob)
	refuse(bob, firstRetry)

	now.advance(20 * time.Second)
	first.End()
	first.End()
	third := begin(alice)
	refuse(alice, minRetry) // the second is 20 s old, as the first was
	second.End()
	fourth := begin(alice)
	now.advance(5 * time.Second)
	refuse(alice, 15*time.Second)
	third.End()
	fourth.End()
	begin(alice)
	begin(alice)
	now.advance(-2 * time.Hour)              // a clock that is set back
	refuse(alice, 16484375*time.Microsecond) // the mean of 20, 20, 5 and 5 s, the newest counting 1/8
}

func TestCPUPerDay(t *testing.T) {
	path := filepath.Join(t.TempDir(), "used.json")
	now := &clock{at: noon}
	lines := []string{named("alice", "a", "cpu-seconds-per-day=10"), named("bob", "b", "cpu-seconds-per-day=10"), "plain"}
	o := Options{Now: now.now, UsageFile: path}
	k := keys(t, o, lines...)
	spend := func(key string, cpu time.Duration) {
		run, err := caller(t, k, key).BeginRun()
		require.NoError(t, err)
		run.Charge(cpu)
		run.End()
	}
	refuse := func(key string, after time.Duration) {
		t.Helper()
		_, err := caller(t, k, key).BeginRun()
		requireRefused(t, err, ReasonCPU, after)
		requireRefused(t, caller(t, k, key).MayBeginRun(), ReasonCPU, after)
	}
	restart := func() {
		require.NoError(t, k.Close())
		k = keys(t, o, lines...)
	}
	spend("a", 9999*time.Millisecond)
	spend("a", -time.Hour)
	spend("a", 3*time.Second) // a run that has begun may take more than is left
	refuse("a", 12*time.Hour)
	spend("b", time.Second)
	spend("plain", time.Hour)
	spend("plain", time.Hour)

	restart()
	refuse("a", 12*time.Hour)
	spend("b", time.Second)
	now.advance(11*time.Hour + 59*time.Minute + 59*time.Second)
	refuse("a", time.Second)
	now.advance(time.Second)
	spend("a", 10*time.Second) // it was true
	refuse("a", 24*time.Hour)
	now.advance(-time.Minute)
	refuse("a", 24*time.Hour+time.Minute) // the day before, again
	restart()
	refuse("a", 24*time.Hour+time.Minute)

	now.advance(30*24*time.Hour + 2*time.Minute) // a clock that is wrong, and mended
	spend("a", 10*time.Second)
	restart()
	now.advance(-30 * 24 * time.Hour)
	refuse("a", 24*time.Hour-time.Minute)
	now.advance(24*time.Hour - time.Minute)
	spend("a", time.Second)

	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	left, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, left, 1)
}

func TestDamagedLedger(t *testing.T) {
	for _, content := range []string{"", "{", `{"day":"yesterday"}`, `{"day":"2026-11-22","cpu_ns":{"x":"y"}}`, `[]`} {
		path := filepath.Join(t.TempDir(), "used.json")
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		var logged bytes.Buffer
		k := keys(t, Options{UsageFile: path, Log: slog.New(slog.NewTextHandler(&logged, nil))}, named("alice", "a", "cpu-seconds-per-day=1"))
		_, err := caller(t, k, "a").BeginRun()
		require.NoError(t, err)
		require.Contains(t, logged.String(), "is damaged")
	}
	_, err := New(entries(t, "one"), Options{UsageFile: t.TempDir()})
	require.ErrorContains(t, err, "CPU time used")
}

func TestEnvironmentsNetworkSessions(t *testing.T) {
	k := keys(t, Options{}, named("alice", "a", "environments=Python,r network=no sessions=2"), named("bob", "b", "sessions=no"))
	alice, bob := caller(t, k, "a"), caller(t, k, "b")
	require.NoError(t, alice.MayUse("jupyter", "python"), "by its language")
	require.NoError(t, alice.MayUse("R", "r"))
	require.NoError(t, bob.MayUse("jupyter", "python"))
	require.NoError(t, bob.MayNetwork())
	require.NoError(t, alice.MayOpenSession(1))

	err := alice.MayUse("julia", "julia")
	requireRefused(t, err, ReasonEnvironment, 0)
	require.EqualError(t, err, "language: this API key may not run julia; it may run: Python, r")
	require.False(t, alice.Sees("julia", "julia"))
	requireRefused(t, alice.MayNetwork(), ReasonNetwork, 0)
	requireRefused(t, alice.MayOpenSession(2), ReasonSessions, maySessionRetry)
	requireRefused(t, bob.MayOpenSession(0), ReasonSessions, 0)
}

// TestNewLimits: what an owner does goes on counting when its line changes.
func TestNewLimits(t *testing.T) {
	now := &clock{at: noon}
	k := keys(t, Options{Now: now.now}, named("alice", "a", "runs-at-once=2 requests-per-minute=2"))
	callers := 0
	k.OnChange(func(n int) { callers = n })
	require.Equal(t, 1, callers)
	before := caller(t, k, "a")
	require.NoError(t, before.Request())
	run, err := before.BeginRun()
	require.NoError(t, err)

	k.set(entries(t, named("alice", "rotated", "runs-at-once=1 requests-per-minute=2"), "other"))
	require.Equal(t, 2, callers)
	_, err = k.Caller("a")
	requireRefused(t, err, ReasonKey, 0)
	alice := caller(t, k, "rotated")
	require.Equal(t, before.Owner(), alice.Owner())
	require.NoError(t, alice.Request())
	require.Error(t, alice.Request())
	_, err = alice.BeginRun()
	requireRefused(t, err, ReasonRuns, firstRetry)
	run.End()
	second, err := before.BeginRun() // a request that came under the old key
	require.NoError(t, err)
	_, err = alice.BeginRun()
	require.Error(t, err)
	second.End()

	k.set(entries(t, "other")) // alice is gone, and comes back
	k.set(entries(t, named("alice", "rotated", "requests-per-minute=120"), "other"))
	alice = caller(t, k, "rotated")
	require.Error(t, alice.Request())
	now.advance(500 * time.Millisecond)
	require.NoError(t, alice.Request(), "two a second now")
	k.set(entries(t, named("alice", "rotated", ""), "other"))
	for range 1000 {
		require.NoError(t, caller(t, k, "rotated").Request())
	}
}

func TestNewKey(t *testing.T) {
	one, two := NewKey(), NewKey()
	require.NotEqual(t, one, two)
	require.Regexp(t, `^notebox_[A-Za-z0-9_-]{43}$`, one)
	require.True(t, IsKey(one))
}
