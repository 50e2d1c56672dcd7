package faults_test

import (
	"bytes"
	"fmt"
	"mime/multipart"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// idleTime is how long a sandbox waits for a frame from its service.
const idleTime = 30 * time.Second

// TestG01ServiceKilled: what a service left that was killed in mid-run is gone when it
// has started again.
func TestG01ServiceKilled(t *testing.T) {
	t.Parallel()
	s := newService(t, "", "--pool-size", "0").start()
	go s.runWithFile(codeSleep)
	s.requireRunning(1)
	eventually(t, "the run's input is on the disk", func() bool { return len(s.uploads()) == 1 })
	s.kill()
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
	running := one.runLater("sleep a little")
	one.requireRunning(1)
	one.requireContainers(2) // with the one that waits
	others := one.containers()
	cut := other.runLater(codeSleep)
	other.requireRunning(1)
	left := other.containers()
	other.kill()
	require.Error(t, (<-cut).err)
	other.start()
	require.NotSubset(t, other.containers(), left)
	other.requireRuns()
	other.end()

	require.Subset(t, one.containers(), others[1:], "none was removed but that of the run, which may be over")
	a := <-running
	require.Equal(t, http.StatusOK, a.status, "%s", a.body)
	require.Equal(t, "started\nended\n", a.reply(t).Text)
	one.end()
}

// TestG11EndedWithRunsGoingOn: those that are over within the drain have their whole
// reply, the others what there was until then.
func TestG11EndedWithRunsGoingOn(t *testing.T) {
	t.Parallel()
	const drain = 6 * time.Second
	d := newDaemon(t)
	s := onDaemon(t, d, "--pool-size", "1", "--drain", drain.String(), "--max-running", "4").start()
	long := s.runLater(codeSleep)
	s.requireRunning(1)
	short := s.runLater("sleep a little")
	s.requireRunning(2)

	begun := time.Now()
	require.NoError(t, s.cmd.Process.Signal(syscall.SIGTERM))
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
	require.Zero(t, s.exit(), s.logged())
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
			s := newService(t, "", "--pool-size", "1").start()
			s.runLater(codeSleep)
			s.requireRunning(1)
			eventually(t, "others wait beside it, and none is being made", func() bool {
				p := s.pool()
				return p.Warm > 0 && p.Starting == 0 && p.Removing == 0
			})
			require.NoError(t, s.cmd.Process.Signal(c.by))
			begun := time.Now()
			s.requireContainers(0)
			took := time.Since(begun)
			t.Logf("its sandboxes were gone after %s", took)
			// The rest is for what the daemon takes to remove them on a busy machine.
			require.Less(t, took, 2*idleTime)
		})
	}
}

// runWithFile is run with an input of some size.
func (s *service) runWithFile(code string) answer {
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	_ = form.WriteField("code", code)
	file, _ := form.CreateFormFile("files", "input.bin")
	_, _ = file.Write(make([]byte, inputSize))
	_ = form.Close()
	return send(http.MethodPost, s.url+"/v1/execute", form.FormDataContentType(), body.Bytes())
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
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return fmt.Errorf("look at %s: %w", path, err)
		}
		found[path] = info.Size()
		return nil
	})
	require.NoError(t, err)
	return found
}
