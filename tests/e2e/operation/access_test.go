package operation

import (
	"encoding/json"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"notebox/tests/e2e/service"
	"notebox/tests/starter"
)

// askAs posts code with a key.
func askAs(t *testing.T, p *service.Service, key, code string) (int, http.Header, service.Reply) {
	t.Helper()
	body, err := json.Marshal(map[string]any{"code": code, "timeout": 300}) // a busy host is slow
	require.NoError(t, err)
	a := service.Ask(t, http.MethodPost, p.URL+"/v1/execute", string(body), "Content-Type: application/json", "X-API-Key: "+key)
	var r service.Reply
	if a.Status == http.StatusOK {
		require.NoError(t, json.Unmarshal(a.Body, &r))
	}
	return a.Status, a.Header, r
}

// dayEnds is more than TestKeysOfAFile takes.
const dayEnds = 5 * time.Minute

// untilMidnight is when the day ends by which CPU time is counted.
func untilMidnight() time.Duration {
	now := time.Now()
	return now.UTC().Truncate(24 * time.Hour).Add(24 * time.Hour).Sub(now)
}

// newKey has notebox key add one to a file.
func newKey(t *testing.T, file string, args ...string) string {
	t.Helper()
	program, err := starter.Notebox()
	require.NoError(t, err)
	out, err := exec.Command(program, append([]string{"key", "-file", file}, args...)...).Output()
	require.NoError(t, err)
	return strings.TrimSpace(string(out))
}

// TestKeysOfAFile: the CPU time that real sandboxes used counts over a restart, and a
// key that is taken out of the file is refused while the service goes on.
func TestKeysOfAFile(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	path := folder + "/keys"
	alice, bob := newKey(t, path, "alice", "cpu-seconds-per-day=1"), newKey(t, path, "bob")
	if untilMidnight() < dayEnds { // what counts is of one day
		time.Sleep(untilMidnight())
	}
	o := service.Options{Name: "keys", Folder: folder, Flags: []string{"--api-keys-file", path, "--pool-size", "0"}}
	p := o.Start(t)
	const busy = "import time\nwhile time.process_time() < 1.5: pass"
	status, _, r := askAs(t, p, alice, busy)
	require.Equal(t, http.StatusOK, status)
	require.GreaterOrEqual(t, r.Usage.CPUMS, int64(1000), "else there is nothing to refuse")
	refused := func() {
		t.Helper()
		status, header, _ := askAs(t, p, alice, "1")
		require.Equal(t, http.StatusTooManyRequests, status)
		seconds, err := strconv.Atoi(header.Get("Retry-After"))
		require.NoError(t, err)
		require.InDelta(t, untilMidnight().Seconds(), seconds, 5)
	}
	refused()
	require.NoError(t, p.Stop(t.Context()))
	p = o.Start(t)
	refused()
	status, _, _ = askAs(t, p, bob, "1")
	require.Equal(t, http.StatusOK, status)

	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	first, _, _ := strings.Cut(string(raw), "\n")
	require.NoError(t, os.WriteFile(path, []byte(first+"\n"), 0o600))
	require.Eventually(t, func() bool {
		return service.Ask(t, http.MethodGet, p.URL+"/v1/environments", "", "X-API-Key: "+bob).Status == http.StatusUnauthorized
	}, time.Minute, 50*time.Millisecond)
	refused()

	require.FileExists(t, folder+"/state/cpu-used.json")
	isNowhere(t, p, folder, alice, bob)
}

// isNowhere stops a service, and looks for keys in all that it left in its folder: files, state and log.
func isNowhere(t *testing.T, p *service.Service, folder string, keys ...string) {
	t.Helper()
	require.NoError(t, p.Stop(t.Context()))
	for _, name := range []string{"/log", "/keys"} {
		require.FileExists(t, folder+name)
	}
	require.NoError(t, filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		raw, err := os.ReadFile(path)
		for _, key := range keys {
			require.NotContains(t, string(raw), key, path)
		}
		return err
	}))
}

// TestFirstKey: a service that has no key yet is up and lets nobody in; the first key is made beside
// it, and is in none of its words and files.
func TestFirstKey(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	path := folder + "/keys"
	o := service.Options{Name: "first-key", Folder: folder, Flags: []string{"--api-keys-file", path, "--first-key", "--pool-size", "0"}}
	p := o.Start(t)
	require.Contains(t, p.Logged(), "nobody can call yet")
	status, _, _ := askAs(t, p, "", "1")
	require.Equal(t, http.StatusUnauthorized, status)

	alice := newKey(t, path, "alice")
	require.Eventually(t, func() bool {
		return service.Ask(t, http.MethodGet, p.URL+"/v1/environments", "", "X-API-Key: "+alice).Status == http.StatusOK
	}, time.Minute, 50*time.Millisecond)
	isNowhere(t, p, folder, alice)
}
