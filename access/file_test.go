package access

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// followed are the Keys of a file, whose looks a test makes itself.
type followed struct {
	*Keys
	t      *testing.T
	path   string
	logged *bytes.Buffer
}

func follow(t *testing.T, content string) *followed {
	t.Helper()
	f := &followed{t: t, path: filepath.Join(t.TempDir(), "keys"), logged: new(bytes.Buffer)}
	f.write(content)
	var err error
	f.Keys, err = Open(f.path, Options{Log: slog.New(slog.NewTextHandler(f.logged, nil))})
	require.NoError(t, err)
	return f
}

// write is what an editor does that writes to the file itself.
func (f *followed) write(content string) {
	f.t.Helper()
	require.NoError(f.t, os.WriteFile(f.path, []byte(content), 0o600))
}

// replace is what an editor does that makes a new file.
func (f *followed) replace(content string) {
	f.t.Helper()
	require.NoError(f.t, os.WriteFile(f.path+"~", []byte(content), 0o600))
	require.NoError(f.t, os.Rename(f.path+"~", f.path))
}

func (f *followed) knows(keys ...string) {
	f.t.Helper()
	require.Equal(f.t, len(keys), f.Len())
	for _, key := range keys {
		_, ok := f.Find(key)
		require.True(f.t, ok, key)
	}
}

func TestFileIsFollowed(t *testing.T) {
	f := follow(t, "one\n")
	f.look()
	f.look()
	require.Empty(t, f.logged.String(), "nothing was changed")

	f.replace("one\ntwo\n")
	f.look()
	f.knows("one") // it may be being written
	f.look()
	f.knows("one", "two")
	require.Contains(t, f.logged.String(), "API keys are read again")

	f.write("two\n") // another size
	f.look()
	f.look()
	f.knows("two")
	_, ok := f.Find("one")
	require.False(t, ok, "a removed key is refused")

	f.replace("six\n") // the same size, another file
	f.look()
	f.look()
	f.knows("six")

	f.write("ten\n") // the same size and file, another time
	later := time.Now().Add(time.Hour)
	require.NoError(t, os.Chtimes(f.path, later, later))
	f.look()
	f.look()
	f.knows("ten")
}

func TestFileThatIsBeingWritten(t *testing.T) {
	f := follow(t, "one\n")
	f.look()
	f.look()
	for i, part := range []string{"two\n", "two\nth", "two\nthree\nfo"} {
		f.write(part)
		later := time.Now().Add(time.Duration(i+1) * time.Hour)
		require.NoError(t, os.Chtimes(f.path, later, later))
		f.look()
		f.knows("one")
	}
	f.look()
	f.knows("two", "three", "fo")
}

func TestFileThatIsWrong(t *testing.T) {
	for _, c := range []struct {
		desc   string
		spoil  func(t *testing.T, f *followed)
		reason string
	}{
		{"gone", func(t *testing.T, f *followed) { require.NoError(t, os.Remove(f.path)) }, "no such file"},
		{"empty", func(_ *testing.T, f *followed) { f.write("") }, "there is no key in it"},
		{"broken", func(_ *testing.T, f *followed) { f.replace("one\nsecret-key secret-word\n") }, "line 2: a plain key is one word"},
		{"a folder", func(t *testing.T, f *followed) {
			require.NoError(t, os.Remove(f.path))
			require.NoError(t, os.Mkdir(f.path, 0o700))
		}, "it is not a regular file"},
		{"anybody may write", func(t *testing.T, f *followed) {
			f.replace("two\n")
			require.NoError(t, os.Chmod(f.path, 0o666))
		}, "anybody may write to it"},
	} {
		t.Run(c.desc, func(t *testing.T) {
			f := follow(t, "one\n")
			c.spoil(t, f)
			for range 4 {
				f.look()
				f.knows("one")
			}
			require.Equal(t, 1, bytes.Count(f.logged.Bytes(), []byte("level=ERROR")), "it is said once: %s", f.logged)
			require.Contains(t, f.logged.String(), c.reason)
			require.NotContains(t, f.logged.String(), "secret")

			require.NoError(t, os.RemoveAll(f.path))
			f.replace("three\n")
			f.look()
			f.look()
			f.knows("three")
			require.Contains(t, f.logged.String(), "API keys are read again")
		})
	}
}

func TestOpen(t *testing.T) {
	folder := t.TempDir()
	for _, c := range []struct {
		desc, content string
		mode          os.FileMode
		err, warning  string
	}{
		{desc: "its owner's alone", content: "one", mode: 0o600},
		{desc: "read by others", content: "one", mode: 0o644, warning: "make it of mode 0600"},
		{desc: "read by a group", content: "one", mode: 0o640, warning: "make it of mode 0600"},
		{desc: "written by a group", content: "one", mode: 0o620, warning: "make it of mode 0600"},
		{desc: "written by anybody", content: "one", mode: 0o602, err: "anybody may write to it"},
		{desc: "no key", content: "#\n", mode: 0o600, err: "there is no key in it"},
		{desc: "broken", content: "a\nsecret key", mode: 0o600, err: "line 2: "},
	} {
		t.Run(c.desc, func(t *testing.T) {
			path := filepath.Join(folder, c.desc)
			require.NoError(t, os.WriteFile(path, []byte(c.content), 0o600))
			require.NoError(t, os.Chmod(path, c.mode))
			var logged bytes.Buffer
			k, err := Open(path, Options{Log: slog.New(slog.NewTextHandler(&logged, nil))})
			if c.err != "" {
				require.ErrorContains(t, err, c.err)
				require.ErrorContains(t, err, path)
				require.NotContains(t, err.Error(), "secret")
				return
			}
			require.NoError(t, err)
			require.Equal(t, 1, k.Len())
			require.Equal(t, c.warning != "", logged.Len() > 0)
			require.Contains(t, logged.String(), c.warning)
		})
	}
	_, err := Open(filepath.Join(folder, "none"), Options{})
	require.ErrorIs(t, err, os.ErrNotExist)
}

// TestAwait: a file without keys, or none, lets nobody in until it has some, whoever writes it.
func TestAwait(t *testing.T) {
	for _, c := range []struct {
		desc string
		old  *string
	}{
		{"missing", nil},
		{"empty", new("")},
		{"a comment", new("# none yet\n")},
	} {
		t.Run(c.desc, func(t *testing.T) {
			f := &followed{t: t, path: filepath.Join(t.TempDir(), "keys"), logged: new(bytes.Buffer)}
			if c.old != nil {
				f.write(*c.old)
			}
			var err error
			f.Keys, err = Open(f.path, Options{Await: true, Log: slog.New(slog.NewTextHandler(f.logged, nil))})
			require.NoError(t, err)
			for range 3 {
				f.look()
			}
			f.knows()
			for _, key := range []string{"", "one", "# none yet"} {
				_, ok := f.Find(key)
				require.False(t, ok, key)
			}
			require.Empty(t, f.logged.String())
			info, err := os.Stat(f.path)
			require.NoError(t, err)
			require.Equal(t, os.FileMode(0o600), info.Mode().Perm())

			require.NoError(t, Add(t.Context(), f.path, NamedEntry("alice", Limits{}, SecretOf("one"))))
			f.look()
			f.look()
			f.knows("one")
		})
	}
	_, err := Open(filepath.Join(t.TempDir(), "none", "keys"), Options{Await: true})
	require.ErrorIs(t, err, os.ErrNotExist)
	path := filepath.Join(t.TempDir(), "keys")
	require.NoError(t, os.WriteFile(path, []byte("a b"), 0o600))
	_, err = Open(path, Options{Await: true})
	require.ErrorContains(t, err, "line 1: ")
}

// TestReadWhileCalled changes the file under load; -race looks on. A key that stays
// is never refused, and no more runs go on than it may have.
func TestReadWhileCalled(t *testing.T) {
	f := follow(t, named("alice", "a", "runs-at-once=3")+"\n")
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	var mu sync.Mutex
	inside, most := 0, 0
	for range 8 {
		all.Go(func() {
			for ctx.Err() == nil {
				c, err := f.Caller("a")
				if err == nil {
					err = c.Request()
				}
				if err != nil {
					t.Error(err)
					return
				}
				run, err := c.BeginRun()
				if err != nil {
					runtime.Gosched()
					continue
				}
				mu.Lock()
				inside++
				most = max(most, inside)
				mu.Unlock()
				run.Charge(time.Millisecond)
				runtime.Gosched()
				mu.Lock()
				inside--
				mu.Unlock()
				run.End()
			}
		})
	}
	for i := range 100 {
		content := named("alice", "a", "runs-at-once=3") + "\n"
		for n := range i % 5 {
			content += fmt.Sprintf("key-%d\n", n)
		}
		if i%7 == 0 {
			content = "not a line\n"
		}
		f.replace(content)
		f.look()
		f.look()
	}
	stop()
	all.Wait()
	require.LessOrEqual(t, most, 3)
	require.Positive(t, most)
}

// TestWatch is the only one here that waits for the clock.
func TestWatch(t *testing.T) {
	folder := t.TempDir()
	path, used := filepath.Join(folder, "keys"), filepath.Join(folder, "used")
	require.NoError(t, os.WriteFile(path, []byte("one\n"), 0o600))
	k, err := Open(path, Options{UsageFile: used})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	var watch sync.WaitGroup
	watch.Go(func() { k.Watch(ctx) })
	run, err := caller(t, k, "one").BeginRun()
	require.NoError(t, err)
	run.Charge(time.Second)
	require.NoError(t, os.WriteFile(path, []byte("two\n"), 0o600))
	require.Eventually(t, func() bool {
		_, gone := k.Find("one")
		_, there := k.Find("two")
		raw, err := os.ReadFile(used)
		return !gone && there && err == nil && bytes.Contains(raw, []byte(SecretOf("one").Owner()))
	}, time.Minute, 10*time.Millisecond)
	stop()
	watch.Wait()
	require.NoError(t, k.Close())
}
