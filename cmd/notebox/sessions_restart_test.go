package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	// sessionPatience is for what takes seconds on a quiet machine.
	sessionPatience = 3 * time.Minute
	// restartAnswer bounds the first call in a session after a restart: none hangs.
	restartAnswer = 90 * time.Second
)

// sessionOn opens a session that lives for so long.
func sessionOn(t *testing.T, url string, ttl time.Duration) (id string) {
	t.Helper()
	status, raw := post(t, url+"/v1/sessions", "application/json", fmt.Appendf(nil, `{"ttl": %v}`, ttl.Seconds()))
	require.Equal(t, http.StatusCreated, status, "%s", raw)
	var session struct{ ID string }
	require.NoError(t, json.Unmarshal(raw, &session))
	require.NotEmpty(t, session.ID)
	return session.ID
}

// askSession runs code in a session. It may be called from any goroutine.
func askSession(url, id, code string) (answer, error) {
	body, err := json.Marshal(map[string]any{"session": id, "code": code, "timeout": 120})
	if err != nil {
		return answer{}, err
	}
	client := &http.Client{Timeout: sessionPatience}
	res, err := client.Post(url+"/v1/execute", "application/json", bytes.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	return answer{res.StatusCode, res.Header, raw}, err
}

// stepReply is the part of a reply that these tests look at.
type stepReply struct {
	Status, Text string
	Session      struct {
		KernelRestarted bool `json:"kernel_restarted"`
	}
}

// step decodes what must be one.
func (a answer) step(t *testing.T) (r stepReply) {
	t.Helper()
	require.Equal(t, http.StatusOK, a.status, "%s", a.body)
	require.NoError(t, json.Unmarshal(a.body, &r))
	return r
}

// runInSession requires that code runs well in a session, and returns what it prints.
func runInSession(t *testing.T, url, id, code string) string {
	t.Helper()
	a, err := askSession(url, id, code)
	require.NoError(t, err)
	r := a.step(t)
	require.Equal(t, "ok", r.Status, "%s", a.body)
	return r.Text
}

// requireSessions requires that each session says what it knows, and none hangs.
func requireSessions(t *testing.T, url string, ids []string) {
	t.Helper()
	answers, errs := make([]answer, len(ids)), make([]error, len(ids))
	begun := time.Now()
	var all sync.WaitGroup
	for i, id := range ids {
		all.Go(func() { answers[i], errs[i] = askSession(url, id, "print(secret, open('kept.txt').read())") })
	}
	all.Wait()
	require.Less(t, time.Since(begun), restartAnswer)
	for i, id := range ids {
		require.NoError(t, errs[i])
		r := answers[i].step(t)
		require.Equal(t, "ok", r.Status, "%s", answers[i].body)
		require.False(t, r.Session.KernelRestarted)
		printed, _, _ := strings.Cut(r.Text, "\n") // and files of a run that was cut off
		require.Equal(t, fmt.Sprintf("of session %d file %d", i, i), printed, id)
	}
}

// TestSessionsOutliveSigkill, one in the middle of a run and one in that of an upload. Each
// goes on with its variables and files, also after an end by SIGTERM; where
// no service comes back, they end by themselves.
func TestSessionsOutliveSigkill(t *testing.T) {
	t.Parallel()
	const sessions, ttl = 5, 30 * time.Minute
	id, folder := serviceID+"-sessions", t.TempDir()
	removeAtEnd(t, id)
	flags := []string{"--pool-size", "1", "--pool-max", "1", "--max-running", "4", "--timeout", "2m"}
	p := launch(t, id, folder, flags...)

	var ids []string
	for i := range sessions {
		ids = append(ids, sessionOn(t, p.URL, ttl))
		runInSession(t, p.URL, ids[i], fmt.Sprintf("secret = 'of session %d'\nopen('kept.txt', 'w').write('file %d')", i, i))
	}
	closed := sessionOn(t, p.URL, ttl)
	require.Equal(t, http.StatusNoContent, mustAsk(t, http.MethodDelete, p.URL+"/v1/sessions/"+closed, "").status)

	var lost sync.WaitGroup
	url := p.URL
	lost.Go(func() { // the answer will be none
		_, _ = askSession(url, ids[0], "open('begun', 'w').close()\nimport time\nfor i in range(600): print(i, flush=True); time.sleep(0.1)")
	})
	begun := func() bool {
		a, err := ask(http.MethodGet, url+"/v1/sessions/"+ids[0]+"/files/begun", "")
		return err == nil && a.status == http.StatusOK
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
	require.GreaterOrEqual(t, len(sessionNames(t, id)), sessions, "they live on")

	p = launch(t, id, folder, flags...)
	requireSessions(t, p.URL, ids)
	require.Equal(t, http.StatusNotFound, mustAsk(t, http.MethodGet, p.URL+"/v1/sessions/"+ids[1]+"/files/upload.bin", "").status,
		"half a file is none")
	requireGone(t, p.URL, closed, "it was closed")
	require.Contains(t, runInSession(t, p.URL, ids[0], "print(i)"), "\n", "the variables of the run that was cut off")
	require.Equal(t, "again\n", runInSession(t, p.URL, ids[0], "print('again')"))

	require.NoError(t, p.Stop(t.Context()))
	require.Len(t, sandboxes(t, id), sessions, "they and nothing else")
	p = launch(t, id, folder, flags...)
	requireSessions(t, p.URL, ids)

	require.NoError(t, exec.Command("docker", "rm", "--force", sessionNames(t, id)[0]).Run())
	lostNow := func() (gone int) {
		for _, one := range ids {
			if a, err := ask(http.MethodGet, p.URL+"/v1/sessions/"+one, ""); err == nil && a.status == http.StatusGone {
				gone++
			}
		}
		return gone
	}
	require.Eventually(t, func() bool { return lostNow() == 1 }, sessionPatience, 100*time.Millisecond, "its sandbox has ended")

	for _, one := range ids {
		mustAsk(t, http.MethodDelete, p.URL+"/v1/sessions/"+one, "")
	}
	short := []string{sessionOn(t, p.URL, 15*time.Second), sessionOn(t, p.URL, 15*time.Second)}
	p.Kill()
	require.Eventually(t, func() bool { return len(sandboxes(t, id)) == 0 }, sessionPatience, 200*time.Millisecond,
		"by their own clock, though no service comes back")

	p = launch(t, id, folder, flags...)
	for _, one := range short {
		requireGone(t, p.URL, one, "its time to live was over")
	}
	require.NoError(t, p.Stop(t.Context()))
	require.Empty(t, sandboxes(t, id))
}

// TestNoSessions: a service that is to have none ends those of before, and says so.
func TestNoSessions(t *testing.T) {
	t.Parallel()
	id, folder := serviceID+"-none", t.TempDir()
	removeAtEnd(t, id)
	p := launch(t, id, folder, "--pool-size", "0")
	session := sessionOn(t, p.URL, time.Hour)
	require.NoError(t, p.Stop(t.Context()))
	require.Len(t, sandboxes(t, id), 1)

	p = launch(t, id, folder, "--pool-size", "0", "--max-sessions", "0")
	require.Empty(t, sandboxes(t, id))
	status, raw := post(t, p.URL+"/v1/sessions", "application/json", []byte("{}"))
	require.Equal(t, http.StatusForbidden, status, "%s", raw)
	require.NoError(t, p.Stop(t.Context()))

	p = launch(t, id, folder, "--pool-size", "0")
	requireGone(t, p.URL, session, "could not be found again after a restart")
	require.NoError(t, p.Stop(t.Context()))
}

// requireGone requires that whoever asks for a session is told why there is none.
func requireGone(t *testing.T, url, id, why string) {
	t.Helper()
	a, err := askSession(url, id, "1")
	require.NoError(t, err)
	require.Equal(t, http.StatusGone, a.status, "%s", a.body)
	require.Contains(t, string(a.body), why)
}

// sessionNames are those of a service's containers that are sessions'.
func sessionNames(t *testing.T, id string) (names []string) {
	t.Helper()
	for _, name := range sandboxes(t, id) {
		if strings.HasPrefix(name, "notebox-session-") {
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
		for _, name := range sandboxes(t, id) {
			_ = exec.Command("docker", "rm", "--force", name).Run()
		}
	})
}
