package operation

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/tests/e2e/service"
)

// once is code whose output tells one execution from another, and that takes so
// many seconds.
const once = "import time, uuid\nprint(uuid.uuid4(), time.time_ns(), flush=True)\ntime.sleep(%d)"

// stateOf is how an execution stands for who asks: running, or its reply's status.
func stateOf(t *testing.T, location string) string {
	t.Helper()
	a := service.Ask(t, http.MethodGet, location, "")
	require.Equal(t, http.StatusOK, a.Status, "%s", a.Body)
	var state struct{ Status string }
	require.NoError(t, json.Unmarshal(a.Body, &state))
	return state.Status
}

// TestRestartAfterSigkill: what clients know of a service that was killed holds for
// the next one on its state and storage.
func TestRestartAfterSigkill(t *testing.T) {
	t.Parallel()
	o := service.Options{Name: "restart", Folder: t.TempDir(), Flags: []string{"--pool-size", "1", "--max-running", "4", "--timeout", "2m"}}
	p := o.Start(t)
	execute := func() string { return p.URL + "/v1/execute" }

	// What had ended.
	quick, slow := fmt.Sprintf(once, 0), fmt.Sprintf(once, 10)
	ended := service.Ask(t, http.MethodPost, execute(), quick, "Idempotency-Key: ended")
	require.Equal(t, "ok", ended.Reply(t).Status)
	endedAsync := service.Ask(t, http.MethodPost, execute(), quick, "Prefer: respond-async")
	require.Equal(t, http.StatusAccepted, endedAsync.Status, "%s", endedAsync.Body)
	endedAt := endedAsync.Header.Get("Location")
	require.Eventually(t, func() bool { return stateOf(t, p.URL+endedAt) == "ok" }, 30*time.Second, 50*time.Millisecond)
	endedReply := service.Ask(t, http.MethodGet, p.URL+endedAt, "")

	// What goes on.
	var lost sync.WaitGroup
	for _, headers := range [][]string{{"Idempotency-Key: first"}, {"Idempotency-Key: second"}, nil} {
		url := execute()
		lost.Go(func() { _, _ = service.TryAsk(http.MethodPost, url, slow, headers...) }) // the answer will be none
	}
	async := service.Ask(t, http.MethodPost, execute(), fmt.Sprintf(once, 60), "Prefer: respond-async")
	require.Equal(t, http.StatusAccepted, async.Status, "%s", async.Body)
	cutOffAt := async.Header.Get("Location")
	require.Eventually(t, func() bool { return p.Sandboxes(t, "running") == 4 }, 30*time.Second, 20*time.Millisecond)
	before := service.SandboxNames(t, p.ID)
	require.GreaterOrEqual(t, len(before), 4)
	p.Kill()
	lost.Wait()

	p = o.Start(t)
	restarted := time.Now()
	gone := func() bool {
		now := service.SandboxNames(t, p.ID)
		return !slices.ContainsFunc(before, func(name string) bool { return slices.Contains(now, name) })
	}
	require.Eventually(t, gone, time.Until(restarted.Add(20*time.Second)), 50*time.Millisecond, "what the dead process left")

	// A key that had ended stands for its reply, byte for byte.
	again := service.Ask(t, http.MethodPost, execute(), quick, "Idempotency-Key: ended")
	require.Equal(t, http.StatusOK, again.Status)
	require.Equal(t, string(ended.Body), string(again.Body))
	require.Equal(t, http.StatusConflict, service.Ask(t, http.MethodPost, execute(), "'another'", "Idempotency-Key: ended").Status)

	require.Equal(t, http.StatusGone, service.Ask(t, http.MethodGet, p.URL+cutOffAt, "").Status)
	require.Equal(t, http.StatusNoContent, service.Ask(t, http.MethodDelete, p.URL+cutOffAt, "").Status)
	require.Equal(t, string(endedReply.Body), string(service.Ask(t, http.MethodGet, p.URL+endedAt, "").Body))

	// A key whose run was cut off runs once more, and once only.
	keys := []string{"first", "second"}
	var both [2][2]service.Answer // of each key
	var errs [2][2]error
	var all sync.WaitGroup
	for k, key := range keys {
		for i := range both[k] {
			all.Go(func() {
				both[k][i], errs[k][i] = service.TryAsk(http.MethodPost, execute(), slow, "Idempotency-Key: "+key)
			})
		}
	}
	all.Wait()
	for k, key := range keys {
		require.Equal(t, [2]error{}, errs[k])
		r := both[k][0].Reply(t)
		require.Equal(t, "ok", r.Status, r.Text)
		require.Equal(t, r.ID, both[k][1].Reply(t).ID)
		require.Equal(t, r.Text, both[k][1].Reply(t).Text)
		require.Equal(t, 1, strings.Count(r.Text, "\n"), "printed by one execution")
		require.Equal(t, r.Text, service.Ask(t, http.MethodPost, execute(), slow, "Idempotency-Key: "+key).Reply(t).Text)
	}

	require.NoError(t, p.Stop(t.Context()))
	require.Empty(t, service.Containers(t, p.ID))
}

// TestCancelAnAsynchronousRun by DELETE.
func TestCancelAnAsynchronousRun(t *testing.T) {
	t.Parallel()
	p := &shared
	async := service.Ask(t, http.MethodPost, p.URL+"/v1/execute", "print('begun', flush=True)\nimport time\ntime.sleep(100)", "Prefer: respond-async, wait=0")
	require.Equal(t, http.StatusAccepted, async.Status, "%s", async.Body)
	url := p.URL + async.Header.Get("Location")
	require.Equal(t, "running", stateOf(t, url))
	require.Eventually(t, func() bool { return p.Sandboxes(t, "running") > 0 }, 30*time.Second, 50*time.Millisecond)
	time.Sleep(2 * time.Second) // into the run itself
	require.Equal(t, http.StatusAccepted, service.Ask(t, http.MethodDelete, url, "").Status)
	require.Eventually(t, func() bool { return stateOf(t, url) == "cancelled" }, 5*time.Second, 50*time.Millisecond)
	require.Contains(t, service.Ask(t, http.MethodGet, url, "").Reply(t).Text, "begun\n", "what there was until then")
}
