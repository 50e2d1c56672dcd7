package storage

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"
	"gocloud.dev/blob"
)

// openTestFolder opens a folder and waits for the sweep at the start.
func openTestFolder(t *testing.T, path string) *Store {
	t.Helper()
	s, err := Open(t.Context(), Options{URL: "file://" + path})
	require.NoError(t, err)
	s.background.Wait()
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func TestFolderHoldsTheContentAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "with space", "store")
	s := openTestFolder(t, strings.ReplaceAll(path, " ", "%20"))
	for _, name := range []string{"out.csv", "plots/a b.png"} {
		_, err := s.Put(t.Context(), RunKey(started, "run_1", KindFile, name), strings.NewReader("x"), name)
		require.NoError(t, err)
	}
	_, err := s.Put(t.Context(), RunKey(started, "run_1", KindFile, "cut"), io.MultiReader(
		bytes.NewReader(make([]byte, 1<<20)), iotest.ErrReader(errors.New("cut"))), "cut")
	require.Error(t, err)
	require.NoError(t, s.Ready(t.Context()))
	require.NoError(t, s.PutNew(t.Context(), RecordKey("a", "b"), []byte("x")))
	require.ErrorIs(t, s.PutNew(t.Context(), RecordKey("a", "b"), []byte("y")), ErrExists)

	require.Equal(t, []string{
		"records/a/b",
		prefix + "out.csv",
		prefix + "plots=/a b.png",
	}, files(t, path), "no sidecar, no temporary file, no probe")
	for _, folder := range []string{"", "runs", prefix + "plots="} {
		info, err := os.Stat(filepath.Join(path, folder))
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o700), info.Mode().Perm(), folder)
	}
}

func TestFolderOutlivesTheProcess(t *testing.T) {
	path := t.TempDir()
	key := RunKey(started, "run_1", KindFile, "a\n.csv")
	first, err := Open(t.Context(), Options{URL: "file://" + path})
	require.NoError(t, err)
	_, err = first.Put(t.Context(), key, strings.NewReader("x"), "a\n.csv")
	require.NoError(t, err)
	require.NoError(t, first.Close())
	r, err := openTestFolder(t, path).Get(t.Context(), key)
	require.NoError(t, err)
	require.NoError(t, r.Close())
	require.Equal(t, "a\n.csv", r.Name)
	require.Equal(t, "text/csv", r.MediaType)
}

func TestOpenRefuses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for _, test := range []struct{ desc, url, err string }{
		{"nothing", "", "want file:///folder, azblob://container"},
		{"a path", "/data", "want file:///folder, azblob://container"},
		{"an unknown scheme", "ftp://host/x", "want file:///folder, azblob://container"},
		{"a password", "ftp://user:secret@host/x", "user:xxxxx@host/x"},
		{"not a URL", "file://%zz", "store URL"},
		{"a relative path", "file://./data", "want an absolute path"},
		{"another host", "file://host/data", "want an absolute path"},
		{"no path", "file://", "want an absolute path"},
		{"opaque", "file:data", "want an absolute path"},
		{"fileblob's parameters", "file:///data?metadata=skip", "no query"},
		{"a file", "file://" + file, "not a directory"},
		{"below a file", "file://" + file + "/x", "not a directory"},
		{"a name for memory", "mem://x", "takes no name"},
		{"gocloud's parameters for S3", "s3://bucket?region=x&awssdk=v2", `unknown parameter "awssdk"`},
		{"a parameter twice", "s3://bucket?region=x&region=y", "want one value of region"},
		{"an empty parameter", "s3://bucket?region=", "want one value of region"},
		{"a path in a bucket", "s3://bucket/folder", "want s3://name"},
		{"a password for a bucket", "gs://user:secret@bucket", "want gs://name"},
		{"no bucket", "s3://", "want s3://bucket"},
		{"no bucket of Google's", "gs://?project=x", "want gs://bucket"},
		{"no container", "azblob://", "AZURE_BLOB_CONTAINER_NAME"},
		{"an account in the URL", "azblob://c?storage_account=x", `unknown parameter "storage_account"`},
		{"an endpoint with a token", "azblob://c?endpoint=https%3A%2F%2Fx%3Fsig%3Dsecret", "without password and query"},
		{"an endpoint that is none", "s3://bucket?endpoint=localhost:9000", "endpoint is no http"},
		{"a choice that is none", "s3://bucket?region=x&path_style=secret", "path_style is true or false"},
		{"no credentials", "azblob://c", "AZURE_STORAGE_CONNECTION_STRING"},
	} {
		t.Run(test.desc, func(t *testing.T) {
			_, err := Open(t.Context(), Options{URL: test.url, Getenv: func(string) string { return "" }})
			require.ErrorContains(t, err, test.err)
			require.NotContains(t, err.Error(), "secret")
		})
	}
}

// childFolder makes the test's program put into the store that it names, and hang there.
const childFolder = "NOTEBOX_TEST_FOLDER"

func TestOpenRemovesWhatAKilledProcessLeft(t *testing.T) {
	if path := os.Getenv(childFolder); path != "" {
		_, _ = openTestFolder(t, path).Put(t.Context(), RunKey(started, "run_1", KindFile, "a"),
			io.MultiReader(bytes.NewReader(make([]byte, 1<<20)), hang{}), "a")
		return
	}
	path := t.TempDir()
	child := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	child.Env = append(os.Environ(), childFolder+"="+path)
	require.NoError(t, child.Start())
	t.Cleanup(func() { _ = child.Process.Kill() })
	temporaries := func() int { return len(files(t, path)) }
	locked := func() bool { // it is before anything is written
		found := files(t, path)
		if len(found) != 1 {
			return false
		}
		info, err := os.Stat(filepath.Join(path, found[0]))
		return err == nil && info.Size() > 0
	}
	require.Eventually(t, locked, 5*time.Minute, 10*time.Millisecond)
	require.Regexp(t, folderTemporary, files(t, path)[0])

	openTestFolder(t, path)
	require.Equal(t, 1, temporaries(), "its writer is alive")

	require.NoError(t, child.Process.Kill())
	_ = child.Wait()
	openTestFolder(t, path)
	require.Zero(t, temporaries())
}

// hang is a reader that does not answer while a test runs.
type hang struct{}

func (hang) Read([]byte) (int, error) {
	time.Sleep(10 * time.Minute)
	return 0, io.ErrNoProgress
}

func TestSweepLeavesWhatIsNotOurs(t *testing.T) {
	path := t.TempDir()
	kept := []string{
		"a.18f0a1b2c3d4e5f6.tmp", // below neither runs/ nor records/
		"runs/a.csv",
		"runs/a.tmp",
		"runs/a.18f0a1b2c3d4e5f6.tmp.csv",
	}
	for _, name := range append(kept, "runs/2026-07-01/run_1/files/a.18f0a1b2c3d4e5f6.tmp", "records/executions/-/a.18f0a1b2c3d4e5f6.tmp") {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(path, name)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(path, name), []byte("x"), 0o600))
	}
	outside := filepath.Join(t.TempDir(), "b.18f0a1b2c3d4e5f6.tmp")
	require.NoError(t, os.WriteFile(outside, nil, 0o600))
	require.NoError(t, os.Symlink(outside, filepath.Join(path, "runs/b.18f0a1b2c3d4e5f6.tmp")))
	require.NoError(t, os.Symlink(filepath.Dir(outside), filepath.Join(path, "runs/folder")))

	openTestFolder(t, path)
	require.ElementsMatch(t, append(kept, "runs/b.18f0a1b2c3d4e5f6.tmp", "runs/folder"), files(t, path))
	require.FileExists(t, outside)
}

func TestPutBesideASweep(t *testing.T) {
	s := openTestFolder(t, t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	var sweeps sync.WaitGroup
	sweeps.Go(func() {
		for ctx.Err() == nil {
			s.folder.sweep(ctx)
			time.Sleep(100 * time.Microsecond)
		}
	})
	for range 200 {
		_, err := s.Put(t.Context(), "runs/a", strings.NewReader("x"), "a")
		require.NoError(t, err)
	}
	cancel()
	sweeps.Wait()
}

func TestHoldNoticesASweep(t *testing.T) {
	for _, test := range []struct {
		desc string
		meet func(t *testing.T, path string)
	}{
		{"that has removed the file", func(t *testing.T, path string) { require.NoError(t, os.Remove(path)) }},
		{"that is about to", func(t *testing.T, path string) {
			file, err := os.Open(path)
			require.NoError(t, err)
			t.Cleanup(func() { _ = file.Close() })
			require.NoError(t, syscall.Flock(int(file.Fd()), syscall.LOCK_EX))
		}},
	} {
		t.Run(test.desc, func(t *testing.T) {
			s := openTestFolder(t, t.TempDir())
			var made temporary
			_, err := s.bucket.NewWriter(t.Context(), "runs/a", &blob.WriterOptions{
				ContentType: unknownType,
				BeforeWrite: func(as func(any) bool) error {
					var file *os.File
					require.True(t, as(&file))
					test.meet(t, file.Name())
					return made.hold(as)
				},
			})
			require.ErrorIs(t, err, errSwept, "create tries again then")
		})
	}
}

// childLimit makes the test's program meet a disk that takes no more than 1 MiB a file.
const childLimit = "NOTEBOX_TEST_FILE_LIMIT"

func TestFullDisk(t *testing.T) {
	path := os.Getenv(childLimit)
	if path == "" {
		path = t.TempDir()
		child := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
		child.Env = append(os.Environ(), childLimit+"="+path)
		output, err := child.CombinedOutput()
		require.NoError(t, err, string(output))
		require.Equal(t, []string{"runs/fits"}, files(t, path))
		return
	}
	s := openTestFolder(t, path)
	limit := func(bytes uint64) {
		require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: bytes, Max: 1 << 30}))
	}
	signal.Ignore(syscall.SIGXFSZ) // a write fails with EFBIG then
	limit(1 << 20)
	_, err := s.Put(t.Context(), "runs/fits", bytes.NewReader(make([]byte, 1<<20)), "fits")
	require.NoError(t, err)
	_, err = s.Put(t.Context(), "runs/long", bytes.NewReader(make([]byte, 2<<20)), "long")
	require.ErrorIs(t, err, syscall.EFBIG)
	require.NoError(t, s.Ready(t.Context()))
	limit(0)
	require.ErrorIs(t, s.Ready(t.Context()), syscall.EFBIG)
	limit(1 << 30)
	require.NoError(t, s.Ready(t.Context()), "it recovers by itself")
}

func TestReadyAnswersForADiskThatHangs(t *testing.T) {
	p := probes{life: t.Context()}
	started, end := 0, make(chan struct{})
	try := func(context.Context) error { started++; <-end; return nil }
	first := p.join(try)
	for range 100 {
		require.Same(t, first, p.join(try), "no second goroutine")
	}
	close(end)
	<-first.done
	require.Equal(t, 1, started)
	require.Eventually(t, func() bool { return p.join(try) != first }, time.Minute, time.Millisecond)
}

// files lists all files below path but folders.
func files(t *testing.T, path string) []string {
	t.Helper()
	found := []string{}
	require.NoError(t, filepath.WalkDir(path, func(p string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			relative, _ := filepath.Rel(path, p)
			found = append(found, relative)
		}
		return nil
	}))
	return found
}
