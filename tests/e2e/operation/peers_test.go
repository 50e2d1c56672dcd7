package operation

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/tests/e2e/service"
)

// peerHosts is a file of names in which those of the services are that are there: what a name
// server has of a headless Service.
func peerHosts(addresses ...string) string {
	text := "127.0.0.1 localhost\n"
	for _, a := range addresses {
		text += a + " notebox-peers\n"
	}
	return text
}

// TestThreeServicesBehindOneAddress: what is begun at one goes on at the others, until it ends.
func TestThreeServicesBehindOneAddress(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	secret := filepath.Join(folder, "secret")
	require.NoError(t, os.WriteFile(secret, []byte(strings.Repeat("k", 40)+"\n"), 0o600))
	addresses := []string{"127.0.0.11", "127.0.0.12", "127.0.0.13"}
	free, err := net.Listen("tcp", addresses[0]+":0")
	require.NoError(t, err)
	port := free.Addr().(*net.TCPAddr).Port
	require.NoError(t, free.Close())

	options := make([]service.Options, len(addresses))
	all := make([]*service.Service, len(addresses))
	for i, address := range addresses {
		options[i] = service.Options{
			Name: fmt.Sprint("peer-", i), Folder: filepath.Join(folder, fmt.Sprint(i)), Etc: map[string]string{"hosts": peerHosts(addresses...)},
			Flags: []string{
				"--listen", fmt.Sprintf("%s:%d", address, port), "--storage", "file://" + folder + "/files", "--link-keys", folder + "/keys",
				"--peers", "notebox-peers", "--peer-secret", secret, "--pool-size", "1",
			},
		}
		all[i] = options[i].Start(t)
		removeAtEnd(t, all[i].ID)
	}
	a, b, c := all[0], all[1], all[2]

	// A session of the first.
	id := a.OpenSession(t, 30*time.Minute)
	path := "/v1/sessions/" + id
	b.Step(t, id, "x = 41")
	require.Equal(t, "42\n", c.Step(t, id, "print(x + 1)"))
	require.Equal(t, http.StatusCreated, service.Ask(t, http.MethodPut, b.URL+path+"/files/in.txt", "of the second").Status)
	require.Equal(t, "of the second", string(service.Ask(t, http.MethodGet, c.URL+path+"/files/in.txt", "").Body))
	require.Equal(t, "of the second\n", c.Step(t, id, "print(open('in.txt').read())"))
	var list struct{ Sessions []struct{ ID string } }
	require.NoError(t, json.Unmarshal(service.Ask(t, http.MethodGet, c.URL+"/v1/sessions", "").Body, &list))
	require.Equal(t, id, list.Sessions[0].ID)
	events := service.Ask(t, http.MethodPost, c.URL+"/v1/execute?session="+id, "print(x)", "Accept: text/event-stream")
	require.Contains(t, string(events.Body), "event: done")
	require.Equal(t, http.StatusNotFound, service.Ask(t, http.MethodGet, c.URL+path[:len(path)-1]+"_", "").Status)

	// An idempotent run, and asynchronous ones.
	first := service.Ask(t, http.MethodPost, a.URL+"/v1/execute", fmt.Sprintf(once, 0), "Idempotency-Key: peers")
	require.Equal(t, "ok", first.Reply(t).Status)
	require.Equal(t, string(first.Body), string(service.Ask(t, http.MethodPost, b.URL+"/v1/execute", fmt.Sprintf(once, 0), "Idempotency-Key: peers").Body))
	begin := func(code string) string {
		async := service.Ask(t, http.MethodPost, a.URL+"/v1/execute", code, "Prefer: respond-async")
		require.Equal(t, http.StatusAccepted, async.Status, "%s", async.Body)
		return async.Header.Get("Location")
	}
	ended := begin("print('by the first')")
	require.Eventually(t, func() bool { return stateOf(t, b.URL+ended) == "ok" }, sessionPatience, 50*time.Millisecond)
	require.Equal(t, "by the first\n", service.Ask(t, http.MethodGet, c.URL+ended, "").Reply(t).Text)
	stopped := begin("import time\ntry:\n    print('begun', flush=True)\n    time.sleep(100)\nexcept KeyboardInterrupt:\n    print('was told')")
	require.Eventually(t, func() bool { return a.Sandboxes(t, "running") > 0 }, sessionPatience, 50*time.Millisecond)
	time.Sleep(2 * time.Second) // into the run itself
	require.Equal(t, http.StatusAccepted, service.Ask(t, http.MethodDelete, c.URL+stopped+"?interrupt=true", "").Status)
	require.Eventually(t, func() bool { return stateOf(t, b.URL+stopped) == "cancelled" }, sessionPatience, 50*time.Millisecond)
	require.Contains(t, service.Ask(t, http.MethodGet, b.URL+stopped, "").Reply(t).Text, "was told")

	// The first is killed, and comes back with what it had.
	cutOff := begin("import time\ntime.sleep(100)")
	require.Eventually(t, func() bool { return a.Sandboxes(t, "running") > 0 }, sessionPatience, 50*time.Millisecond)
	own := b.OpenSession(t, 30*time.Minute)
	a.Kill()
	for _, answer := range []service.Answer{
		service.Ask(t, http.MethodGet, b.URL+path, ""), service.Ask(t, http.MethodPost, c.URL+"/v1/execute?session="+id, "print(x)"),
	} {
		require.Equal(t, http.StatusServiceUnavailable, answer.Status, "%s", answer.Body)
		require.NotEmpty(t, answer.Header.Get("Retry-After"))
	}
	require.Equal(t, "1", service.Ask(t, http.MethodGet, c.URL+"/v1/sessions", "").Header.Get("Notebox-Silent-Services"))
	require.Eventually(t, func() bool {
		return service.Ask(t, http.MethodGet, c.URL+cutOff, "").Status == http.StatusGone
	}, sessionPatience, time.Second, "its lease ends")
	a = options[0].Start(t)
	require.Equal(t, "41\n", b.Step(t, id, "print(x)"))

	// It is killed, and is not there any more.
	a.Kill()
	for i := range all {
		require.NoError(t, os.WriteFile(filepath.Join(options[i].Folder, "hosts"), []byte(peerHosts(addresses[1:]...)), 0o644))
	}
	var last service.Answer
	require.Eventually(t, func() bool {
		last = service.Ask(t, http.MethodPost, c.URL+"/v1/execute?session="+id, "print(x)")
		require.Contains(t, []int{http.StatusServiceUnavailable, http.StatusGone}, last.Status, "%s", last.Body)
		return last.Status == http.StatusGone
	}, sessionPatience, time.Second)
	require.Contains(t, string(last.Body), "its variables and files are lost")
	require.Eventually(t, func() bool { // it knows the names of some seconds ago
		return service.Ask(t, http.MethodGet, b.URL+path, "").Status == http.StatusGone
	}, sessionPatience, time.Second)
	require.Equal(t, "by the first\n", service.Ask(t, http.MethodGet, c.URL+ended, "").Reply(t).Text)
	require.Equal(t, "of another\n", c.Step(t, own, "print('of another')"))
	require.Equal(t, http.StatusNoContent, service.Ask(t, http.MethodDelete, c.URL+"/v1/sessions/"+own, "").Status)

	a = options[0].Start(t) // alone, to leave nothing
	require.Equal(t, http.StatusNoContent, service.Ask(t, http.MethodDelete, a.URL+path, "").Status)
}
