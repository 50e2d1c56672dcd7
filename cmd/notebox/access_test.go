package main

import (
	"encoding/json"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// askAs posts code with a key.
func askAs(t *testing.T, p *program, key, code string) (int, http.Header, reply) {
	t.Helper()
	body, err := json.Marshal(map[string]any{"code": code, "timeout": 300}) // a busy host is slow
	require.NoError(t, err)
	a := mustAsk(t, http.MethodPost, p.url()+"/v1/execute", string(body), "Content-Type: application/json", "X-API-Key: "+key)
	var r reply
	if a.status == http.StatusOK {
		require.NoError(t, json.Unmarshal(a.body, &r))
	}
	return a.status, a.header, r
}

// TestKeysOfAFile: the CPU time that real sandboxes used counts over a restart, and a
// key that is taken out of the file is refused while the service goes on.
func TestKeysOfAFile(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	path := folder + "/keys"
	alice, err := key(t, "", "-file", path, "alice", "cpu-seconds-per-day=1")
	require.NoError(t, err)
	bob, err := key(t, "", "-file", path, "bob")
	require.NoError(t, err)
	alice, bob = strings.TrimSpace(alice), strings.TrimSpace(bob)
	// A quarter before midnight, for as long as the test takes: no day ends in it.
	late := time.Date(2026, 11, 22, 23, 45, 0, 0, time.UTC)
	open := func() (*program, func() error) {
		p, stop, err := startWith(folder, func(s *settings) { s.now = func() time.Time { return late } },
			"--service-id", serviceID+"-keys", "--api-keys-file", path, "--pool-size", "0")
		require.NoError(t, err)
		return p, stop
	}
	p, stop := open()
	const busy = "import time\nwhile time.process_time() < 1.5: pass"
	status, _, r := askAs(t, p, alice, busy)
	require.Equal(t, http.StatusOK, status)
	require.GreaterOrEqual(t, r.Usage.CPUMS, int64(1000), "else there is nothing to refuse")
	refused := func() {
		t.Helper()
		status, header, _ := askAs(t, p, alice, "1")
		require.Equal(t, http.StatusTooManyRequests, status)
		require.Equal(t, strconv.Itoa(15*60), header.Get("Retry-After"))
	}
	refused()
	require.NoError(t, stop())
	p, stop = open()
	defer func() { require.NoError(t, stop()) }()
	refused()
	status, _, _ = askAs(t, p, bob, "1")
	require.Equal(t, http.StatusOK, status)

	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	first, _, _ := strings.Cut(string(raw), "\n")
	require.NoError(t, os.WriteFile(path, []byte(first+"\n"), 0o600))
	require.Eventually(t, func() bool {
		return mustAsk(t, http.MethodGet, p.url()+"/v1/environments", "", "X-API-Key: "+bob).status == http.StatusUnauthorized
	}, time.Minute, 50*time.Millisecond)
	refused()

	for _, name := range []string{"/state/cpu-used.json", "/log", "/keys"} {
		raw, err := os.ReadFile(folder + name)
		require.NoError(t, err)
		require.NotContains(t, string(raw), alice)
		require.NotContains(t, string(raw), bob)
	}
}
