package dependencies

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/runner"
	"notebox/runner/admission"
)

const (
	patience = 30 * time.Second
	// moment is long enough for what must not happen to happen on most machines.
	moment = 50 * time.Millisecond
)

// gate has commits wait until it is opened, at the end of the test at the latest.
func (b *bench) gate() (entered <-chan struct{}, open func()) {
	committing, goOn := make(chan struct{}, 10), make(chan struct{})
	b.images.slow = func() { committing <- struct{}{}; <-goOn }
	open = sync.OnceFunc(func() { close(goOn) })
	b.t.Cleanup(open)
	return committing, open
}

// TestPlaceUntilKept: an installation has its place until its layer is made, so that there
// are no more archives than places.
func TestPlaceUntilKept(t *testing.T) {
	b := newBench(t, func(o *Options) {
		o.Installs = admission.New(nil, admission.Limits{MaxRunning: 1, MaxWaiting: 1, MaxWait: time.Minute})
	})
	committing, open := b.gate()
	done := make(chan error, 2)
	ask := func(name string) { _, err := b.get(name); done <- err }
	go ask("a")
	<-committing
	go ask("b")
	require.Eventually(t, func() bool { return b.options.Installs.Waiting() == 1 }, patience, time.Millisecond)
	time.Sleep(moment)
	installs, _ := b.runner.counts()
	require.Equal(t, 1, installs)
	open()
	for range 2 {
		require.NoError(t, <-done)
	}
	_, err := b.get("c")
	require.NoError(t, err, "all places are free")
}

// TestLeaveBeforeCommit: who waits for another's commit and leaves has no archive any more.
func TestLeaveBeforeCommit(t *testing.T) {
	b := newBench(t)
	committing, open := b.gate()
	done := make(chan error, 1)
	go func() { _, err := b.get("a"); done <- err }()
	<-committing
	archives := func(n int) func() bool {
		return func() bool {
			found, err := os.ReadDir(b.options.TempDir)
			require.NoError(t, err)
			return len(found) == n
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() { _, err := b.Get(ctx, b.request("b")); left <- err }()
	require.Eventually(t, archives(2), patience, time.Millisecond)
	cancel()
	require.ErrorIs(t, <-left, context.Canceled)
	require.Eventually(t, archives(1), patience, time.Millisecond)
	open()
	require.NoError(t, <-done)
}

// TestHostsOnce: of many that want to know an installer's hosts one asks; if that leaves,
// another does.
func TestHostsOnce(t *testing.T) {
	b := newBench(t)
	b.runner.asking = make(chan struct{})
	hosts := func(n int) func() bool {
		return func() bool { _, asked := b.runner.counts(); return asked == n }
	}
	first, leave := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() { _, err := b.Get(first, b.request("a")); left <- err }()
	require.Eventually(t, hosts(1), patience, time.Millisecond)
	var all sync.WaitGroup
	errs := make([]error, 10)
	for i := range errs {
		all.Go(func() { _, errs[i] = b.get(fmt.Sprintf("b%d", i)) })
	}
	require.Eventually(t, func() bool { return b.Stats().Installing == 1+len(errs) }, patience, time.Millisecond)
	time.Sleep(moment)
	require.True(t, hosts(1)())
	leave()
	require.ErrorIs(t, <-left, context.Canceled)
	require.Eventually(t, hosts(2), patience, time.Millisecond)
	close(b.runner.asking)
	all.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
	require.True(t, hosts(2)())
}

// TestHostsFile is replaced as a whole.
func TestHostsFile(t *testing.T) {
	folder := t.TempDir()
	file, open := filepath.Join(folder, "hosts"), filepath.Join(folder, "open")
	require.NoError(t, os.WriteFile(file, []byte(`{"other":["a.test:443"]}`), 0o600))
	require.NoError(t, os.Link(file, open)) // what a reader has in its hands
	b := newBench(t, func(o *Options) { o.HostsFile = file })
	b.must("a")
	require.Len(t, b.remembered(), 2)
	before, err := os.ReadFile(open)
	require.NoError(t, err)
	require.Equal(t, `{"other":["a.test:443"]}`, string(before))
	found, err := os.ReadDir(folder)
	require.NoError(t, err)
	require.Len(t, found, 2)
}

// TestWaitingIsBounded in all and, if there are several callers, for each; what is known
// needs no place.
func TestWaitingIsBounded(t *testing.T) {
	b := newBench(t, func(o *Options) { o.MaxWaiting = 3 })
	b.must("known")
	b.ShareWaiting(true)
	b.runner.hold, b.runner.entered = make(chan struct{}), make(chan struct{}, 9)
	done := make(chan error, 9)
	ask := func(ctx context.Context, owner, name string) error {
		r := b.request(name)
		r.Owner = owner
		l, err := b.Get(ctx, r)
		if err == nil {
			l.Release()
		}
		return err
	}
	waiting := func(n int) {
		t.Helper()
		require.Eventually(t, func() bool {
			b.waiting.mu.Lock()
			defer b.waiting.mu.Unlock()
			return b.waiting.all == n
		}, patience, time.Millisecond)
	}
	refused := func(code runner.Code, owner string) {
		t.Helper()
		var e *runner.Error
		require.ErrorAs(t, ask(t.Context(), owner, "other"), &e)
		require.Equal(t, code, e.Code)
		require.Positive(t, e.RetryAfter)
	}
	leaving, leave := context.WithCancel(t.Context())
	for i := range 2 { // of one set, too
		go func() { done <- ask(leaving, "crowd", "a") }()
		waiting(i + 1)
	}
	refused(runner.CodeShare, "crowd")
	go func() { done <- ask(t.Context(), "quiet", "b") }()
	waiting(3)
	refused(runner.CodeFull, "third")
	require.NoError(t, ask(t.Context(), "third", "known"))
	leave()
	for range 2 {
		require.ErrorIs(t, <-done, context.Canceled)
	}
	waiting(1)
	b.ShareWaiting(false)
	for i := range 2 {
		go func() { done <- ask(t.Context(), "crowd", "c") }()
		waiting(i + 2)
	}
	refused(runner.CodeFull, "crowd")
	close(b.runner.hold)
	for range 3 {
		require.NoError(t, <-done)
	}
	require.Empty(t, b.waiting.owners)
}
