package starter

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSandboxOf(t *testing.T) {
	id := strings.Repeat("0a", 32)
	for _, c := range []struct{ desc, groups, want string }{
		{"no sandbox", "0::/init.scope\n", ""},
		{"a container", "2:memory:/docker/" + id + "\n1:name=systemd:/docker/" + id + "\n", id},
		{"a cell, whose worker's groups come first", "9:name=systemd:/notebox/one/" + id + "\n8:pids:/notebox/one/worker-notebox-x/cell-3\n", "notebox/one/worker-notebox-x/cell-3"},
		{"a session's cell", "4:memory:/notebox/one/worker-notebox-x/session-12\n", "notebox/one/worker-notebox-x/session-12"},
		{"a worker", "4:memory:/notebox/one/" + id + "\n", id},
		{"a cell on version 2", "0::/notebox/one/" + id + "/cell-3\n", "notebox/one/" + id + "/cell-3"},
		{"with the driver systemd", "0::/notebox.slice/notebox-one.slice/docker-" + id + ".scope/cell-3\n", "notebox.slice/notebox-one.slice/docker-" + id + ".scope/cell-3"},
	} {
		t.Run(c.desc, func(t *testing.T) {
			require.Equal(t, c.want, sandboxOf(c.groups))
			require.Equal(t, strings.Contains(c.want, "one") && c.want != id, IsCellOf(c.want, "one"))
			require.False(t, IsCellOf(c.want, "on"))
		})
	}
}
