package faults_test

import (
	"net/http"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	// diskSize of a full disk in bytes, when it is empty.
	diskSize = 8 << 20
	// almostNothing is left on a full disk, in bytes: the small files of a run fit,
	// and the large ones break off in the middle.
	almostNothing = 1 << 20
)

// TestG08DiskFull fills each disk that the service needs, and makes room again.
func TestG08DiskFull(t *testing.T) {
	t.Parallel()
	t.Run("the store's", func(t *testing.T) {
		t.Parallel()
		s := onDaemon(t, newDaemon(t), "--pool-size", "0")
		files := filepath.Join(s.folder, "files")
		mountDisk(t, files, diskSize)
		s.start()
		empty := fill(t, files, almostNothing)
		before := filesBelow(t, files)
		a := s.run("write big and small")
		require.Equal(t, http.StatusOK, a.status, "the run itself was good: %s", a.body)
		r := a.reply(t)
		require.Equal(t, "ok", r.Status)
		require.Contains(t, r.Text, "written\n")
		require.Equal(t, []string{"small"}, r.stored())
		require.Equal(t, []string{"/mnt/data/big"}, r.lost())
		requireNoParts(t, files, before)
		for path := range filesBelow(t, files) {
			if _, old := before[path]; !old {
				require.NotContains(t, path, "/big", "half of a file")
			}
		}
		require.Equal(t, "small", string(send(http.MethodGet, r.url("small"), "", nil).body))

		empty()
		empty = fill(t, files, 0)
		s.requireReady(http.StatusServiceUnavailable)
		require.Contains(t, string(s.ready().body), "files cannot be stored")
		a = s.run("write big and small")
		require.Equal(t, http.StatusOK, a.status, "%s", a.body)
		require.Empty(t, a.reply(t).stored())
		require.Subset(t, a.reply(t).lost(), []string{"/mnt/data/big", "/mnt/data/small", "notebook.ipynb"})
		require.Empty(t, a.reply(t).Notebook.URL)
		require.Contains(t, a.reply(t).Text, "written\n", "the result is there without the store")
		for _, promise := range []string{"Idempotency-Key: a", "Prefer: respond-async"} { // it could not be held
			requireUnavailable(t, send(http.MethodPost, s.url+"/v1/execute", "text/x-python", []byte(codeHello), promise))
		}
		empty()
		s.requireReady(http.StatusOK)
		a = s.run("write big and small")
		require.Equal(t, []string{"big", "small"}, a.reply(t).stored())
		require.Len(t, send(http.MethodGet, a.reply(t).url("big"), "", nil).body, 4<<20)
		s.end()
	})
	t.Run("the state's", func(t *testing.T) {
		t.Parallel()
		s := onDaemon(t, newDaemon(t), "--pool-size", "0")
		state := filepath.Join(s.folder, "state")
		mountDisk(t, state, diskSize)
		s.start()
		require.Equal(t, http.StatusOK, s.runWithFile(codeHello).status)
		empty := fill(t, state, inputSize/2)
		requireUnavailable(t, s.runWithFile(codeHello))
		require.Empty(t, s.uploads(), "half of an input")
		s.requireRuns() // what needs no disk goes on
		empty()
		empty = fill(t, state, 0)
		s.requireReady(http.StatusServiceUnavailable)
		require.Contains(t, string(s.ready().body), "requests with files cannot be taken in")
		empty()
		s.requireReady(http.StatusOK)
		require.Equal(t, http.StatusOK, s.runWithFile(codeHello).status)
		s.end()
	})
	t.Run("the daemon's", func(t *testing.T) {
		t.Parallel()
		d := newDaemon(t)
		s := onDaemon(t, d, "--pool-size", "0").start()
		s.requireRuns()
		s.requireContainers(0)
		empty := fill(t, filepath.Join(d.folder, "data"), 0)
		a := s.run(codeHello)
		requireUnavailable(t, a)
		s.requireReady(http.StatusServiceUnavailable)
		require.Equal(t, "the Docker daemon does not start sandboxes", a.reply(t).Detail)
		require.Contains(t, s.Logged(), "no space left on device", "the log says why")
		empty()
		s.requireReady(http.StatusOK)
		eventually(t, "code runs again", func() bool { return s.run(codeHello).status == http.StatusOK })
		s.requireContainers(0)
		s.end()
	})
}
