package dependencies

import (
	"archive/tar"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/environments"
	"notebox/runner"
)

func TestInstallsOnce(t *testing.T) {
	b := newBench(t)
	first := b.must("polars==1.*")
	require.False(t, first.Cached)
	require.Equal(t, []environments.Package{{Name: "polars", Version: "10"}}, first.Packages)
	require.True(t, strings.HasPrefix(first.Environment.Image, "layer:"))
	require.Equal(t, "jupyter", first.Environment.Name)
	require.Equal(t, map[string]string{"A": "b", "NOTEBOX_PACKAGES": "/opt/dependencies/site-packages"}, first.Environment.Kernel.Env)
	require.Equal(t, []string{"polars"}, first.Environment.Kernel.WarmUp)
	for range 2 {
		again := b.must(" Polars ==1.*")
		require.True(t, again.Cached)
		require.Equal(t, first.Environment, again.Environment)
	}
	same := b.must("polars==1")
	require.False(t, same.Cached, "it is another wish")
	require.Equal(t, first.Environment.Image, same.Environment.Image, "and the same layer")
	require.NotEqual(t, first.Environment.Image, b.must("six==1").Environment.Image)
	installs, hosts := b.runner.counts()
	require.Equal(t, 3, installs)
	require.Equal(t, 1, hosts)
	require.Equal(t, 2, b.images.made)
	require.Equal(t, map[string]int{resultOK: 3, resultCached: 2}, b.results)
	require.Equal(t, Stats{Layers: 2, Bytes: 2 * (2*entryBytes + 2)}, b.Stats())
	left, err := os.ReadDir(b.options.TempDir)
	require.NoError(t, err)
	require.Empty(t, left)
}

// TestContents has sets whose lists are equal, and whose archives are not, share nothing.
func TestContents(t *testing.T) {
	b := newBench(t)
	keep := func(content string) func(runner.Sink, string) {
		return func(s runner.Sink, _ string) {
			_ = s.File(t.Context(), archiveFile, strings.NewReader(string(packed(t, map[string]string{"a": content}, regular("a")))))
		}
	}
	var refs []string
	for _, c := range []struct{ entry, content string }{{"a==1", "one"}, {"a==1.*", "other"}, {"a == 1", "one"}, {"a == 1.*", "other"}} {
		b.runner.leave = keep(c.content)
		l := b.must(c.entry)
		require.Equal(t, []environments.Package{{Name: "a", Version: "10"}}, l.Packages)
		refs = append(refs, l.Environment.Image)
	}
	require.NotEqual(t, refs[0], refs[1])
	require.Equal(t, refs[:2], refs[2:])
	require.Equal(t, 2, b.images.made)
}

func TestNothingToInstall(t *testing.T) {
	b := newBench(t)
	for _, cached := range []bool{false, true} {
		l := b.must("numpy")
		require.Equal(t, cached, l.Cached)
		require.Empty(t, l.Packages)
		require.Equal(t, b.request("numpy").Base, l.Environment, "it is the plain environment")
	}
	b.restart()
	require.True(t, b.must("numpy").Cached)
	require.Zero(t, b.images.made)
}

// TestRegistryAway has known sets work without a registry, also after a restart, and
// others fail at once.
func TestRegistryAway(t *testing.T) {
	b := newBench(t, func(o *Options) { o.HostsFile = t.TempDir() + "/hosts" })
	b.must("polars")
	b.network.away = errors.New("cut")
	for range 2 {
		require.True(t, b.must("polars").Cached)
		for range 3 {
			_, err := b.get("six")
			var unavailable *runner.Error
			require.ErrorAs(t, err, &unavailable)
			require.Equal(t, runner.CodeUnavailable, unavailable.Code)
			require.Contains(t, unavailable.Message, "the package registry cannot be reached")
			require.Positive(t, unavailable.RetryAfter)
		}
		b.restart()
	}
	installs, hosts := b.runner.counts()
	require.Equal(t, 1, installs, "no sandbox was started for nothing")
	require.Equal(t, 1, hosts, "what it said is kept over a restart")
	require.Equal(t, 3, b.network.asked, "it is left alone for a moment")
}

// TestUnreached has a client say that it did not get there, which the service looks at
// itself before it believes it for everybody.
func TestUnreached(t *testing.T) {
	for _, c := range []struct {
		desc string
		away error
	}{
		{desc: "a package's file is away"},
		{desc: "the registry is", away: errors.New("cut")},
	} {
		t.Run(c.desc, func(t *testing.T) {
			b := newBench(t)
			b.runner.raise = [2]string{unreachable, "no answer from files.test"}
			b.runner.hold, b.runner.entered = make(chan struct{}), make(chan struct{}, 2)
			done := make(chan error, 1)
			go func() { _, err := b.get("six"); done <- err }()
			<-b.runner.entered
			b.network.mu.Lock()
			b.network.away = c.away
			b.network.mu.Unlock()
			close(b.runner.hold)
			err := <-done
			b.network.away, b.runner.raise = nil, [2]string{}
			_, other := b.get("polars")
			if c.away == nil {
				require.Equal(t, &Failure{Unresolvable, "no answer from files.test"}, err)
				require.NoError(t, other)
				return
			}
			for _, err := range []error{err, other} {
				var unavailable *runner.Error
				require.ErrorAs(t, err, &unavailable)
				require.Equal(t, runner.CodeUnavailable, unavailable.Code)
			}
		})
	}
}

func TestFailures(t *testing.T) {
	for _, c := range []struct {
		desc    string
		change  func(*bench)
		failure string
		message string
	}{
		{"no such package", func(b *bench) { b.runner.raise = [2]string{"Unresolvable", "No matching distribution"} }, Unresolvable, "No matching distribution"},
		{"too large, says the installer", func(b *bench) { b.runner.raise = [2]string{"TooLarge", "x"} }, TooLarge, "larger than 1 MiB"},
		{"too large", func(b *bench) {
			b.runner.leave = func(s runner.Sink, _ string) {
				_ = s.File(t.Context(), "layer.tar", strings.NewReader(string(packed(t, map[string]string{"a": strings.Repeat("x", 2<<20)}, regular("a")))))
			}
		}, TooLarge, "larger than 1 MiB"},
		{"out of memory", func(b *bench) { b.runner.status = runner.StatusOutOfMemory }, TooLarge, ""},
		{"too slow", func(b *bench) { b.runner.status = runner.StatusTimeout }, TooSlow, "within 5m0s"},
		{"a broken installer", func(b *bench) { b.runner.raise = [2]string{"KeyError", "x"} }, "", "KeyError"},
		{"a dead one", func(b *bench) { b.runner.status = runner.StatusKilled }, Crashed, "ended before it was done"},
		{"a noisy one", func(b *bench) { b.runner.status = runner.StatusOutputLimit }, TooNoisy, "more than 4 MiB of text"},
		{"an archive that leads out", func(b *bench) {
			b.runner.leave = func(s runner.Sink, _ string) {
				_ = s.File(t.Context(), "layer.tar", strings.NewReader(string(packed(t, nil, regular("../a")))))
			}
		}, "", "not taken"},
		{"two archives", func(b *bench) {
			b.runner.leave = func(s runner.Sink, good string) {
				_ = s.File(t.Context(), "layer.tar", strings.NewReader(good))
				_ = s.File(t.Context(), "layer.tar", strings.NewReader(good))
			}
		}, "", "two archives"},
		{"no archive", func(b *bench) { b.runner.leave = func(runner.Sink, string) {} }, "", "gives none"},
		{"a list that is none", func(b *bench) {
			b.runner.leave = func(s runner.Sink, good string) { _ = s.File(t.Context(), "layer.tar", strings.NewReader(good)) }
			b.runner.have = nil
			b.options.Runner = badList{b.runner}
			b.restart()
		}, "", "resolved.json"},
		{"a daemon without room", func(b *bench) { b.images.fail = errors.New("no space left") }, "", "no space left"},
	} {
		t.Run(c.desc, func(t *testing.T) {
			b := newBench(t, func(o *Options) { o.MaxSize = 1 << 20 })
			c.change(b)
			_, err := b.get("polars")
			require.ErrorContains(t, err, c.message)
			var failure *Failure
			require.Equal(t, c.failure != "", errors.As(err, &failure))
			if failure != nil {
				require.Equal(t, c.failure, failure.Name)
			}
			layers, names := b.images.count()
			require.Zero(t, layers+names)
			left, err := os.ReadDir(b.options.TempDir)
			require.NoError(t, err)
			require.Empty(t, left)
			require.Zero(t, b.Stats())
		})
	}
}

// badList is an installer whose list of packages has another form.
type badList struct{ *installer }

func (b badList) Run(ctx context.Context, spec runner.Spec, events runner.Sink) (*runner.Outcome, error) {
	return b.installer.Run(ctx, spec, badSink{events})
}

type badSink struct{ runner.Sink }

func (s badSink) File(ctx context.Context, path string, content io.Reader) error {
	if path == resolvedFile {
		content = strings.NewReader(`{"packages":[{"name":"../x","version":"1"}]}`)
	}
	return s.Sink.File(ctx, path, content)
}

func regular(name string) tar.Header { return tar.Header{Typeflag: tar.TypeReg, Name: name} }

// TestTogether has many ask for a set at the same time, and some leave.
func TestTogether(t *testing.T) {
	b := newBench(t)
	b.runner.say = []string{"Collecting\n"}
	b.runner.hold, b.runner.entered = make(chan struct{}), make(chan struct{}, 1)
	type answer struct {
		text string
		l    *Layer
		err  error
	}
	ask := func(ctx context.Context) <-chan answer {
		out := make(chan answer, 1)
		r := b.request("polars")
		var mu sync.Mutex
		var heard strings.Builder
		r.Text = func(text string) { mu.Lock(); heard.WriteString(text); mu.Unlock() }
		go func() {
			l, err := b.Get(ctx, r)
			mu.Lock()
			defer mu.Unlock()
			out <- answer{heard.String(), l, err}
		}()
		return out
	}
	leaving, leave := context.WithCancel(t.Context())
	first := ask(leaving)
	<-b.runner.entered
	second, third := ask(t.Context()), ask(t.Context())
	require.Eventually(t, func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, in := range b.under {
			return len(in.waiters) == 3
		}
		return false
	}, time.Second, time.Millisecond)
	leave()
	got := <-first
	require.ErrorIs(t, got.err, context.Canceled)
	require.Equal(t, "Collecting\n", got.text)
	close(b.runner.hold)
	for _, other := range []<-chan answer{second, third} {
		got := <-other
		require.NoError(t, got.err)
		require.Equal(t, "the end", got.text, "from where it came in")
		require.False(t, got.l.Cached)
		got.l.Release()
	}
	installs, _ := b.runner.counts()
	require.Equal(t, 1, installs)
	for _, it := range b.layers {
		require.Zero(t, it.users)
	}
}

// turnsAway is a Runner without a place for an owner.
type turnsAway struct {
	*installer
	owner   string
	code    runner.Code
	entered chan struct{}
	hold    chan struct{}
}

func (a *turnsAway) Run(ctx context.Context, spec runner.Spec, events runner.Sink) (*runner.Outcome, error) {
	if spec.Owner != a.owner || spec.Network == nil {
		return a.installer.Run(ctx, spec, events)
	}
	a.entered <- struct{}{}
	<-a.hold
	return nil, &runner.Error{Code: a.code, Message: "no place"}
}

// TestJoinTurnedAway has who joined begin again if the first has no place to wait, and
// no other error.
func TestJoinTurnedAway(t *testing.T) {
	for _, c := range []struct {
		code  runner.Code
		again bool
	}{
		{runner.CodeShare, true},
		{runner.CodeFull, true},
		{runner.CodeUnavailable, false},
	} {
		t.Run(string(c.code), func(t *testing.T) {
			var away *turnsAway
			b := newBench(t, func(o *Options) {
				away = &turnsAway{o.Runner.(*installer), "first", c.code, make(chan struct{}, 1), make(chan struct{})}
				o.Runner = away
			})
			ask := func(owner string) <-chan error {
				done := make(chan error, 1)
				r := b.request("polars")
				r.Owner = owner
				go func() {
					l, err := b.Get(t.Context(), r)
					if err == nil {
						l.Release()
					}
					done <- err
				}()
				return done
			}
			first := ask("first")
			<-away.entered
			second := ask("second")
			require.Eventually(t, func() bool {
				b.mu.Lock()
				defer b.mu.Unlock()
				for _, in := range b.under {
					return len(in.waiters) == 2
				}
				return false
			}, time.Second, time.Millisecond)
			close(away.hold)
			require.ErrorContains(t, <-first, "no place")
			if err := <-second; c.again {
				require.NoError(t, err)
				require.Equal(t, 1, b.Stats().Layers)
			} else {
				require.ErrorContains(t, err, "no place")
			}
		})
	}
}

// TestAllLeave cancels what nobody waits for, and begins anew for who comes then.
func TestAllLeave(t *testing.T) {
	b := newBench(t)
	b.runner.hold, b.runner.entered = make(chan struct{}), make(chan struct{}, 2)
	for range 2 {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { _, err := b.Get(ctx, b.request("polars")); done <- err }()
		<-b.runner.entered
		cancel()
		require.ErrorIs(t, <-done, context.Canceled)
	}
	require.NoError(t, b.Wait(t.Context()))
	require.Zero(t, b.Stats())
	close(b.runner.hold)
	b.must("polars")
	<-b.runner.entered
}

// TestLeaveDuringCommit has everybody leave while the daemon makes the image: it is waited
// for, and counted.
func TestLeaveDuringCommit(t *testing.T) {
	for _, c := range []struct {
		desc   string
		fail   error
		layers int
	}{
		{desc: "it comes to be", layers: 1},
		{desc: "it comes to be, and the daemon says otherwise", fail: errors.New("no answer")},
	} {
		t.Run(c.desc, func(t *testing.T) {
			b := newBench(t)
			ctx, cancel := context.WithCancel(t.Context())
			committing, left := make(chan struct{}), make(chan struct{})
			b.images.slow = func() { close(committing); <-left }
			b.images.fail, b.images.late = c.fail, true
			done := make(chan error, 1)
			go func() { _, err := b.Get(ctx, b.request("polars")); done <- err }()
			<-committing
			cancel()
			require.ErrorIs(t, <-done, context.Canceled)
			close(left)
			require.NoError(t, b.Wait(t.Context()))
			layers, _ := b.images.count()
			require.Equal(t, c.layers, layers)
			require.Equal(t, c.layers, b.Stats().Layers)
			b.images.slow, b.images.fail = nil, nil
			require.Equal(t, c.layers > 0, b.must("polars").Cached)
			for _, it := range b.layers {
				require.Zero(t, it.users)
			}
		})
	}
}

// TestSweep: a process begins with what another was killed over.
func TestSweep(t *testing.T) {
	b := newBench(t)
	b.restart()
	require.Equal(t, 2, b.images.swept)
}

func TestRoom(t *testing.T) {
	b := newBench(t, func(o *Options) { o.MaxLayers = 2 })
	b.must("a")
	held, err := b.Get(t.Context(), b.request("b"))
	require.NoError(t, err)
	b.must("a") // so that b is older
	b.must("c")
	require.True(t, b.must("b").Cached, "it is in use")
	require.True(t, b.must("c").Cached)
	require.Equal(t, 2, b.Stats().Layers)
	require.False(t, b.must("a").Cached, "it went")
	layers, _ := b.images.count()
	require.Equal(t, 2, layers)
	other, err := b.Get(t.Context(), b.request("a"))
	require.NoError(t, err)
	_, err = b.get("d")
	var full *runner.Error
	require.ErrorAs(t, err, &full)
	require.Equal(t, runner.CodeFull, full.Code)
	other.Release()
	other.Release()
	held.Release()
	b.images.inUse[held.Environment.Image] = true // by a session
	b.must("d")
	require.True(t, b.must("b").Cached)
}

// TestRoomThatStays: a set is known also while its layer is tried to be removed, and is left
// alone for some time if that is in vain.
func TestRoomThatStays(t *testing.T) {
	b := newBench(t, func(o *Options) { o.MaxLayers = 2 })
	forgotten := make(chan string, 10)
	b.options.Forget = func(image string) { forgotten <- image }
	b.restart()
	old := b.must("a")
	b.must("b")
	b.images.inUse[old.Environment.Image] = true // by a session of an earlier process
	done := make(chan error, 1)
	go func() { _, err := b.get("c"); done <- err }()
	require.Equal(t, old.Environment.Image, <-forgotten)
	short, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	_, err := b.Get(short, b.request("a"))
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.True(t, b.must("a").Cached)
	require.NoError(t, <-done)
	require.NotEqual(t, old.Environment.Image, <-forgotten, "the next goes in its place")
	b.must("d")
	require.NotEqual(t, old.Environment.Image, <-forgotten, "it is not tried again at once")
	require.True(t, b.must("a").Cached)
	installs, _ := b.runner.counts()
	require.Equal(t, 4, installs)
}

// TestRoomOfSessions: layers of sessions that were there before this process are looked at
// once, and go when their sessions have ended.
func TestRoomOfSessions(t *testing.T) {
	b := newBench(t, func(o *Options) { o.MaxLayers = 3 })
	old := []string{b.must("a").Environment.Image, b.must("b").Environment.Image}
	b.must("c")
	for _, image := range old {
		b.images.inUse[image] = true
	}
	b.restart()
	began := time.Now()
	b.must("d")
	require.Less(t, time.Since(began), 2*forgetTime, "not as long as for those that are about to go")
	require.True(t, b.must("a").Cached)
	require.True(t, b.must("b").Cached)
	clear(b.images.inUse)
	for _, it := range b.layers {
		it.stays = time.Time{}
	}
	for _, name := range []string{"e", "f", "g"} {
		b.must(name)
	}
	require.False(t, b.must("a").Cached)
	require.False(t, b.must("b").Cached)
}

func TestRoomForBytes(t *testing.T) {
	b := newBench(t, func(o *Options) { o.MaxTotal = 4*entryBytes + 5 })
	b.must("a==11") // three bytes, a folder and a file
	b.must("b==1")  // two
	require.EqualValues(t, 4*entryBytes+5, b.Stats().Bytes)
	b.must("c==1")
	require.Equal(t, Stats{Layers: 2, Bytes: 4*entryBytes + 4}, b.Stats())
	require.True(t, b.must("b==1").Cached)
}

func TestRestart(t *testing.T) {
	b := newBench(t)
	b.must("a")
	b.must("b")
	b.restart()
	require.Equal(t, 2, b.Stats().Layers)
	for _, entry := range []string{"a", "b"} {
		l := b.must(entry)
		require.True(t, l.Cached)
		require.Equal(t, entry, l.Packages[0].Name)
	}
	b.options.MaxLayers = 1
	b.restart()
	require.Equal(t, 1, b.Stats().Layers, "the bounds hold for what was there")
	b.images.images["python:2"] = &Image{Ref: "python:2", Base: "id of python:2"}
	b.must("numpy")
	b.restart("python:2")
	require.Zero(t, b.Stats(), "what was made from another image is removed")
	layers, names := b.images.count()
	require.Zero(t, layers+names)
}

// TestRestartWithoutAnswer: an image that the daemon says nothing of is not one that is
// missing, whose layers go.
func TestRestartWithoutAnswer(t *testing.T) {
	b := newBench(t)
	b.must("a")
	b.must("numpy")
	b.images.images["r:1"] = &Image{Ref: "r:1", Base: "id of r:1"}
	b.images.silent, b.images.mute = context.DeadlineExceeded, "python:1"
	b.restart("r:1", "python:1")
	require.Equal(t, 1, b.Stats().Layers, "it is counted")
	b.images.silent = nil
	require.True(t, b.must("a").Cached)
	require.True(t, b.must("numpy").Cached)
	b.restart("r:1", "gone:1")
	require.Zero(t, b.Stats(), "of those that are known to be missing")
}

// TestBase: what the daemon says of an environment's image is told as it is, and looked at
// again after a while.
func TestBase(t *testing.T) {
	b := newBench(t)
	ago := func() { b.bases["python:1"] = base{b.bases["python:1"].id, time.Now().Add(-2 * lookEvery)} }
	b.images.silent = errors.New("no daemon")
	b.bases = map[string]base{}
	_, err := b.get("polars")
	require.ErrorContains(t, err, "no daemon")
	require.NotContains(t, err.Error(), "missing")
	b.images.silent = nil
	before := b.must("polars")

	ago()
	b.images.silent = errors.New("no daemon")
	require.True(t, b.must("polars").Cached, "it was there")
	b.images.silent = nil
	b.must("polars")

	b.images.images["python:1"].Base = "id of another"
	require.True(t, b.must("polars").Cached)
	ago()
	after := b.must("polars")
	require.False(t, after.Cached, "it was built anew")
	require.NotEqual(t, before.Environment.Image, after.Environment.Image)

	delete(b.images.images, "python:1")
	ago()
	_, err = b.get("polars")
	var unavailable *runner.Error
	require.ErrorAs(t, err, &unavailable)
	require.Equal(t, "the sandbox image is missing", unavailable.Message)
}

// TestRemovedByOthers has a set be installed again whose image is gone.
func TestRemovedByOthers(t *testing.T) {
	b := newBench(t)
	l := b.must("a")
	require.NoError(t, b.images.Remove(t.Context(), Image{Ref: l.Environment.Image}))
	for _, it := range b.layers {
		it.looked = time.Time{}
	}
	require.False(t, b.must("a").Cached)
	require.True(t, b.must("a").Cached)
}

func TestNames(t *testing.T) {
	b := newBench(t)
	b.must("numpy")
	for i := range maxNames + 5 {
		b.must("numpy==" + strings.Repeat("0", i+1))
	}
	_, names := b.images.count()
	require.Equal(t, maxNames, names)
	require.Len(t, b.names, maxNames)
}

func TestSettings(t *testing.T) {
	b := newBench(t, func(o *Options) {
		o.Settings = map[string][]byte{"pip.conf": []byte("[global]\n"), "npmrc": []byte("registry=x\n")}
		o.Builds = true
	})
	b.runner.say = []string{"Looking at the ", "registry\n", "and more"}
	b.runner.raise = [2]string{"Unresolvable", "there is none"}
	r := b.request("polars")
	var heard strings.Builder
	r.Text = func(text string) { heard.WriteString(text) }
	charged := 0
	r.Ran = func(out *runner.Outcome, err error, _ time.Duration, l runner.Limits) { charged++ }
	_, err := b.Get(t.Context(), r)
	require.EqualError(t, err, "Unresolvable: there is none")
	require.Equal(t, "Looking at the registry\nand more", heard.String())
	require.Equal(t, 2, charged, "for the hosts, and for the packages")
	var inputs []string
	for _, in := range b.runner.last.Inputs {
		inputs = append(inputs, in.Path)
	}
	require.Equal(t, []string{"request.json", "settings/npmrc", "settings/pip.conf"}, inputs)
	require.Equal(t, DefaultTimeout, b.runner.last.Limits.Timeout)
	require.Equal(t, runner.Kernel{}, b.runner.last.Environment.Kernel)
	require.NotEqual(t, "jupyter", b.runner.last.Environment.Name)
	require.Equal(t, "owner", b.runner.last.Owner)
}

// TestOrigin: sets of other settings are others. A token is no setting: see TestSeparate.
func TestOrigin(t *testing.T) {
	conf := func(index string) map[string][]byte {
		return map[string][]byte{"pip.conf": []byte("[global]\nindex-url = https://" + index + "/simple\n")}
	}
	for _, c := range []struct {
		desc   string
		change func(*Options)
		same   bool
	}{
		{"as before", func(*Options) {}, true},
		{"another registry", func(o *Options) { o.Settings = conf("other.test") }, false},
		{"none", func(o *Options) { o.Settings = nil }, false},
		{"of another client", func(o *Options) { o.Settings["npmrc"] = []byte("registry=x") }, false},
		{"builds", func(o *Options) { o.Builds = true }, false},
	} {
		t.Run(c.desc, func(t *testing.T) {
			b := newBench(t, func(o *Options) { o.Settings = conf("registry.test") })
			before := b.must("polars")
			c.change(&b.options)
			b.restart()
			after := b.must("polars")
			require.Equal(t, c.same, after.Cached)
			require.Equal(t, c.same, before.Environment.Image == after.Environment.Image)
		})
	}
}

func TestDecodeHosts(t *testing.T) {
	for _, raw := range []string{
		``, `null`, `{}`, `{"hosts":[]}`, `{"hosts":["a"]}`, `{"hosts":["a:0"]}`, `{"hosts":["*:443"]}`, `{"hosts":["*.a:443"]}`,
		`{"hosts":["a b:443"]}`, `{"hosts":["a/b:443"]}`, `{"hosts":["a:443"],"more":1}`, `{"hosts":["a:443"]} {}`, `{"hosts":[":443"]}`,
	} {
		_, err := decodeHosts([]byte(raw))
		require.Error(t, err, raw)
	}
	hosts, err := decodeHosts([]byte(`{"hosts":["registry.test:443","[::1]:8080","127.0.0.1:80"]}`))
	require.NoError(t, err)
	require.Len(t, hosts, 3)
}
