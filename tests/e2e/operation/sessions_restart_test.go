package operation

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/tests/e2e/service"
	"notebox/tests/starter"
)

const (
	// sessionPatience is for what takes seconds on a quiet machine.
	sessionPatience = 3 * time.Minute
	// restartAnswer bounds the first call in a session after a restart: none hangs.
	restartAnswer = 90 * time.Second
)

// requireSessions requires that each session says what it knows, and none hangs.
func requireSessions(t *testing.T, p *service.Service, ids []string) {
	t.Helper()
	answers, errs := make([]service.Answer, len(ids)), make([]error, len(ids))
	begun := time.Now()
	var all sync.WaitGroup
	for i, id := range ids {
		all.Go(func() { answers[i], errs[i] = p.TryStep(id, "print(secret, open('kept.txt').read())") })
	}
	all.Wait()
	require.Less(t, time.Since(begun), restartAnswer)
	for i, id := range ids {
		require.NoError(t, errs[i])
		r := answers[i].Reply(t)
		require.Equal(t, "ok", r.Status, "%s", answers[i].Body)
		require.False(t, r.Session.KernelRestarted)
		printed, _, _ := strings.Cut(r.Text, "\n") // and files of a run that was cut off
		require.Equal(t, fmt.Sprintf("of session %d file %d", i, i), printed, id)
	}
}

// TestNobodysCellIsRemoved: a cell that an earlier process has kept, and that no session goes on
// with, is removed beside one that a session goes on with.
func TestNobodysCellIsRemoved(t *testing.T) {
	t.Parallel()
	o := service.Options{Name: "nobodys", Folder: t.TempDir(), Flags: []string{"--isolation", "cell", "--pool-size", "1", "--pool-max", "1"}}
	p := o.Start(t)
	removeAtEnd(t, p.ID)
	ids := []string{p.OpenSession(t, 30*time.Minute), p.OpenSession(t, 30*time.Minute)}
	p.Step(t, ids[0], "secret = 'of session 0'\nopen('kept.txt', 'w').write('file 0')")
	p.Kill()
	forget(t, o.Folder, ids[1])

	p = o.Start(t)
	require.Contains(t, p.Logged(), "removed sandboxes that an earlier process left behind")
	require.Contains(t, p.Logged(), "count=1")
	requireSessions(t, p, ids[:1])
	require.Equal(t, http.StatusNoContent, service.Ask(t, http.MethodDelete, p.URL+"/v1/sessions/"+ids[0], "").Status)
	require.NoError(t, p.Stop(t.Context()))
}

// forget removes what a service has written of a session.
func forget(t *testing.T, folder, id string) {
	records, err := filepath.Glob(filepath.Join(folder, "state", "sessions", "*.json"))
	require.NoError(t, err)
	for _, record := range records {
		raw, err := os.ReadFile(record)
		require.NoError(t, err)
		if strings.Contains(string(raw), id) {
			require.NoError(t, os.Remove(record))
			return
		}
	}
	require.Fail(t, "there is no record", id)
}

// TestSessionsOutliveSigkill, one in the middle of a run and one in that of an upload. Each
// goes on with its variables and files, also after an end by SIGTERM; if
// no service comes back, they end by themselves.
func TestSessionsOutliveSigkill(t *testing.T) {
	t.Parallel()
	const sessions, ttl = 5, 30 * time.Minute
	o := service.Options{Name: "sessions", Folder: t.TempDir(), Flags: []string{"--pool-size", "1", "--pool-max", "1", "--max-running", "4", "--timeout", "2m"}}
	p := o.Start(t)
	removeAtEnd(t, p.ID)

	var ids []string
	for i := range sessions {
		ids = append(ids, p.OpenSession(t, ttl))
		p.Step(t, ids[i], fmt.Sprintf("secret = 'of session %d'\nopen('kept.txt', 'w').write('file %d')", i, i))
	}
	closed := p.OpenSession(t, ttl)
	require.Equal(t, http.StatusNoContent, service.Ask(t, http.MethodDelete, p.URL+"/v1/sessions/"+closed, "").Status)

	var lost sync.WaitGroup
	url := p.URL
	lost.Go(func() { // the answer will be none
		_, _ = p.TryStep(ids[0], "open('begun', 'w').close()\nimport time\nfor i in range(600): print(i, flush=True); time.sleep(0.1)")
	})
	begun := func() bool {
		a, err := service.TryAsk(http.MethodGet, url+"/v1/sessions/"+ids[0]+"/files/begun", "")
		return err == nil && a.Status == http.StatusOK
	}
	require.Eventually(t, begun, sessionPatience, 50*time.Millisecond, "the run goes on")
	upload, cut := io.Pipe()
	defer upload.Close()
	lost.Go(func() {
		req, err := http.NewRequest(http.MethodPut, url+"/v1/sessions/"+ids[1]+"/files/upload.bin", upload)
		if err == nil {
			req.Header.Set("Content-Type", "application/octet-stream")
			if res, err := http.DefaultClient.Do(req); err == nil {
				res.Body.Close()
			}
		}
		upload.Close()
	})
	_, err := cut.Write(make([]byte, 8<<20)) // more than all pipes on the way hold
	require.NoError(t, err)

	p.Kill()
	cut.Close()
	lost.Wait()
	require.GreaterOrEqual(t, len(sessionNames(t, p.ID)), sessions, "they live on")

	p = o.Start(t)
	requireSessions(t, p, ids)
	require.Equal(t, http.StatusNotFound, service.Ask(t, http.MethodGet, p.URL+"/v1/sessions/"+ids[1]+"/files/upload.bin", "").Status,
		"half a file is none")
	requireGone(t, p, closed, "it was closed")
	require.Contains(t, p.Step(t, ids[0], "print(i)"), "\n", "the variables of the run that was cut off")
	require.Equal(t, "again\n", p.Step(t, ids[0], "print('again')"))

	require.NoError(t, p.Stop(t.Context()))
	require.Len(t, service.SandboxNames(t, p.ID), sessions, "they and nothing else")
	p = o.Start(t)
	requireSessions(t, p, ids)

	require.NoError(t, starter.Kill(t.Context(), sessionNames(t, p.ID)[0]))
	lostNow := func() (gone int) {
		for _, one := range ids {
			if a, err := service.TryAsk(http.MethodGet, p.URL+"/v1/sessions/"+one, ""); err == nil && a.Status == http.StatusGone {
				gone++
			}
		}
		return gone
	}
	require.Eventually(t, func() bool { return lostNow() == 1 }, sessionPatience, 100*time.Millisecond, "its sandbox has ended")

	for _, one := range ids {
		service.Ask(t, http.MethodDelete, p.URL+"/v1/sessions/"+one, "")
	}
	short := []string{p.OpenSession(t, 15*time.Second), p.OpenSession(t, 15*time.Second)}
	p.Kill()
	require.Eventually(t, func() bool { return len(service.Containers(t, p.ID)) == 0 }, sessionPatience, 200*time.Millisecond,
		"by their own clock, though no service comes back")

	p = o.Start(t)
	for _, one := range short {
		requireGone(t, p, one, "its time to live was over")
	}
	require.NoError(t, p.Stop(t.Context()))
	require.Empty(t, service.Containers(t, p.ID))
}

// TestNoSessions: a service that is to have none ends those of before, and says so.
func TestNoSessions(t *testing.T) {
	t.Parallel()
	o := service.Options{Name: "none", Folder: t.TempDir(), Flags: []string{"--pool-size", "0"}}
	p := o.Start(t)
	removeAtEnd(t, p.ID)
	session := p.OpenSession(t, time.Hour)
	require.NoError(t, p.Stop(t.Context()))
	require.Len(t, service.SandboxNames(t, p.ID), 1)

	p = service.Options{Name: "none", Folder: o.Folder, Flags: append(o.Flags, "--max-sessions", "0")}.Start(t)
	require.Empty(t, service.SandboxNames(t, p.ID))
	status, raw := service.Post(t, p.URL+"/v1/sessions", "application/json", []byte("{}"))
	require.Equal(t, http.StatusForbidden, status, "%s", raw)
	require.NoError(t, p.Stop(t.Context()))

	p = o.Start(t)
	requireGone(t, p, session, "could not be found again after a restart")
	require.NoError(t, p.Stop(t.Context()))
}

// requireGone requires that whoever asks for a session is told why there is none.
func requireGone(t *testing.T, p *service.Service, id, why string) {
	t.Helper()
	a, err := p.TryStep(id, "1")
	require.NoError(t, err)
	require.Equal(t, http.StatusGone, a.Status, "%s", a.Body)
	require.Contains(t, string(a.Body), why)
}

// sessionNames are those of a service's sandboxes that are sessions'.
func sessionNames(t *testing.T, id string) (names []string) {
	t.Helper()
	for _, name := range service.SandboxNames(t, id) {
		if strings.HasPrefix(name, "notebox-session-") || strings.Contains(name, "/session-") {
			names = append(names, name)
		}
	}
	return names
}

// removeAtEnd removes what a test that fails leaves of sessions, which live on.
func removeAtEnd(t *testing.T, id string) {
	t.Cleanup(func() {
		if !t.Failed() {
			return
		}
		for _, name := range service.Containers(t, id) {
			_ = exec.Command("docker", "rm", "--force", name).Run()
		}
	})
}
