package cells_test

import (
	"crypto/rand"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"notebox/runner/cells"
	"notebox/runner/docker"
)

// TestWallsAreDescribed: docs/operate.md says what to do about each.
func TestWallsAreDescribed(t *testing.T) {
	raw, err := os.ReadFile("../../docs/operate.md")
	require.NoError(t, err)
	for _, wall := range cells.Walls() {
		require.Contains(t, string(raw), "\n| `"+wall+"` | ")
	}
}

// TestRealProbe asks the daemon and the kernel of this host, with what is right for cells, and
// with what is not.
func TestRealProbe(t *testing.T) {
	for _, c := range []struct {
		desc string
		host docker.Options
		wall string
		why  string
	}{
		{desc: "all walls are there"},
		{desc: "too few ids", host: docker.Options{Users: docker.Users{First: 70000, Last: 70201}}, wall: "worker", why: "512"},
		{desc: "a runtime with a kernel of its own", host: docker.Options{Runtime: "runsc"}, wall: "worker", why: "runsc"},
		{desc: "a runtime that the daemon does not know", host: docker.Options{Runtime: "no-such-runtime"}, wall: "worker", why: "no-such-runtime"},
	} {
		t.Run(c.desc, func(t *testing.T) {
			t.Parallel()
			c.host.ServiceID, c.host.Log = "test-probe-"+strings.ToLower(rand.Text()), testLog(t)
			e := newEngineOn(t, c.host, cells.Options{})
			err := e.Probe(t.Context(), environment(t), smallLimits())
			if c.wall == "" {
				require.NoError(t, err)
				return
			}
			missing := (*cells.NoCells)(nil)
			require.ErrorAs(t, err, &missing)
			require.Equal(t, c.wall, missing.Wall, "%v", err)
			require.ErrorContains(t, err, c.why)
		})
	}
}
