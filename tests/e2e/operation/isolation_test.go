package operation

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"notebox/tests/e2e/service"
)

// fewUsers are too few ids for a worker, and enough for containers; nobody else has them.
var fewUsers = []string{"--sandbox-users", "2100000-2100201", "--max-sandboxes", "20"}

// TestWithoutCells: if a wall of cells is missing, auto is containers, and cell does not start.
// Both say which wall it is, and what can be done.
func TestWithoutCells(t *testing.T) {
	t.Parallel()
	p := service.Start(t, "without-cells", append(fewUsers, "--isolation", "auto")...)
	var ready struct {
		Isolation struct {
			Kind, Remedy string
			MissingWall  string `json:"missing_wall"`
		}
	}
	require.Equal(t, "ok", p.Execute(t, map[string]any{"code": "print(1)"}).Status)
	status, raw := service.Get(t, p.URL+"/readyz")
	require.Equal(t, http.StatusOK, status)
	require.NoError(t, json.Unmarshal(raw, &ready))
	require.Equal(t, "container", ready.Isolation.Kind)
	require.Equal(t, "worker", ready.Isolation.MissingWall)
	require.Contains(t, ready.Isolation.Remedy, "--sandbox-users")
	require.Contains(t, p.Logged(), ready.Isolation.Remedy)
	require.Equal(t, 1.0, p.Metric(t, `notebox_isolation{kind="container"}`))
	require.Equal(t, 1.0, p.Metric(t, `notebox_missing_walls{wall="worker"}`))
	require.Zero(t, p.Metric(t, `notebox_workers{state="used"}`))

	err := service.Options{Flags: append(fewUsers, "--isolation", "cell")}.Refused(t)
	require.ErrorContains(t, err, "the wall worker is missing")
	require.ErrorContains(t, err, ready.Isolation.Remedy)
}

// TestAutoIsCells on a host that has all walls, and each API key has workers of its own if it
// is to: cells of one worker have one secret of hashes.
func TestAutoIsCells(t *testing.T) {
	t.Parallel()
	for _, apart := range []bool{false, true} {
		folder := t.TempDir()
		alice, bob := newKey(t, folder+"/keys", "alice"), newKey(t, folder+"/keys", "bob")
		flags := []string{"--isolation", "auto", "--pool-size", "1", "--api-keys-file", folder + "/keys"}
		if apart {
			flags = append(flags, "--worker-per-key")
		}
		p := service.Start(t, map[bool]string{false: "auto-together", true: "auto-apart"}[apart], flags...)
		secrets := map[string]bool{}
		for _, key := range []string{alice, bob, alice} {
			_, _, r := askAs(t, p, key, "print(hash('a'))")
			require.Equal(t, "ok", r.Status)
			secrets[r.Text] = true
		}
		require.Len(t, secrets, map[bool]int{false: 1, true: 2}[apart])
		require.NoError(t, p.Stop(t.Context()))
	}
}
