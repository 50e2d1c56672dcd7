package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/tests/starter"
)

// once is code whose output tells one execution from another, and that takes so
// many seconds.
const once = "import time, uuid\nprint(uuid.uuid4(), time.time_ns(), flush=True)\ntime.sleep(%d)"

// answer is what came of a request.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// reply decodes what must be one.
func (a answer) reply(t *testing.T) reply {
	t.Helper()
	require.Equal(t, http.StatusOK, a.status, "%s", a.body)
	var r reply
	decode(t, a.body, &r)
	return r
}

// ask sends a request with these headers, "Name: value". It may be called from any
// goroutine.
func ask(method, url, code string, headers ...string) (answer, error) {
	req, err := http.NewRequest(method, url, strings.NewReader(code))
	if err != nil {
		return answer{}, err
	}
	req.Header.Set("Content-Type", "text/x-python")
	for _, line := range headers {
		name, value, _ := strings.Cut(line, ": ")
		req.Header.Set(name, value)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	return answer{res.StatusCode, res.Header, body}, err
}

func mustAsk(t *testing.T, method, url, code string, headers ...string) answer {
	t.Helper()
	a, err := ask(method, url, code, headers...)
	require.NoError(t, err)
	return a
}

// stateOf is how an execution stands for who asks: running, or its reply's status.
func stateOf(t *testing.T, location string) string {
	t.Helper()
	a := mustAsk(t, http.MethodGet, location, "")
	require.Equal(t, http.StatusOK, a.status, "%s", a.body)
	var state struct{ Status string }
	require.NoError(t, json.Unmarshal(a.body, &state))
	return state.Status
}

// sandboxes are the names of the containers that a service has.
func sandboxes(t *testing.T, id string) []string {
	t.Helper()
	names, err := starter.Containers(context.Background(), id, "{{.Names}}")
	require.NoError(t, err)
	return names
}

// built is the program, compiled once for all tests that start it as a process.
var built = sync.OnceValues(func() (string, error) { return starter.Build(suite.folder, "notebox/cmd/notebox") })

// launch starts the program as a process of its own, and waits until it serves.
func launch(t *testing.T, id, folder string, flags ...string) *starter.Process {
	t.Helper()
	notebox, err := built()
	require.NoError(t, err)
	p, err := starter.Launch(starter.Options{Program: notebox, ID: id, Folder: folder, Flags: append([]string{"--drain", "2s"}, flags...)})
	require.NoError(t, err)
	t.Cleanup(func() {
		if !p.Over() { // a test that has failed
			_ = p.Stop(context.Background())
		}
	})
	require.NoError(t, p.Await(t.Context()))
	return p
}

// TestRestartAfterSigkill: what clients know of a service that was killed holds for
// the next one on its state and storage.
func TestRestartAfterSigkill(t *testing.T) {
	id, folder := serviceID+"-restart", t.TempDir()
	flags := []string{"--pool-size", "1", "--max-running", "4", "--timeout", "2m"}
	p := launch(t, id, folder, flags...)
	execute := func() string { return p.URL + "/v1/execute" }

	// What had ended.
	quick, slow := fmt.Sprintf(once, 0), fmt.Sprintf(once, 10)
	ended := mustAsk(t, http.MethodPost, execute(), quick, "Idempotency-Key: ended")
	require.Equal(t, "ok", ended.reply(t).Status)
	endedAsync := mustAsk(t, http.MethodPost, execute(), quick, "Prefer: respond-async")
	require.Equal(t, http.StatusAccepted, endedAsync.status, "%s", endedAsync.body)
	endedAt := endedAsync.header.Get("Location")
	require.Eventually(t, func() bool { return stateOf(t, p.URL+endedAt) == "ok" }, 30*time.Second, 50*time.Millisecond)
	endedReply := mustAsk(t, http.MethodGet, p.URL+endedAt, "")

	// What goes on.
	var lost sync.WaitGroup
	for _, headers := range [][]string{{"Idempotency-Key: first"}, {"Idempotency-Key: second"}, nil} {
		url := execute()
		lost.Go(func() { _, _ = ask(http.MethodPost, url, slow, headers...) }) // the answer will be none
	}
	async := mustAsk(t, http.MethodPost, execute(), fmt.Sprintf(once, 60), "Prefer: respond-async")
	require.Equal(t, http.StatusAccepted, async.status, "%s", async.body)
	cutOffAt := async.header.Get("Location")
	require.Eventually(t, func() bool { return poolOf(t, p.URL).Running == 4 }, 30*time.Second, 20*time.Millisecond)
	before := sandboxes(t, id)
	require.GreaterOrEqual(t, len(before), 4)
	p.Kill()
	lost.Wait()

	restarted := time.Now()
	p = launch(t, id, folder, flags...)
	gone := func() bool {
		now := strings.Join(sandboxes(t, id), " ")
		for _, name := range before {
			if strings.Contains(now, name) {
				return false
			}
		}
		return true
	}
	require.Eventually(t, gone, time.Until(restarted.Add(20*time.Second)), 50*time.Millisecond, "what the dead process left")

	// A key that had ended stands for its reply, byte for byte.
	again := mustAsk(t, http.MethodPost, execute(), quick, "Idempotency-Key: ended")
	require.Equal(t, http.StatusOK, again.status)
	require.Equal(t, string(ended.body), string(again.body))
	require.Equal(t, http.StatusConflict, mustAsk(t, http.MethodPost, execute(), "'another'", "Idempotency-Key: ended").status)

	require.Equal(t, http.StatusGone, mustAsk(t, http.MethodGet, p.URL+cutOffAt, "").status)
	require.Equal(t, http.StatusNoContent, mustAsk(t, http.MethodDelete, p.URL+cutOffAt, "").status)
	require.Equal(t, string(endedReply.body), string(mustAsk(t, http.MethodGet, p.URL+endedAt, "").body))

	// A key whose run was cut off runs once more, and once only.
	keys := []string{"first", "second"}
	var both [2][2]answer // of each key
	var errs [2][2]error
	var all sync.WaitGroup
	for k, key := range keys {
		for i := range both[k] {
			all.Go(func() { both[k][i], errs[k][i] = ask(http.MethodPost, execute(), slow, "Idempotency-Key: "+key) })
		}
	}
	all.Wait()
	for k, key := range keys {
		require.Equal(t, [2]error{}, errs[k])
		r := both[k][0].reply(t)
		require.Equal(t, "ok", r.Status, r.Text)
		require.Equal(t, r.ID, both[k][1].reply(t).ID)
		require.Equal(t, r.Text, both[k][1].reply(t).Text)
		require.Equal(t, 1, strings.Count(r.Text, "\n"), "printed by one execution")
		require.Equal(t, r.Text, mustAsk(t, http.MethodPost, execute(), slow, "Idempotency-Key: "+key).reply(t).Text)
	}

	require.NoError(t, p.Stop(t.Context()))
	require.Empty(t, sandboxes(t, id))
}

// TestCancelAnAsynchronousRun by DELETE.
func TestCancelAnAsynchronousRun(t *testing.T) {
	p := suite.program
	async := mustAsk(t, http.MethodPost, p.url()+"/v1/execute", "print('begun', flush=True)\nimport time\ntime.sleep(100)", "Prefer: respond-async, wait=0")
	require.Equal(t, http.StatusAccepted, async.status, "%s", async.body)
	url := p.url() + async.header.Get("Location")
	require.Equal(t, "running", stateOf(t, url))
	require.Eventually(t, func() bool { return poolOf(t, p.url()).Running > 0 }, 30*time.Second, 50*time.Millisecond)
	time.Sleep(2 * time.Second) // into the run itself
	require.Equal(t, http.StatusAccepted, mustAsk(t, http.MethodDelete, url, "").status)
	require.Eventually(t, func() bool { return stateOf(t, url) == "cancelled" }, 5*time.Second, 50*time.Millisecond)
	require.Contains(t, mustAsk(t, http.MethodGet, url, "").reply(t).Text, "begun\n", "what there was until then")
}
