package faults_test

import (
	"bytes"
	"errors"
	"fmt"
	"mime/multipart"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/runner/runnertest"
)

// idleTime is how long a sandbox waits for a frame from its service.
const idleTime = 30 * time.Second

// TestG01ServiceKilled: what a service left that was killed in mid-run is gone when it
// has started again.
func TestG01ServiceKilled(t *testing.T) {
	t.Parallel()
	s := newService(t, "", "--pool-size", "0").start()
	s.begin(withFile(codeSleep))
	require.Len(t, s.uploads(), 1, "the run's input is on the disk")
	require.NotEmpty(t, s.containers())
	s.Kill()
	require.Len(t, s.uploads(), 1)

	s.start()
	require.Empty(t, s.containers(), "a start removes what was left")
	require.Empty(t, s.uploads())
	s.requireRuns()
	s.end()
}

// TestG02TwoServicesOnOneDaemon: what one removes when it starts and ends is its own.
func TestG02TwoServicesOnOneDaemon(t *testing.T) {
	t.Parallel()
	d := newDaemon(t)
	one := onDaemon(t, d, "--pool-size", "1").start()
	other := onDaemon(t, d, "--pool-size", "1").start()
	mine, theirs := one.open(), other.open()
	one.step(mine, runnertest.CellSet)
	running := one.beginCode(codeSleep)
	waiting := one.settled()
	other.beginCode(codeSleep)
	left := slices.DeleteFunc(other.settled(), isSession)
	other.Kill()
	require.Subset(t, other.containers(), left)

	other.start()
	for _, name := range left {
		require.NotContains(t, other.containers(), name)
	}
	other.requireRuns()
	other.step(theirs, codeHello) // it goes on
	other.requireNoSession(mine, http.StatusNotFound)
	require.Subset(t, one.containers(), waiting)
	other.settled()
	other.Kill()
	copyRecords(t, one, other) // what it could not have, unless somebody gives it that
	other.start()
	other.requireNoSession(mine, http.StatusGone)
	one.step(mine, runnertest.CellGet)
	require.Subset(t, one.containers(), waiting)
	other.closeSession(theirs)
	other.end()
	require.Subset(t, one.containers(), waiting)
	select {
	case a := <-running:
		require.Fail(t, "the run of the one service was ended by the other", "%s", a.body)
	default:
	}
	one.requireRuns()
	one.closeSession(mine)
}

// TestG11EndedWithRunsGoingOn: those that are over within the drain have their whole
// reply, the others what there was until then.
func TestG11EndedWithRunsGoingOn(t *testing.T) {
	t.Parallel()
	const drain = 6 * time.Second
	d := newDaemon(t)
	s := onDaemon(t, d, "--pool-size", "1", "--drain", drain.String(), "--max-running", "4").start()
	long := s.beginCode(codeSleep)
	short := s.beginCode("sleep a little")

	begun := time.Now()
	require.NoError(t, s.Signal(syscall.SIGTERM))
	eventually(t, "nobody else is served", func() bool { return s.run(codeHello).err != nil })
	a := <-short
	require.NoError(t, a.err)
	require.Equal(t, "ok", a.reply(t).Status)
	require.Equal(t, "started\nended\n", a.reply(t).Text)
	a = <-long
	require.NoError(t, a.err)
	require.Equal(t, "cancelled", a.reply(t).Status)
	require.Equal(t, "started\n", a.reply(t).Text)
	require.GreaterOrEqual(t, time.Since(begun), drain, "it had its time")
	require.Zero(t, s.exit(), s.Logged())
	require.Empty(t, s.containers())
	require.Empty(t, s.uploads())
}

// TestG14ServiceNeverComesBack: its sandboxes end by themselves, whether their stream
// is closed with it or goes silent.
func TestG14ServiceNeverComesBack(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		desc string
		by   syscall.Signal
	}{
		{"it is killed", syscall.SIGKILL},
		{"it stands still", syscall.SIGSTOP},
	} {
		t.Run(c.desc, func(t *testing.T) {
			t.Parallel()
			s := newService(t, "", "--pool-size", "1", "--pool-max", "1").start()
			s.settled()
			s.beginCode(codeSleep)
			require.Greater(t, len(s.settled()), 1, "others wait beside it")
			require.NoError(t, s.Signal(c.by))
			begun := time.Now()
			s.requireContainers(0)
			took := time.Since(begun)
			t.Logf("its sandboxes were gone after %s", took)
			// The rest is for what the daemon takes to remove them on a busy machine.
			require.Less(t, took, 2*idleTime)
			eventually(t, "its workers are gone", func() bool { return len(containers(t, s.host, s.id)) == 0 })
		})
	}
}

// withFile is a request with an input of some size.
func withFile(code string) (contentType string, body []byte) {
	var form bytes.Buffer
	w := multipart.NewWriter(&form)
	_ = w.WriteField("code", code)
	file, _ := w.CreateFormFile("files", "input.bin")
	_, _ = file.Write(make([]byte, inputSize))
	_ = w.Close()
	return w.FormDataContentType(), form.Bytes()
}

// runWithFile is run with that.
func (s *service) runWithFile(code string) answer {
	contentType, body := withFile(code)
	return send(http.MethodPost, s.url+"/v1/execute", contentType, body)
}

// settled are its containers when the pool is full and none is being made.
func (s *service) settled() []string {
	s.t.Helper()
	eventually(s.t, "the pool is full", func() bool {
		p := s.pool()
		return p.Warm > 0 && p.Starting == 0 && p.Removing == 0 && p.Sandboxes == len(s.containers())
	})
	return s.containers()
}

// inputSize in bytes: above what is kept in memory.
const inputSize = 1 << 20

// uploads are the folders of requests under way.
func (s *service) uploads() []string {
	found, _ := filepath.Glob(filepath.Join(s.folder, "state", "uploads", "*"))
	return found
}

// filesBelow are the regular files in a folder, with their sizes.
func filesBelow(t *testing.T, folder string) map[string]int64 {
	t.Helper()
	found := map[string]int64{}
	err := filepath.WalkDir(folder, func(path string, entry os.DirEntry, err error) error {
		if errors.Is(err, os.ErrNotExist) { // it was renamed, or removed, meanwhile
			return nil
		}
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		info, err := entry.Info()
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("look at %s: %w", path, err)
		}
		found[path] = info.Size()
		return nil
	})
	require.NoError(t, err)
	return found
}
